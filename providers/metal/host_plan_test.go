package metal

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
)

// TestAnotherMachine: a new address with a new host key looks like a machine that
// moved. Its id tells.
func TestAnotherMachine(t *testing.T) {
	of := func(id string) *hostModel {
		o, diags := factsObject(t.Context(), facts.Facts{MachineID: id})
		if diags.HasError() {
			t.Fatal(diags)
		}
		return &hostModel{Address: types.StringValue("192.0.2.1"), factsModel: factsModel{Facts: o}}
	}
	changes := []host.Change{{Fact: "time zone"}, {Fact: "host name"}, {Fact: "time zone"}}
	for _, c := range []struct {
		name    string
		prior   *hostModel
		is      string
		changes []host.Change
		says    string
	}{
		{"it moved", of("a"), "a", changes, ""},
		{"never looked at", &hostModel{factsModel: factsModel{Facts: types.ObjectNull(factsTypes())}}, "a", changes, ""},
		{"without an id", of("a"), "", changes, ""},
		{"another", of("a"), "b", changes, "192.0.2.2 has the machine id b, and the machine in the state (192.0.2.1) has a: it was replaced"},
		{"what differs", of("a"), "b", changes, "Apply would change there:\n  host name\n  time zone"},
		{"nothing differs", of("a"), "b", nil, "No declared value would be"},
	} {
		var diags diag.Diagnostics
		found := another(c.prior, facts.Facts{MachineID: c.is}, "192.0.2.2", c.changes, &diags)
		if found != (c.says != "") || found != (len(diags) == 1) || found && !strings.Contains(diags[0].Detail(), c.says) {
			t.Errorf("%s: %v %v", c.name, found, diags)
		}
	}
}
