package metal

import (
	"context"
	"encoding/json"
	"math/big"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/host"
)

// saveDeclaredOnHost keeps on the machine what is declared, so that whoever imports it
// finds it: otherwise an import knows nothing but the machine, and the next plan shows
// every argument as new. Values that follow from the arguments are left out, and
// contents of files, which may be secret.
func saveDeclaredOnHost(ctx context.Context, rec *host.Record, s schema.Schema, raw tftypes.Value) error {
	all, _ := plainValue(raw).(map[string]any)
	for name, a := range s.Attributes {
		if a.IsComputed() && !a.IsOptional() {
			delete(all, name)
		}
	}
	if files, ok := all["files"].(map[string]any); ok {
		for _, f := range files {
			if f, ok := f.(map[string]any); ok && f["content"] != nil {
				f["content"] = "" // that it has some, which is read from the file
			}
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return rec.Declare(ctx, b)
}

// plainValue is a value in the terms of encoding/json, without what is null or not
// known.
func plainValue(v tftypes.Value) any {
	var (
		text   string
		number *big.Float
		truth  bool
		list   []tftypes.Value
		object map[string]tftypes.Value
	)
	switch {
	case !v.IsKnown() || v.IsNull():
	case v.As(&text) == nil:
		return text
	case v.As(&number) == nil:
		return json.Number(number.Text('f', -1))
	case v.As(&truth) == nil:
		return truth
	case v.As(&list) == nil:
		all := []any{}
		for _, e := range list {
			all = append(all, plainValue(e))
		}
		return all
	case v.As(&object) == nil:
		all := map[string]any{}
		for name, e := range object {
			if p := plainValue(e); p != nil {
				all[name] = p
			}
		}
		return all
	}
	return nil
}

// loadDeclaredFromHost reads what the record says was declared into a model; ok is false where
// it says nothing, or nothing that this schema understands.
func loadDeclaredFromHost(ctx context.Context, rec *host.Record, s schema.Schema, into any) (raw tftypes.Value, ok bool) {
	said := rec.LastDeclared()
	if len(said) == 0 {
		return raw, false
	}
	raw, err := tfprotov6.RawState{JSON: said}.UnmarshalWithOpts(s.Type().TerraformType(ctx),
		tfprotov6.UnmarshalOpts{ValueFromJSONOpts: tftypes.ValueFromJSONOpts{IgnoreUndefinedAttributes: true}})
	if err != nil || raw.IsNull() {
		return raw, false
	}
	state := tfsdk.State{Raw: raw, Schema: s}
	return raw, !state.Get(ctx, into).HasError()
}

// sameKey compares host keys, which may have a comment.
func sameKey(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	return len(x) >= 2 && len(y) >= 2 && x[0] == y[0] && x[1] == y[1]
}

// wayAsDeclared is the way to a machine that is imported: as it was declared, as far
// as the import says nothing else.
func (m *hostModel) wayAsDeclared(from hostModel) {
	m.ID, m.Address = from.ID, from.Address
	if !sameKey(m.HostKey.ValueString(), from.HostKey.ValueString()) {
		m.HostKey = from.HostKey
	}
	if !from.Port.IsNull() {
		m.Port = from.Port
	}
	if !from.User.IsNull() {
		m.User = from.User
	}
	if !from.Credential.IsNull() {
		m.Credential = from.Credential
	}
	if len(from.Bastions.Elements()) > 0 {
		m.Bastions = from.Bastions
	}
}

// hostAsDeclared is the argument host of an imported resource: as declared, if
// that leads to the machine that the import names without an own connection.
func hostAsDeclared(ctx context.Context, was, named types.Object) types.Object {
	a, _ := connect.MachineFromObject(ctx, was)
	b, _ := connect.MachineFromObject(ctx, named)
	if was.IsNull() || a.Address != b.Address || !sameKey(a.HostKey, b.HostKey) || b.Credential != "" || len(b.Hops) > 0 {
		return named
	}
	return was
}
