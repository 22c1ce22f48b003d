package connect

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// TestNullHop: a null hop is a mistake of the configuration, which the check of the machine reports with its place.
func TestNullHop(t *testing.T) {
	s := SSH{Hop: Hop{Address: "a", HostKey: "k"}, Hops: []Hop{{Address: "b", HostKey: "k"}}}
	whole, diags := s.Object(t.Context())
	if diags.HasError() {
		t.Fatal(diags)
	}
	all := whole.Attributes()
	hops := all["hops"].(types.List)
	all["hops"] = types.ListValueMust(hops.ElementType(t.Context()), append(hops.Elements(), types.ObjectNull(hops.ElementType(t.Context()).(types.ObjectType).AttrTypes)))
	got, known := MachineFromObject(t.Context(), types.ObjectValueMust(MachineTypes(), all))
	if !known || len(got.Hops) != 2 || got.Hops[0].Address != "b" || got.Hops[1] != (Hop{}) {
		t.Fatalf("it is read as %+v, known: %v", got, known)
	}
	at := path.Root("host").AtName("hops").AtListIndex(1).AtName("address")
	for _, d := range got.Validate(path.Root("host")) {
		if d, ok := d.(interface{ Path() path.Path }); ok && d.Path().Equal(at) {
			return
		}
	}
	t.Error("a null hop is valid")
}
