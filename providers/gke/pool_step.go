package gke

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
)

// fallbackModel is a step that a create takes where the one before ended in a
// stock-out or a missing quota. What is null is the pool's own argument.
type fallbackModel struct {
	Zones       types.Set    `tfsdk:"zones"`
	MachineType types.String `tfsdk:"machine_type"`
	Reservation types.String `tfsdk:"reservation"`
	FlexStart   types.Bool   `tfsdk:"flex_start"`
	Spot        types.Bool   `tfsdk:"spot"`
}

func stepSchema() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"zones":        schema.SetAttribute{Computed: true, ElementType: types.StringType, Description: "Its zones."},
		"machine_type": schema.StringAttribute{Computed: true, Description: "Its machine type."},
		"reservation":  schema.StringAttribute{Computed: true, Description: "Its reservation."},
		"flex_start":   schema.BoolAttribute{Computed: true, Description: "Its flex_start."},
		"spot":         schema.BoolAttribute{Computed: true, Description: "Its spot."},
	}
}

func stepTypes() map[string]attr.Type {
	return typesOf(schema.SingleNestedAttribute{Attributes: stepSchema()})
}

func fallbackSchema() schema.Block {
	return schema.ListNestedBlock{Description: "Steps to try, in this order, when making the pool ends in a " +
		"stock-out or a missing quota. A pool that is there never leaves its step.", NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
		"zones":        optionalSet("Other zones."),
		"machine_type": optionalText("Another machine type."),
		"reservation":  optionalText(`Another reservation; "" is none.`),
		"flex_start":   optionalFlag("Another flex_start."),
		"spot":         optionalFlag("Another spot."),
	}}}
}

// stepField is an argument of the pool that a step may have in its place.
type stepField struct {
	name string
	// take puts the step's value in the pool's place, where it has one.
	take func(m *poolModel, f *fallbackModel)
	// restore puts the declared argument back that the step took another one for.
	restore func(m, declared *poolModel, f *fallbackModel)
	// names tells whether the step has a value, and has whether the pool has that.
	names func(f *fallbackModel) bool
	has   func(m *poolModel, f *fallbackModel) bool
}

func fieldOfStep[V attr.Value](name string, own func(*poolModel) *V, other func(*fallbackModel) V) stepField {
	return stepField{name,
		func(m *poolModel, f *fallbackModel) {
			if v := other(f); !v.IsNull() {
				*own(m) = v
			}
		},
		func(m, declared *poolModel, f *fallbackModel) {
			if !other(f).IsNull() {
				*own(m) = *own(declared)
			}
		},
		func(f *fallbackModel) bool { return !other(f).IsNull() },
		func(m *poolModel, f *fallbackModel) bool {
			return other(f).Equal(*own(m)) || other(f).Equal(types.StringValue("")) && (*own(m)).IsNull()
		}}
}

var stepFields = []stepField{
	fieldOfStep("zones", func(m *poolModel) *types.Set { return &m.Zones }, func(f *fallbackModel) types.Set { return f.Zones }),
	fieldOfStep("machine_type", func(m *poolModel) *types.String { return &m.MachineType }, func(f *fallbackModel) types.String { return f.MachineType }),
	fieldOfStep("reservation", func(m *poolModel) *types.String { return &m.Reservation }, func(f *fallbackModel) types.String { return f.Reservation }),
	fieldOfStep("flex_start", func(m *poolModel) *types.Bool { return &m.FlexStart }, func(f *fallbackModel) types.Bool { return f.FlexStart }),
	fieldOfStep("spot", func(m *poolModel) *types.Bool { return &m.Spot }, func(f *fallbackModel) types.Bool { return f.Spot }),
}

// step is the pool as a step of its declared fallback has it; 0 is itself.
func (m *poolModel) step(n int) *poolModel {
	if all := m.steps(); n >= 1 && n <= len(all) {
		return m.withStep(&all[n-1])
	}
	return m.withStep(nil)
}

// steps is the declared fallback; nil while it is not known.
func (m *poolModel) steps() []fallbackModel { return elementsOf[fallbackModel](m.Fallback) }

// withStep is the pool with the arguments of a step; nil is itself.
func (m *poolModel) withStep(f *fallbackModel) *poolModel {
	out := *m
	if f != nil {
		for _, field := range stepFields {
			field.take(&out, f)
		}
	}
	return &out
}

