package builtin

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/providers"
)

var attributeTypes = map[string]cty.Type{
	"id":               cty.String,
	"input":            cty.DynamicPseudoType,
	"output":           cty.DynamicPseudoType,
	"triggers_replace": cty.DynamicPseudoType,
}

// Upgrade reads stored JSON. There has been one version of the schema;
// attributes that it doesn't have are dropped.
func (p *provider) Upgrade(_ context.Context, r providers.UpgradeRequest) providers.UpgradeResponse {
	fail := func(summary, format string, args ...any) providers.UpgradeResponse {
		return providers.UpgradeResponse{Diagnostics: failure(summary, format, args...)}
	}
	if diags := checkType(r.Type); diags != nil {
		return providers.UpgradeResponse{Diagnostics: diags}
	}
	if r.Version != 0 {
		return fail("Object stored by a newer version", "Its schema has version %d, and this version of stoke knows version 0. Use the version that wrote it.", r.Version)
	}
	var stored map[string]json.RawMessage
	if err := json.Unmarshal(r.JSON, &stored); err != nil {
		return fail("Stored object unreadable", "The state does not hold a %s here: %s.", r.Type, err)
	}
	vals := make(map[string]cty.Value, len(attributeTypes))
	for name, ty := range attributeTypes {
		vals[name] = cty.NullVal(ty)
		text, ok := stored[name]
		if !ok {
			continue
		}
		v, err := ctyjson.Unmarshal(text, ty)
		if err != nil {
			return fail("Stored object unreadable", "Its attribute %q can't be read: %s.", name, err)
		}
		vals[name] = v
	}
	return providers.UpgradeResponse{State: cty.ObjectVal(vals)}
}

// Read returns what is stored: the state is the object.
func (p *provider) Read(ctx context.Context, r providers.ReadRequest) providers.ReadResponse {
	if providers.CallFrom(ctx).Settling {
		// Nothing was made outside of the state, so nothing is there.
		return providers.ReadResponse{State: cty.NullVal(r.State.Type()), Private: r.Private}
	}
	return providers.ReadResponse{State: r.State, Private: r.Private, Diagnostics: checkType(r.Type)}
}

// Plan makes output follow input: known only after the apply whenever input
// changes.
func (p *provider) Plan(_ context.Context, r providers.PlanRequest) providers.PlanResponse {
	resp := providers.PlanResponse{Planned: r.Proposed, Private: r.Private, Diagnostics: checkType(r.Type)}
	if resp.Diagnostics != nil || r.Proposed.IsNull() {
		return resp
	}
	input, triggers := r.Proposed.GetAttr("input"), r.Proposed.GetAttr("triggers_replace")
	switch {
	case r.Prior.IsNull():
		output := cty.UnknownVal(input.Type())
		if input.IsKnown() && input.IsNull() {
			output = input
		}
		resp.Planned = object(cty.UnknownVal(cty.String).RefineNotNull(), input, output, triggers)
	default:
		id, output := r.Prior.GetAttr("id"), r.Prior.GetAttr("output")
		if !equal(r.Prior.GetAttr("input"), input) {
			output = cty.UnknownVal(input.Type())
		}
		if !equal(r.Prior.GetAttr("triggers_replace"), triggers) {
			resp.Replace = []cty.Path{cty.GetAttrPath("triggers_replace")}
		}
		resp.Planned = object(id, input, output, triggers)
	}
	return resp
}

// Apply fills in what the plan left unknown.
func (p *provider) Apply(_ context.Context, r providers.ApplyRequest) providers.ApplyResponse {
	resp := providers.ApplyResponse{State: r.Planned, Private: r.Private, Diagnostics: checkType(r.Type)}
	if resp.Diagnostics != nil || r.Planned.IsNull() {
		return resp
	}
	id, input := r.Planned.GetAttr("id"), r.Planned.GetAttr("input")
	output := r.Planned.GetAttr("output")
	if !id.IsKnown() {
		fresh, err := uuid.NewRandom()
		if err != nil {
			resp.State = r.Prior
			resp.Diagnostics = failure("No random numbers", "The system gives none for an id: %s.", err)
			return resp
		}
		id = cty.StringVal(fresh.String())
	}
	if !output.IsKnown() {
		output = input
	}
	resp.State = object(id, input, output, r.Planned.GetAttr("triggers_replace"))
	return resp
}

// Import takes any id that is not empty: there is nothing to look up.
func (p *provider) Import(_ context.Context, r providers.ImportRequest) providers.ImportResponse {
	if diags := checkType(r.Type); diags != nil {
		return providers.ImportResponse{Diagnostics: diags}
	}
	if r.ID == "" {
		return providers.ImportResponse{Diagnostics: failure("Import id missing", "Give the id for the object.")}
	}
	null := cty.NullVal(cty.DynamicPseudoType)
	return providers.ImportResponse{Objects: []providers.Imported{{
		Type:  r.Type,
		State: object(cty.StringVal(r.ID), null, null, null),
	}}}
}

func object(id, input, output, triggers cty.Value) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"id": id, "input": input, "output": output, "triggers_replace": triggers,
	})
}

// equal compares a stored value with a configured one. Null has lost its type
// in the state, so every null is the same; an unknown equals nothing.
func equal(stored, configured cty.Value) bool {
	if !configured.IsKnown() {
		return false
	}
	return stored.IsNull() && configured.IsNull() || stored.RawEquals(configured)
}
