package redact

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// tattler says what it was configured with in every call that has no values.
type tattler struct {
	providers.Provider
	token string
}

func (p *tattler) Schema(context.Context) (*providers.Schema, providers.Diagnostics) {
	return &providers.Schema{}, providers.Diagnostics{{Summary: p.token, Detail: p.token}}
}
func (p *tattler) ValidateProvider(context.Context, cty.Value) providers.Diagnostics { return nil }
func (p *tattler) Configure(_ context.Context, config cty.Value) providers.Diagnostics {
	p.token = config.GetAttr("token").AsString()
	return nil
}
func (p *tattler) Stop(context.Context) error { return errors.New("stop " + p.token) }
func (p *tattler) Close() error               { return errors.New("close " + p.token) }
func (p *tattler) Upgrade(context.Context, providers.UpgradeRequest) providers.UpgradeResponse {
	return providers.UpgradeResponse{Diagnostics: providers.Diagnostics{{Summary: "anything", Detail: ""}}}
}

// TestProviderOwn: what a provider is configured with is in none of its
// messages, and a message is withheld where nobody knows what is secret.
func TestProviderOwn(t *testing.T) {
	ctx := context.Background()
	config := cty.ObjectVal(map[string]cty.Value{"token": cty.StringVal("canary-token")})
	for _, sensitive := range [][]cty.Path{nil, {cty.GetAttrPath("token")}} {
		schema := &providers.Schema{Provider: &providers.Block{Attributes: map[string]*providers.Attribute{"token": {Type: cty.String, Sensitive: sensitive == nil}}}}
		p := NewProvider(&tattler{}, schema)
		p.Configure(ctx, config, sensitive)
		_, diags := p.Schema(ctx)
		said := diags[0].Summary + diags[0].Detail + p.Stop(ctx).Error() + p.Close().Error()
		if strings.Contains(said, "canary") {
			t.Errorf("it says %s", said)
		}
	}
	p := NewProvider(&tattler{}, &providers.Schema{Resources: map[string]*providers.ResourceSchema{"t": {Block: &providers.Block{}}}})
	resp := p.Upgrade(ctx, providers.UpgradeRequest{Type: "t", JSON: []byte("{")}, nil)
	if d := resp.Diagnostics[0]; !strings.HasPrefix(d.Summary, "(withheld: ") || d.Detail != "" {
		t.Errorf("of an object that cannot be read it says %+v", d)
	}
}

// TestProviderMethods: there is a method for each of providers.Provider, and
// each that is given values asks where they are sensitive.
func TestProviderMethods(t *testing.T) {
	of, in := reflect.TypeFor[*Provider](), reflect.TypeFor[providers.Provider]()
	for i := range in.NumMethod() {
		theirs := in.Method(i)
		ours, ok := of.MethodByName(theirs.Name)
		if !ok {
			t.Errorf("the engine cannot call %s", theirs.Name)
			continue
		}
		asks := ours.Type.In(ours.Type.NumIn()-1) == reflect.TypeFor[[]cty.Path]()
		given := theirs.Type.NumIn() > 1 && theirs.Name != "Import"
		if asks != given {
			t.Errorf("%s asks where its values are sensitive: %v, want %v", theirs.Name, asks, given)
		}
	}
}
