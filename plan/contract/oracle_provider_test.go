//go:build e2e

package contract

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/stokehq/stoke/providers"
)

// witness is a provider that writes down what Terraform asks of it, and answers
// at random: computed attributes get any value, and where mutate is set one
// part of the answer is wrong, or not, as the case may be.
type witness struct {
	tfprotov6.ProviderServer // methods that Terraform doesn't call here
	schema                   *providers.Block
	ty                       cty.Type

	mu                        sync.Mutex
	mutatePlan, mutateApplied bool
	planned                   []plannedCase
	applied                   map[string]appliedCase
	round                     int
}

type plannedCase struct{ prior, config, proposed, planned cty.Value }
type appliedCase struct{ planned, actual cty.Value }

func (w *witness) GetMetadata(context.Context, *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	return &tfprotov6.GetMetadataResponse{}, nil
}

func (w *witness) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	source := &providers.Block{Attributes: attrs{
		"name": {Type: cty.String, Optional: true}, "value": {Type: cty.String, Computed: true},
	}}
	return &tfprotov6.GetProviderSchemaResponse{
		ServerCapabilities: &tfprotov6.ServerCapabilities{},
		Provider:           &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{}},
		ResourceSchemas: map[string]*tfprotov6.Schema{
			"witness_thing":  {Block: blockToProtocol(w.schema)},
			"witness_source": {Block: blockToProtocol(source)},
		},
	}, nil
}

func (w *witness) GetResourceIdentitySchemas(context.Context, *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov6.GetResourceIdentitySchemasResponse{}, nil
}

func (w *witness) ValidateProviderConfig(_ context.Context, r *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: r.Config}, nil
}

func (w *witness) ConfigureProvider(context.Context, *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return &tfprotov6.ConfigureProviderResponse{}, nil
}

func (w *witness) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (w *witness) UpgradeResourceState(_ context.Context, r *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	v, err := ctyjson.Unmarshal(r.RawState.JSON, w.typeOf(r.TypeName))
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: w.pack(v, r.TypeName)}, err
}

func (w *witness) ReadResource(_ context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: r.CurrentState}, nil
}

func (w *witness) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

func (w *witness) typeOf(name string) cty.Type {
	if name == "witness_source" {
		return cty.Object(map[string]cty.Type{"name": cty.String, "value": cty.String})
	}
	return w.ty
}

func (w *witness) pack(v cty.Value, typeName string) *tfprotov6.DynamicValue {
	b, err := msgpack.Marshal(v, w.typeOf(typeName))
	if err != nil {
		panic(err)
	}
	return &tfprotov6.DynamicValue{MsgPack: b}
}

func (w *witness) unpack(v *tfprotov6.DynamicValue, typeName string) cty.Value {
	out, err := msgpack.Unmarshal(v.MsgPack, w.typeOf(typeName))
	if err != nil {
		panic(err)
	}
	return out
}

// random is the same for one object in one round, however often it is planned.
func (w *witness) random(name, what string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, name, what, w.round)
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

func (w *witness) PlanResourceChange(_ context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	prior, config, proposed := w.unpack(r.PriorState, r.TypeName), w.unpack(r.Config, r.TypeName), w.unpack(r.ProposedNewState, r.TypeName)
	w.mu.Lock()
	defer w.mu.Unlock()
	planned := proposed
	switch {
	case proposed.IsNull():
	case r.TypeName == "witness_source":
		if proposed.GetAttr("value").IsNull() {
			planned = cty.ObjectVal(vals{"name": proposed.GetAttr("name"), "value": unknown})
		}
	default:
		rng := w.random(proposed.GetAttr("name").AsString(), "plan")
		planned = fill(rootShape(w.schema), config, proposed, rng)
		if w.mutatePlan {
			planned = mutate(planned, rng)
		}
		w.planned = append(w.planned, plannedCase{prior, config, proposed, planned})
	}
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: w.pack(planned, r.TypeName), PlannedPrivate: r.PriorPrivate}, nil
}

func (w *witness) ApplyResourceChange(_ context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	planned := w.unpack(r.PlannedState, r.TypeName)
	if planned.IsNull() {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: r.PlannedState}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	name := planned.GetAttr("name")
	rng := w.random(fmt.Sprintf("%#v", name), "apply")
	actual, err := cty.Transform(planned, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if v.IsKnown() {
			return v, nil
		}
		return cty.StringVal(pick(rng, "x", "y", "z")), nil
	})
	if err != nil {
		return nil, err
	}
	if r.TypeName == "witness_thing" {
		if w.mutateApplied {
			for changed := true; changed; changed = !actual.IsWhollyKnown() {
				actual = mutate(UnknownsToNull(actual), rng)
			}
		}
		w.applied[name.AsString()] = appliedCase{planned, actual}
	}
	return &tfprotov6.ApplyResourceChangeResponse{NewState: w.pack(actual, r.TypeName)}, nil
}

func pick(rng *rand.Rand, from ...string) string { return from[rng.IntN(len(from))] }

