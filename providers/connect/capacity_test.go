package connect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"
)

func TestCapacityThereAndBack(t *testing.T) {
	want := Capacity{Groups: []NodeGroup{
		{
			Name: "gpu", Min: 0, Max: 4, CPU: 63500, Memory: 500 * gi, EphemeralStorage: NotKnown, Pods: 110,
			Extended: map[string]int64{"nvidia.com/gpu": 8, "nvidia.com/mig-1g.10gb": 0}, GPUModel: "NVIDIA-H100-80GB-HBM3",
			Labels: map[string]string{"zone": "a"}, Taints: []Taint{{"nvidia.com/gpu", "present", "NoSchedule"}, {Key: "x", Effect: "NoExecute"}}, Unschedulable: true,
		},
		{Name: "later", Min: 1, Max: 1, CPU: NotKnown, Memory: NotKnown, EphemeralStorage: NotKnown, Pods: NotKnown, Partial: true},
	}}
	v, err := want.Value()
	if err != nil {
		t.Fatal(err)
	}
	got, err := CapacityFromValue(v)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a provider does not know yet is no amount of nothing.
func TestCapacityPartlyUnknown(t *testing.T) {
	v, err := Capacity{Groups: []NodeGroup{gpuNode("a", 8, nil)}}.Value()
	if err != nil {
		t.Fatal(err)
	}
	without := func(name string) cty.Value {
		group := v.GetAttr("groups").AsValueSlice()[0].AsValueMap()
		group[name] = cty.UnknownVal(group[name].Type())
		return cty.ObjectVal(map[string]cty.Value{"groups": cty.ListVal([]cty.Value{cty.ObjectVal(group)})})
	}
	got, err := CapacityFromValue(without("cpu_milli"))
	if err != nil || got.Groups[0].CPU != NotKnown || got.Groups[0].Partial {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, name := range []string{"extended", "labels", "taints"} {
		if got, err := CapacityFromValue(without(name)); err != nil || !got.Groups[0].Partial {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	for name, bad := range map[string]cty.Value{
		"max": without("max"), "all": cty.UnknownVal(CapacityType), "null": cty.NullVal(CapacityType), "type": cty.StringVal("8"),
		"groups": cty.ObjectVal(map[string]cty.Value{"groups": cty.UnknownVal(CapacityType.AttributeType("groups"))}),
	} {
		if got, err := CapacityFromValue(bad); err == nil {
			t.Errorf("%s is read as %+v", name, got)
		}
	}
}

func TestCapacityIsValid(t *testing.T) {
	for want, change := range map[string]func(*NodeGroup){
		"has 2 to 1 nodes":            func(g *NodeGroup) { g.Min = 2 },
		"amount below 0":              func(g *NodeGroup) { g.Memory = -2 },
		`8 of "gpu"`:                  func(g *NodeGroup) { g.Extended = map[string]int64{"gpu": 8} },
		"an effect that there is not": func(g *NodeGroup) { g.Taints = []Taint{{"a", "b", "Sometimes"}} },
	} {
		if _, err := (Capacity{Groups: []NodeGroup{gpuNode("a", 8, change)}}).Value(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestCapacityAttribute: what a resource computes has the type that a review looks
// for.
func TestCapacityAttribute(t *testing.T) {
	if got := ctyOf(t, CapacityAttribute("").GetType()); !got.Equals(CapacityType) {
		t.Errorf("the attribute is %#v\nthe type is %#v", got, CapacityType)
	}
}

func ctyOf(t *testing.T, of attr.Type) cty.Type {
	t.Helper()
	switch of := of.(type) {
	case types.ObjectType:
		attributes := map[string]cty.Type{}
		for name, a := range of.AttrTypes {
			attributes[name] = ctyOf(t, a)
		}
		return cty.Object(attributes)
	case types.ListType:
		return cty.List(ctyOf(t, of.ElemType))
	case types.MapType:
		return cty.Map(ctyOf(t, of.ElemType))
	}
	switch {
	case of.Equal(types.StringType):
		return cty.String
	case of.Equal(types.Int64Type):
		return cty.Number
	case of.Equal(types.BoolType):
		return cty.Bool
	}
	t.Fatalf("no type %s", of)
	return cty.NilType
}
