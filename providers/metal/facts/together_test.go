package facts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// rack is n sound machines that differ in what has to differ.
func rack(t *testing.T, n int) map[string]Member {
	base := sound(t)
	members := map[string]Member{}
	for i := range n {
		f := base
		address := fmt.Sprintf("10.40.5.%d", i+1)
		f.Hostname, f.MachineID, f.BootID, f.ProductUUID = fmt.Sprintf("node-%d", i), fmt.Sprintf("%032x", i+1), fmt.Sprintf("boot-%d", i), fmt.Sprintf("uuid-%d", i)
		f.NICs = []NIC{
			{Name: "bond0", MAC: fmt.Sprintf("02:00:00:00:00:%02x", i), MTU: 9000, Addresses: []string{address + "/22"}},
			{Name: "docker0", MAC: "02:42:00:00:00:01", MTU: 1500, Addresses: []string{"172.17.0.1/16"}},
		}
		members[fmt.Sprintf("metal_host.n[%d]", i)] = Member{Facts: f, Address: address, Needs: Needs{Role: Worker, PodNetworks: []string{"10.244.0.0/16"}}}
	}
	return members
}

func TestTogether(t *testing.T) {
	list := hosttest.NewChecks(t, "together")
	const a, b, c = "metal_host.n[0]", "metal_host.n[1]", "metal_host.n[2]"
	for _, tt := range []struct {
		name   string
		change func(map[string]Member)
		want   []string
	}{
		{"nothing is wrong", func(map[string]Member) {}, []string{}},
		{"copied images", func(m map[string]Member) { edit(m, b, func(x *Member) { x.Facts.MachineID = m[a].Facts.MachineID }) },
			[]string{"error : Machines share a machine id: " + a + " " + b}},
		{"one machine twice", func(m map[string]Member) { edit(m, b, func(x *Member) { x.Facts = m[a].Facts }) },
			[]string{"error address: These resources are one machine: " + a + " " + b}},
		{"names", func(m map[string]Member) { edit(m, b, func(x *Member) { x.Facts.Hostname = "NODE-0" }) },
			[]string{"error hostname: Machines share a host name: " + a + " " + b}},
		{"a name that will be another", func(m map[string]Member) {
			edit(m, b, func(x *Member) { x.Facts.Hostname, x.Needs.Hostname = "node-0", "node-9" })
		}, []string{}},
		{"a name that will be the other's", func(m map[string]Member) { edit(m, b, func(x *Member) { x.Needs.Hostname = "node-0" }) },
			[]string{"error hostname: Machines share a host name: " + a + " " + b}},
		{"product UUIDs", func(m map[string]Member) { edit(m, b, func(x *Member) { x.Facts.ProductUUID = "uuid-0" }) },
			[]string{"warning : Machines share a product UUID: " + a + " " + b}},
		{"addresses", func(m map[string]Member) { edit(m, b, func(x *Member) { x.Address = m[a].Address }) },
			[]string{"error address: Machines share an address: " + a + " " + b}},
		{"an address on a second interface", func(m map[string]Member) {
			edit(m, b, func(x *Member) {
				x.Facts.NICs = append(x.Facts.NICs, NIC{Name: "eno1", MTU: 1500, Addresses: []string{"10.40.5.1/24"}})
			})
		}, []string{"error address: Machines hold the same address: " + a + " " + b}},
		{"an address that nobody goes to", func(m map[string]Member) {
			for _, n := range []string{a, b} {
				edit(m, n, func(x *Member) {
					x.Facts.NICs = append(x.Facts.NICs, NIC{Name: "bmc0", MTU: 1500, Addresses: []string{"169.254.3.1/24"}})
				})
			}
		}, []string{"warning address: Machines hold the same address: " + a + " " + b}},
		{"a clock ahead", func(m map[string]Member) { edit(m, c, func(x *Member) { x.Facts.Clock.Offset = 5.5 }) },
			[]string{"error time_sync: Clocks are too far apart: " + c}},
		{"a clock behind", func(m map[string]Member) { edit(m, a, func(x *Member) { x.Facts.Clock.Offset = -90 }) },
			[]string{"error time_sync: Clocks are too far apart: " + a}},
		{"ours is wrong, theirs are not", func(m map[string]Member) {
			for _, n := range []string{a, b, c} {
				edit(m, n, func(x *Member) { x.Facts.Clock.Offset = 3600 })
			}
		}, []string{}},
		{"a clock that could not be read well", func(m map[string]Member) {
			edit(m, c, func(x *Member) { x.Facts.Clock.Offset, x.Facts.Clock.Resolution = 5.5, 1 })
		}, []string{}},
		{"MTU", func(m map[string]Member) {
			edit(m, c, func(x *Member) {
				x.Facts.NICs = []NIC{{Name: "bond0", MTU: 1500, MAC: "02:00:00:00:00:02", Addresses: []string{x.Address + "/22"}}}
			})
		}, []string{"warning : Machines have different MTUs: " + a + " " + b + " " + c}},
		{"another's pods", func(m map[string]Member) {
			edit(m, a, func(x *Member) { x.Needs.PodNetworks = []string{"10.60.0.0/16"} })
			edit(m, c, func(x *Member) { x.Address = "10.60.0.3"; x.Facts.NICs[0].Addresses = []string{"10.60.0.3/24"} })
		}, []string{"error pod_network: Machines are inside a cluster's network: " + c}},
	} {
		m := rack(t, 3)
		tt.change(m)
		got := []string{}
		list.Case("%s", tt.name)
		for _, p := range CompareHosts(m) {
			say(list, []Problem{p.Problem})
			got = append(got, heads([]Problem{p.Problem})[0]+": "+strings.Join(p.Hosts, " "))
			if p.Detail == "" || strings.Contains(p.Detail, "%!") {
				t.Errorf("%s: detail %q", tt.name, p.Detail)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if got := CompareHosts(map[string]Member{"a": {}}); len(got) > 0 {
		t.Errorf("one machine: %v", got)
	}
}

func edit(m map[string]Member, name string, change func(*Member)) {
	x := m[name]
	change(&x)
	m[name] = x
}

// TestTogetherAll: everything that is wrong is said at once.
func TestTogetherAll(t *testing.T) {
	m := rack(t, 32)
	for name := range m {
		edit(m, name, func(x *Member) { x.Facts.Hostname, x.Facts.ProductUUID = "node", "one" })
	}
	edit(m, "metal_host.n[7]", func(x *Member) { x.Facts.Clock.Offset = 30 })
	if got := CompareHosts(m); len(got) != 3 || len(got[0].Hosts) != 32 {
		t.Errorf("got %+v", got)
	}
}