// fill plans what is left to the provider: computed values stay, come, go or
// become unknown.
func fill(s shape, config, v cty.Value, rng *rand.Rand) cty.Value {
	if v.IsNull() || !v.IsKnown() || config.IsNull() || !config.IsKnown() {
		return v
	}
	out := vals{}
	for _, name := range sortedKeys(s.attrs) {
		a, el, c := s.attrs[name], v.GetAttr(name), config.GetAttr(name)
		switch {
		case a.WriteOnly:
			el = cty.NullVal(cty.String)
		case a.Computed && c.IsNull() && a.Nested == nil && a.Type == cty.String:
			switch rng.IntN(5) {
			case 0:
				el = unknown
			case 1:
				el = str(pick(rng, "p", "q"))
			case 2:
				el = cty.NullVal(cty.String)
			}
		case a.Nested != nil:
			el = fillNested(attributeShape(a.Nested), c, el, rng)
		}
		out[name] = el
	}
	for _, name := range sortedKeys(s.blocks) {
		out[name] = fillNested(blockShape(s.blocks[name]), config.GetAttr(name), v.GetAttr(name), rng)
	}
	return cty.ObjectVal(out)
}

func fillNested(s shape, config, v cty.Value, rng *rand.Rand) cty.Value {
	if v.IsNull() || !v.IsKnown() || config.IsNull() || !config.IsKnown() {
		return v
	}
	if s.nesting == providers.Single || s.nesting == providers.Group {
		return fill(s, config, v, rng)
	}
	if empty(v) || s.nesting == providers.Set {
		return v
	}
	return rebuild(v, func(key, el cty.Value) cty.Value { return fill(s, element(config, key), el, rng) })
}

// mutate changes one part of an object below its root, its name excepted. Some
// changes are allowed and some are not: that is the question.
func mutate(v cty.Value, rng *rand.Rand) cty.Value {
	var places []cty.Path
	_ = cty.Walk(v, func(p cty.Path, el cty.Value) (bool, error) {
		if len(p) > 0 && !p.Equals(cty.GetAttrPath("name")) {
			places = append(places, p.Copy())
		}
		return !el.Type().IsSetType(), nil
	})
	place := places[rng.IntN(len(places))]
	out, err := cty.Transform(v, func(p cty.Path, el cty.Value) (cty.Value, error) {
		if !p.Equals(place) {
			return el, nil
		}
		ty := el.Type()
		switch {
		case rng.IntN(4) == 0:
			return cty.NullVal(ty), nil
		case rng.IntN(3) == 0:
			return cty.UnknownVal(ty), nil
		case ty == cty.String:
			return str(pick(rng, "a", "b", "c", "m")), nil
		case el.IsNull() || !el.IsKnown() || !el.CanIterateElements() || empty(el):
			return el, nil
		case ty.IsListType():
			if el.LengthInt() > 1 {
				return cty.ListVal(el.AsValueSlice()[1:]), nil
			}
			return cty.ListVal(append(el.AsValueSlice(), el.AsValueSlice()...)), nil
		case ty.IsSetType():
			if el.LengthInt() > 1 {
				return cty.SetVal(el.AsValueSlice()[1:]), nil
			}
			return cty.SetValEmpty(ty.ElementType()), nil
		case ty.IsMapType():
			// More keys than any configuration has: of blocks, Terraform only
			// counts the keys, and we are stricter.
			for _, one := range el.AsValueMap() {
				return cty.MapVal(vals{"k0": one, "k1": one, "k2": one, "new": one}), nil
			}
		}
		return el, nil
	})
	if err != nil {
		panic(err)
	}
	return out
}

func blockToProtocol(b *providers.Block) *tfprotov6.SchemaBlock {
	nesting := map[providers.Nesting]tfprotov6.SchemaNestedBlockNestingMode{
		providers.Single: tfprotov6.SchemaNestedBlockNestingModeSingle, providers.Group: tfprotov6.SchemaNestedBlockNestingModeGroup,
		providers.List: tfprotov6.SchemaNestedBlockNestingModeList, providers.Set: tfprotov6.SchemaNestedBlockNestingModeSet,
		providers.Map: tfprotov6.SchemaNestedBlockNestingModeMap,
	}
	out := &tfprotov6.SchemaBlock{Attributes: attributesToProtocol(b.Attributes)}
	for name, n := range b.Blocks {
		out.BlockTypes = append(out.BlockTypes, &tfprotov6.SchemaNestedBlock{TypeName: name, Nesting: nesting[n.Nesting], Block: blockToProtocol(n.Block)})
	}
	return out
}

func attributesToProtocol(in attrs) []*tfprotov6.SchemaAttribute {
	nesting := map[providers.Nesting]tfprotov6.SchemaObjectNestingMode{
		providers.Single: tfprotov6.SchemaObjectNestingModeSingle, providers.List: tfprotov6.SchemaObjectNestingModeList,
		providers.Set: tfprotov6.SchemaObjectNestingModeSet, providers.Map: tfprotov6.SchemaObjectNestingModeMap,
	}
	var out []*tfprotov6.SchemaAttribute
	for name, a := range in {
		conv := &tfprotov6.SchemaAttribute{Name: name, Required: a.Required, Optional: a.Optional, Computed: a.Computed, WriteOnly: a.WriteOnly, Sensitive: a.Sensitive}
		if a.Nested != nil {
			conv.NestedType = &tfprotov6.SchemaObject{Nesting: nesting[a.Nested.Nesting], Attributes: attributesToProtocol(a.Nested.Attributes)}
		} else {
			text, err := ctyjson.MarshalType(a.Type)
			if err != nil {
				panic(err)
			}
			//lint:ignore SA1019 the only way to a type that a test may take
			if conv.Type, err = tftypes.ParseJSONType(text); err != nil {
				panic(err)
			}
		}
		out = append(out, conv)
	}
	return out
}
