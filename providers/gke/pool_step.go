package gke

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
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
	return schema.ListNestedBlock{Description: "What to try, in this order, when making the pool ends in a stock-out or a missing quota. A pool that is there never leaves its step.", NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
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
	if n < 1 || n > len(m.Fallback) {
		out := *m
		return &out
	}
	return m.as(&m.Fallback[n-1])
}

// as is the pool with the arguments of a step; nil is itself.
func (m *poolModel) as(f *fallbackModel) *poolModel {
	out := *m
	if f != nil {
		for _, field := range stepFields {
			field.take(&out, f)
		}
	}
	return &out
}

// taken are the arguments of the step by which the pool was made, which stay what
// they are whatever becomes of the declared fallback; nil for step 0.
func (m *poolModel) taken() *fallbackModel { return objectOf[fallbackModel](m.Taken) }

// record notes which step made the pool. An object that was recorded before keeps
// what it says: the declared fallback may be another one by now.
func (m *poolModel) record(n int) {
	was := m.Step.ValueInt64()
	m.Step = types.Int64Value(int64(n))
	switch {
	case n == 0 || n > len(m.Fallback) && m.taken() == nil:
		m.Taken = types.ObjectNull(stepTypes())
	case m.taken() == nil || was != int64(n):
		m.Taken, _ = types.ObjectValueFrom(context.Background(), stepTypes(), m.Fallback[n-1])
	}
}

// restore puts declared arguments back that the step took other ones for.
func (m *poolModel) restore(declared *poolModel) {
	if f := m.taken(); f != nil {
		for _, field := range stepFields {
			field.restore(m, declared, f)
		}
	}
}
