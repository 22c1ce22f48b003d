package builtin

import (
	"context"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

const remoteStateType = "terraform_remote_state"

// defaultWorkspace is the one that is read when none is named.
const defaultWorkspace = "default"

// States is how the data source terraform_remote_state gets at the states of
// other configurations. Whoever lists the provider in a catalogue says which
// backends there are.
type States interface {
	// CheckBackend returns an error, in a sentence, if a kind of backend does not
	// exist.
	CheckBackend(kind string) error

	// CheckConfig says why arguments do not fit a kind, in a sentence. They
	// may be null, and unknown in parts.
	CheckConfig(kind string, config cty.Value) error

	// Outputs reads the root outputs of a workspace's state. found is false
	// where there is no state.
	Outputs(ctx context.Context, kind string, config cty.Value, workspace string) (outputs map[string]Output, found bool, err error)
}

// Output is a root output of a state.
type Output struct {
	Value     cty.Value
	Sensitive bool
}

func remoteStateSchema() *providers.ResourceSchema {
	return &providers.ResourceSchema{Block: &providers.Block{
		Description: "The root outputs of another configuration's state.",
		Attributes: map[string]*providers.Attribute{
			"backend": {Type: cty.String, Required: true,
				Description: "The kind of backend that keeps the state, such as \"http\"."},
			"config": {Type: cty.DynamicPseudoType, Optional: true,
				Description: "An object with the arguments of the backend, as they would stand in a backend block."},
			"defaults": {Type: cty.DynamicPseudoType, Optional: true,
				Description: "An object with the values of outputs that the state does not have."},
			"outputs": {Type: cty.DynamicPseudoType, Computed: true,
				Description: "An object with every root output of the state. Values that are sensitive there are sensitive here."},
			"workspace": {Type: cty.String, Optional: true,
				Description: "The workspace whose state is read, where the backend has workspaces."},
		},
	}}
}

// checkRemoteState looks for mistakes before anything is read; what is not
// known yet is passed over.
func (p *provider) checkRemoteState(config cty.Value) providers.Diagnostics {
	var diags providers.Diagnostics
	wrong := func(attribute, summary, detail string) {
		diags = append(diags, providers.Diagnostic{Summary: summary, Detail: detail, Path: cty.GetAttrPath(attribute)})
	}
	kind, arguments, defaults := config.GetAttr("backend"), config.GetAttr("config"), config.GetAttr("defaults")
	switch {
	case !kind.IsKnown():
	case kind.IsNull():
		wrong("backend", "Invalid backend configuration", "The kind of backend is null. Say where the state is kept, such as backend = \"local\".")
	default:
		if err := p.states.CheckBackend(kind.AsString()); err != nil {
			wrong("backend", "Invalid backend configuration", err.Error())
		} else if err := p.states.CheckConfig(kind.AsString(), arguments); err != nil {
			wrong("config", "Invalid backend configuration", err.Error())
		}
	}
	if defaults.IsKnown() && !defaults.IsNull() && !isObject(defaults) {
		wrong("defaults", "Invalid default values", "Defaults are an object with a value for each output, such as { name = \"value\" }.")
	}
	return diags
}

// isObject reports whether a value has named members.
func isObject(v cty.Value) bool {
	return v.Type().IsObjectType() || v.Type().IsMapType()
}

// readRemoteState reads the state that a configuration names.
func (p *provider) readRemoteState(ctx context.Context, config cty.Value) providers.ReadDataResponse {
	if diags := p.checkRemoteState(config); diags != nil {
		return providers.ReadDataResponse{Diagnostics: diags}
	}
	workspace := defaultWorkspace
	if w := config.GetAttr("workspace"); !w.IsNull() && w.AsString() != "" {
		workspace = w.AsString()
	}
	kind := config.GetAttr("backend").AsString()
	found, ok, err := p.states.Outputs(ctx, kind, config.GetAttr("config"), workspace)
	switch {
	case err != nil:
		return providers.ReadDataResponse{Diagnostics: failure("Remote state not readable",
			"The workspace %q of the backend %q: %s.", workspace, kind, strings.TrimSuffix(err.Error(), "."))}
	case !ok:
		return providers.ReadDataResponse{Diagnostics: failure("Unable to find remote state",
			"The backend %q has no state for the workspace %q. Apply the configuration that it belongs to first, or mend the arguments of this data source.", kind, workspace)}
	}
	outputs := map[string]cty.Value{}
	if defaults := config.GetAttr("defaults"); !defaults.IsNull() {
		for name, v := range defaults.AsValueMap() {
			outputs[name] = v
		}
	}
	var sensitive []cty.Path
	for name, o := range found {
		outputs[name] = o.Value
		if o.Sensitive {
			sensitive = append(sensitive, cty.GetAttrPath("outputs").GetAttr(name))
		}
	}
	slices.SortFunc(sensitive, func(a, b cty.Path) int { return strings.Compare(lastName(a), lastName(b)) })
	values := config.AsValueMap()
	values["outputs"] = cty.ObjectVal(outputs)
	return providers.ReadDataResponse{State: cty.ObjectVal(values), Sensitive: sensitive}
}

// lastName is the attribute in which a path ends.
func lastName(path cty.Path) string {
	step, _ := path[len(path)-1].(cty.GetAttrStep)
	return step.Name
}
