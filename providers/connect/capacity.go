package connect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/gocty"
)

// Capacity describes the nodes of a cluster, or of a part of it, by the resources
// that they have for pods. Clusters and node pools have it as the attribute
// "capacity", so that a plan knows nodes before they exist. The attributes
// "cluster_id", "access" and "cluster" of the same resource identify the cluster.
type Capacity struct{ Groups []NodeGroup }

// NotKnown is an amount that is not known, or not yet.
const NotKnown int64 = -1

// NodeGroup are nodes that are alike. Amounts are those of one node, and what the
// kubelet says is allocatable: less than the machine has.
type NodeGroup struct {
	Name string // for messages: the node's, or the pool's
	// Min and Max are how many nodes there are; they differ where something scales
	// the group.
	Min, Max         int64
	CPU              int64            // in thousandths of a processor; or NotKnown
	Memory           int64            // in bytes; or NotKnown
	EphemeralStorage int64            // in bytes; or NotKnown
	Pods             int64            // or NotKnown
	Extended         map[string]int64 // other resources by name, such as "nvidia.com/gpu" or "nvidia.com/mig-1g.10gb"
	// GPUModel is the model as the label nvidia.com/gpu.product has it, where Labels
	// do not; "" for none, or where nobody knows.
	GPUModel      string
	Labels        map[string]string
	Taints        []Taint
	Unschedulable bool // cordoned
	// Partial says that the nodes may have more labels, resources or taints than
	// these.
	Partial bool
}

// Taint keeps pods away that do not tolerate it.
type Taint struct {
	Key, Value string
	Effect     string // NoSchedule, PreferNoSchedule, or NoExecute
}

func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// CapacityType is the type of a capacity's value. Amounts that are null are not
// known; labels, taints and extended resources that are null are not either, which
// makes the group partial.
var CapacityType = cty.Object(map[string]cty.Type{
	"groups": cty.List(cty.Object(map[string]cty.Type{
		"name": cty.String, "min": cty.Number, "max": cty.Number,
		"cpu_milli": cty.Number, "memory_bytes": cty.Number, "ephemeral_storage_bytes": cty.Number, "pods": cty.Number,
		"extended": cty.Map(cty.Number), "gpu_model": cty.String,
		"labels":        cty.Map(cty.String),
		"taints":        cty.List(cty.Object(map[string]cty.Type{"key": cty.String, "value": cty.String, "effect": cty.String})),
		"unschedulable": cty.Bool,
	})),
})

// CapacityAttribute is the attribute "capacity" of a resource that brings nodes.
func CapacityAttribute(description string) schema.SingleNestedAttribute {
	number := func(description string) schema.Attribute {
		return schema.Int64Attribute{Computed: true, Description: description}
	}
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{Computed: true, Description: description}
	}
	return schema.SingleNestedAttribute{Computed: true, Description: description, Attributes: map[string]schema.Attribute{
		"groups": schema.ListNestedAttribute{Computed: true, Description: "Nodes that are alike.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"name":                    text("Name of the nodes."),
			"min":                     number("Least number of nodes."),
			"max":                     number("Largest number of nodes."),
			"cpu_milli":               number("Processors that pods may have of one node, in thousandths."),
			"memory_bytes":            number("Memory that pods may have of one node, in bytes."),
			"ephemeral_storage_bytes": number("Disk that pods may have of one node, in bytes."),
			"pods":                    number("Largest number of pods on one node."),
			"extended":                schema.MapAttribute{Computed: true, ElementType: types.Int64Type, Description: `Other resources of one node by name, such as "nvidia.com/gpu".`},
			"gpu_model":               text("Model of the GPUs, as the label nvidia.com/gpu.product has it."),
			"labels":                  schema.MapAttribute{Computed: true, ElementType: types.StringType, Description: "Labels of the nodes."},
			"taints": schema.ListNestedAttribute{Computed: true, Description: "Taints of the nodes.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key": text("Key."), "value": text("Value."), "effect": text("NoSchedule, PreferNoSchedule, or NoExecute."),
			}}},
			"unschedulable": schema.BoolAttribute{Computed: true, Description: "Whether the nodes are cordoned."},
		}}},
	}}
}

type wireCapacity struct {
	Groups []wireGroup `cty:"groups" tfsdk:"groups"`
}

type wireGroup struct {
	Name             *string           `cty:"name" tfsdk:"name"`
	Min              *int64            `cty:"min" tfsdk:"min"`
	Max              *int64            `cty:"max" tfsdk:"max"`
	CPU              *int64            `cty:"cpu_milli" tfsdk:"cpu_milli"`
	Memory           *int64            `cty:"memory_bytes" tfsdk:"memory_bytes"`
	EphemeralStorage *int64            `cty:"ephemeral_storage_bytes" tfsdk:"ephemeral_storage_bytes"`
	Pods             *int64            `cty:"pods" tfsdk:"pods"`
	Extended         map[string]int64  `cty:"extended" tfsdk:"extended"`
	GPUModel         *string           `cty:"gpu_model" tfsdk:"gpu_model"`
	Labels           map[string]string `cty:"labels" tfsdk:"labels"`
	Taints           []wireTaint       `cty:"taints" tfsdk:"taints"`
	Unschedulable    *bool             `cty:"unschedulable" tfsdk:"unschedulable"`
}

type wireTaint struct {
	Key    string  `cty:"key" tfsdk:"key"`
	Value  *string `cty:"value" tfsdk:"value"`
	Effect string  `cty:"effect" tfsdk:"effect"`
}

