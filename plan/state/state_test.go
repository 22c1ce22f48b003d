package state

import (
	"fmt"
	"testing"

	"github.com/stokehq/stoke/modules/address"
	"github.com/zclconf/go-cty/cty"
)

// TestWith lays changes over a state, twice, and looks whether each state
// stays as it was.
func TestWith(t *testing.T) {
	base, err := Decode("v4", readTestdata(t))
	if err != nil {
		t.Fatal(err)
	}
	was := describeState(base, nil)
	image := address.Resource{Mode: address.Data, Type: "metal_image", Name: "debian"}.Instance(address.Key{})
	added := instance("new", address.IntKey(1))
	two := address.Resource{Type: "metal_node", Name: "gpu"}.Instance(address.StringKey("gpu2"))

	one := base.WithChanges([]Change{{Address: image}, {Address: added, Object: object(t, "a")}}, nil)
	wasOne := describeState(one, nil)
	next := one.WithChanges([]Change{{Address: added}, {Address: two}, {Address: added, Deposed: "d", Object: object(t, "b")}},
		map[string]Output{"x": {Value: cty.True}})

	if describeState(base, nil) != was || describeState(one, nil) != wasOne {
		t.Error("a state changed")
	}
	tests := []struct {
		s         *State
		instances string
		outputs   int
	}{
		{base, `[metal_node.gpu["gpu \"1\""] metal_node.gpu["gpu2"] data.metal_image.debian ` +
			`module.net[0].metal_firewall.machine[0] module.net[0].metal_firewall.machine[10]]`, 3},
		{one, `[metal_node.gpu["gpu \"1\""] metal_node.gpu["gpu2"] test_file.new[1] ` +
			`module.net[0].metal_firewall.machine[0] module.net[0].metal_firewall.machine[10]]`, 3},
		{next, `[metal_node.gpu["gpu \"1\""] metal_node.gpu["gpu2"] test_file.new[1] ` + // both deposed only
			`module.net[0].metal_firewall.machine[0] module.net[0].metal_firewall.machine[10]]`, 1},
	}
	for i, tt := range tests {
		if got := fmt.Sprint(tt.s.Instances()); got != tt.instances || len(tt.s.Outputs()) != tt.outputs {
			t.Errorf("state %d: %s, outputs %v", i, got, tt.s.Outputs())
		}
	}
	if next.Current(added) != nil || next.Deposed(added)["d"] == nil || one.Current(added) == nil {
		t.Error("the deposed object is not where it should be")
	}
	if gone := next.WithChanges([]Change{{Address: added, Deposed: "d"}}, nil); len(gone.Keys(added.Resource)) != 0 {
		t.Errorf("keys %v", gone.Keys(added.Resource))
	}
}

// TestMetaCarried stores an object anew, starting from its old Meta, and looks
// whether what stoke does not know is still there.
func TestMetaCarried(t *testing.T) {
	s, err := Decode("v4", readTestdata(t))
	if err != nil {
		t.Fatal(err)
	}
	a := address.Resource{Type: "metal_node", Name: "gpu"}.Instance(address.StringKey(`gpu "1"`))
	o, err := NewObject(cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal("n")}), testType, s.Current(a).Meta)
	if err != nil {
		t.Fatal(err)
	}
	n, err := Decode("again", s.WithChanges([]Change{{Address: a, Object: o.WithTainted(true).WithDependencies(nil)}}, nil).Encode(1))
	if err != nil {
		t.Fatal(err)
	}
	got := n.Current(a)
	if !hasMember(got.extra, "identity") || !hasMember(got.extra, "identity_schema_version") || !got.Tainted || got.Dependencies != nil {
		t.Errorf("got %+v", got)
	}
}