// stepTaken are the arguments of the step by which the pool was made, which stay what
// they are whatever becomes of the declared fallback; nil for step 0.
func (m *poolModel) stepTaken() *fallbackModel { return objectOf[fallbackModel](m.Taken) }

// record notes which step made the pool. The recorded values of an existing pool
// are kept: the declared fallback may have changed.
func (m *poolModel) record(n int) {
	was, all := m.Step.ValueInt64(), m.steps()
	m.Step = types.Int64Value(int64(n))
	switch {
	case n == 0 || n > len(all) && m.stepTaken() == nil:
		m.Taken = types.ObjectNull(stepTypes())
	case m.stepTaken() == nil || was != int64(n):
		m.Taken = connect.MustConvert(types.ObjectValueFrom(context.Background(), stepTypes(), all[n-1]))
	}
}

// restore puts declared arguments back that the step took other ones for.
func (m *poolModel) restore(declared *poolModel) {
	if f := m.stepTaken(); f != nil {
		for _, field := range stepFields {
			field.restore(m, declared, f)
		}
	}
}

// imported is the step of a fallback by which a pool was made that is imported: its
// label says which, and it has what that step names. nil for any other pool.
func (m *poolModel) imported(all []fallbackModel) *fallbackModel {
	n := int(m.Step.ValueInt64())
	if n < 1 || n > len(all) || m.stepTaken() != nil {
		return nil
	}
	for _, field := range stepFields {
		if f := &all[n-1]; field.names(f) && !field.has(m, f) {
			return nil
		}
	}
	return &all[n-1]
}

// adopt plans that an imported pool runs by the step that made it: what the pool's own
// arguments say in its place is no difference, as it is none of a pool that was made here.
func (m *poolModel) adopt(ctx context.Context, j job, prior *poolModel) {
	f := prior.imported(m.steps())
	if f == nil {
		return
	}
	prior.Taken = connect.MustConvert(types.ObjectValueFrom(ctx, stepTypes(), *f))
	m.Taken = prior.Taken
	for _, field := range stepFields {
		if field.names(f) && j.omitted(field.name) {
			field.restore(m, &poolModel{Zones: types.SetNull(types.StringType)}, f)
		}
	}
	prior.restore(m)
	providers.CallFrom(ctx).AddNote(providers.Note{Kind: providers.NoteFact, Text: fmt.Sprintf("It was made by step %d of its fallback, which is recorded; its nodes stay as they are.", prior.Step.ValueInt64())})
}

// replacing reports whether a change of an argument replaces the pool. For an
// imported pool it does not, if the pool's step sets that argument.
func replacing(ctx context.Context, state tfsdk.State, plan tfsdk.Plan, at path.Path, diags *diag.Diagnostics) bool {
	var prior, declared poolModel
	diags.Append(state.Get(ctx, &prior)...)
	diags.Append(plan.GetAttribute(ctx, path.Root("fallback"), &declared.Fallback)...)
	f := prior.imported(declared.steps())
	return f == nil || !slices.ContainsFunc(stepFields, func(field stepField) bool { return at.Equal(path.Root(field.name)) && field.names(f) })
}

// As the modifiers of the framework say it, by which tests find them.
const makesAnew = "If the value of this attribute changes, Terraform will destroy and recreate the resource."

func steppedFlag(description string) schema.BoolAttribute {
	a := serversFlag(description)
	a.PlanModifiers = append(a.PlanModifiers, boolplanmodifier.RequiresReplaceIf(func(ctx context.Context, req planmodifier.BoolRequest, resp *boolplanmodifier.RequiresReplaceIfFuncResponse) {
		resp.RequiresReplace = replacing(ctx, req.State, req.Plan, req.Path, &resp.Diagnostics)
	}, makesAnew, makesAnew))
	return a
}

func steppedText(description string) schema.StringAttribute {
	a := servers(description)
	a.PlanModifiers = append(a.PlanModifiers, stringplanmodifier.RequiresReplaceIf(func(ctx context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
		resp.RequiresReplace = replacing(ctx, req.State, req.Plan, req.Path, &resp.Diagnostics)
	}, makesAnew, makesAnew))
	return a
}