// CapacityFromValue reads a capacity of type CapacityType. What is unknown in a
// group is read as null is. It is an error where the groups themselves, or how many
// nodes they have, are not known, and where the value is not valid.
func CapacityFromValue(v cty.Value) (Capacity, error) {
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() {
		return Capacity{}, fmt.Errorf("read capacity: it is not known")
	}
	if !v.Type().Equals(CapacityType) {
		return Capacity{}, fmt.Errorf("read capacity: it has another type")
	}
	if groups := v.GetAttr("groups"); groups.IsNull() || !groups.IsKnown() {
		return Capacity{}, fmt.Errorf("read capacity: its groups are not known")
	}
	v, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if ty := v.Type(); !v.IsKnown() || (ty.IsMapType() || ty.IsListType()) && !v.IsNull() && !ty.ElementType().IsObjectType() && !v.IsWhollyKnown() {
			return cty.NullVal(ty), nil
		}
		return v, nil
	})
	if err != nil {
		return Capacity{}, fmt.Errorf("read capacity: %w", err)
	}
	var w wireCapacity
	if err := gocty.FromCtyValue(v, &w); err != nil {
		return Capacity{}, fmt.Errorf("read capacity: %w", err)
	}
	c := Capacity{}
	for _, g := range w.Groups {
		if g.Min == nil || g.Max == nil {
			return Capacity{}, fmt.Errorf("read capacity: how many nodes the group %q has is not known", text(g.Name))
		}
		c.Groups = append(c.Groups, g.group())
	}
	return c, c.Validate()
}

func (w wireGroup) group() NodeGroup {
	g := NodeGroup{
		Name: text(w.Name), Min: *w.Min, Max: *w.Max, GPUModel: text(w.GPUModel),
		CPU: amount(w.CPU), Memory: amount(w.Memory), EphemeralStorage: amount(w.EphemeralStorage), Pods: amount(w.Pods),
		Unschedulable: w.Unschedulable != nil && *w.Unschedulable,
		Extended:      w.Extended, Labels: w.Labels,
		Partial: w.Extended == nil || w.Labels == nil || w.Taints == nil,
	}
	for _, t := range w.Taints {
		g.Taints = append(g.Taints, Taint{t.Key, text(t.Value), t.Effect})
	}
	return g
}

func amount(n *int64) int64 {
	if n == nil {
		return NotKnown
	}
	return *n
}

// Value is the capacity's value, of type CapacityType.
func (c Capacity) Value() (cty.Value, error) {
	if err := c.Validate(); err != nil {
		return cty.NilVal, fmt.Errorf("write capacity: %w", err)
	}
	w := wireCapacity{Groups: []wireGroup{}}
	for _, g := range c.Groups {
		w.Groups = append(w.Groups, wireOfGroup(g))
	}
	v, err := gocty.ToCtyValue(w, CapacityType)
	if err != nil {
		return cty.NilVal, fmt.Errorf("write capacity: %w", err)
	}
	return v, nil
}

// Object is the capacity as the framework stores it.
func (c Capacity) Object(ctx context.Context) (types.Object, diag.Diagnostics) {
	w := wireCapacity{Groups: []wireGroup{}}
	for _, g := range c.Groups {
		w.Groups = append(w.Groups, wireOfGroup(g))
	}
	return types.ObjectValueFrom(ctx, CapacityAttribute("").GetType().(types.ObjectType).AttrTypes, w)
}

func wireOfGroup(g NodeGroup) wireGroup {
	known := func(n int64) *int64 {
		if n == NotKnown {
			return nil
		}
		return &n
	}
	w := wireGroup{
		Name: pointer(g.Name), Min: &g.Min, Max: &g.Max, GPUModel: pointer(g.GPUModel),
		CPU: known(g.CPU), Memory: known(g.Memory), EphemeralStorage: known(g.EphemeralStorage), Pods: known(g.Pods),
		Unschedulable: &g.Unschedulable,
	}
	w.Extended, w.Labels = g.Extended, g.Labels
	for _, t := range g.Taints {
		w.Taints = append(w.Taints, wireTaint{t.Key, pointer(t.Value), t.Effect})
	}
	if g.Partial {
		return w // nil is null: not known
	}
	if w.Extended == nil {
		w.Extended = map[string]int64{}
	}
	if w.Labels == nil {
		w.Labels = map[string]string{}
	}
	if w.Taints == nil {
		w.Taints = []wireTaint{}
	}
	return w
}

// Validate reports the first thing that no nodes can be like.
func (c Capacity) Validate() error {
	for _, g := range c.Groups {
		switch {
		case g.Min < 0 || g.Max < g.Min:
			return fmt.Errorf("the group %q has %d to %d nodes", g.Name, g.Min, g.Max)
		case min(g.CPU, g.Memory, g.EphemeralStorage, g.Pods) < NotKnown:
			return fmt.Errorf("the group %q has an amount below 0", g.Name)
		}
		for name, n := range g.Extended {
			if !strings.Contains(name, "/") && !strings.HasPrefix(name, "hugepages-") || n < 0 {
				return fmt.Errorf("the group %q has %d of %q: extended resources have names such as nvidia.com/gpu, and 0 or more of them", g.Name, n, name)
			}
		}
		for _, t := range g.Taints {
			if t.Key == "" || !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, t.Effect) {
				return fmt.Errorf("the group %q has a taint %q without a key, or with an effect that there is not", g.Name, t)
			}
		}
	}
	return nil
}
