package builtin

import (
	"context"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// Source is the provider's address.
const Source = "terraform.io/builtin/terraform"

const dataType = "terraform_data"

// Entry is the provider as the catalogue lists it; states is where
// terraform_remote_state reads.
func Entry(states States) providers.Entry {
	return providers.Entry{
		New:     func() (providers.Provider, error) { return newProvider(states), nil },
		Version: "builtin",
	}
}

type provider struct {
	schema *providers.Schema
	states States
}

func newProvider(states States) *provider {
	return &provider{states: states, schema: &providers.Schema{
		Provider: &providers.Block{},
		Data:     map[string]*providers.ResourceSchema{remoteStateType: remoteStateSchema()},
		Resources: map[string]*providers.ResourceSchema{dataType: {
			NoEffect: true,
			Block: &providers.Block{
				Description: "A value that is kept in the state. It can stand for something that no resource describes, and force others to be replaced.",
				Attributes: map[string]*providers.Attribute{
					"id":               {Type: cty.String, Computed: true, Description: "A random UUID."},
					"input":            {Type: cty.DynamicPseudoType, Optional: true, Description: "The value to keep."},
					"output":           {Type: cty.DynamicPseudoType, Computed: true, Description: "The value of input, known after it was applied."},
					"triggers_replace": {Type: cty.DynamicPseudoType, Optional: true, Description: "A value whose change replaces the object."},
				},
			},
		}},
	}}
}

func (p *provider) Schema(context.Context) (*providers.Schema, providers.Diagnostics) {
	return p.schema, nil
}

func (p *provider) ValidateProvider(context.Context, cty.Value) providers.Diagnostics { return nil }

func (p *provider) Configure(context.Context, cty.Value) providers.Diagnostics { return nil }

func (p *provider) ValidateResource(_ context.Context, typeName string, config cty.Value) providers.Diagnostics {
	if diags := checkType(typeName); diags != nil {
		return diags
	}
	var diags providers.Diagnostics
	for _, name := range []string{"id", "output"} {
		if !config.IsKnown() || config.IsNull() || config.GetAttr(name).IsNull() {
			continue
		}
		diags = append(diags, providers.Diagnostic{
			Summary: "Read-only attribute",
			Detail:  fmt.Sprintf("The provider decides on %q; take it out of the configuration.", name),
			Path:    cty.GetAttrPath(name),
		})
	}
	return diags
}

func (p *provider) ValidateData(_ context.Context, typeName string, config cty.Value) providers.Diagnostics {
	if typeName != remoteStateType {
		return noData(typeName)
	}
	if !config.IsKnown() || config.IsNull() {
		return nil
	}
	return p.checkRemoteState(config)
}

func (p *provider) ReadData(ctx context.Context, r providers.ReadDataRequest) providers.ReadDataResponse {
	if r.Type != remoteStateType {
		return providers.ReadDataResponse{Diagnostics: noData(r.Type)}
	}
	return p.readRemoteState(ctx, r.Config)
}

func (p *provider) Stop(context.Context) error { return nil }

func (p *provider) Close() error { return nil }

// checkType refuses types that the provider doesn't have.
func checkType(typeName string) providers.Diagnostics {
	if typeName == dataType {
		return nil
	}
	return failure("Unknown resource type", "The provider %s has no resource type %q. It has %q.", Source, typeName, dataType)
}

func noData(typeName string) providers.Diagnostics {
	return failure("Unknown data source", "The provider %s has no data source %q. It has %q.", Source, typeName, remoteStateType)
}

func failure(summary, format string, args ...any) providers.Diagnostics {
	return providers.Diagnostics{{Summary: summary, Detail: fmt.Sprintf(format, args...)}}
}
