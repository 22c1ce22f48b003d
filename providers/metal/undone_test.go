package metal

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/stokehq/stoke/providers/metal/drain/draintest"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// TestUndeclared: what the record knows of and nobody declares any more is a
// planned change, with what taking it back interrupts; what is declared is none.
func TestUndeclared(t *testing.T) {
	list := hosttest.NewChecks(t, "undeclared")
	s := &settings{shared: newShared()}
	machine := &hosttest.Machine{}
	node := newNodeMachine(draintest.New(t, nil), "a")
	const all = `{"hostname": "a", "swap": "off", "timezone": "Etc/UTC", "kernel_modules": ["overlay"], "sysctl": {"net.ipv4.ip_forward": "1"}}`
	for _, on := range []struct {
		name   string
		m      host.Machine
		double *hosttest.Machine
	}{{"a machine", machine, machine}, {"a node", node, &node.Machine}} {
		rec, err := host.NewRecord(t.Context(), on.double, hostRecord, "recorded", "metal_host.a")
		if err == nil {
			err = rec.RememberAll(t.Context(), map[string]any{
				"system hostname": map[string]any{}, "system swap": map[string]any{}, "system timezone": "Europe/Berlin", "system module overlay": false,
				"system sysctl net.ipv4.ip_forward": "0",
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		declares := func(said string) *hostModel {
			m := &hostModel{}
			err := rec.Declare(t.Context(), json.RawMessage(said))
			if _, ok := loadDeclaredFromHost(t.Context(), rec, hostSchema(), m); err != nil || !ok {
				t.Fatal(err, said)
			}
			return m
		}
		drains := map[bool]host.Disruption{true: host.Drains}[on.double != machine]
		for _, c := range []struct {
			name, without string
			is            int
			most          host.Disruption
		}{
			{"all of it", "", 0, host.None},
			{"no host name", `"hostname": "a", `, 1, host.None},
			{"no swap", `"swap": "off", `, 1, host.ReloadsSystemd},
			{"no time zone", `"timezone": "Etc/UTC", `, 1, host.None},
			{"no modules", `"kernel_modules": ["overlay"], `, 1, host.None},
			{"no sysctl", `, "sysctl": {"net.ipv4.ip_forward": "1"}`, 1, drains},
			{"nothing", all[1 : len(all)-1], 5, max(drains, host.ReloadsSystemd)},
		} {
			want, diags := declares(strings.Replace(all, c.without, "", 1)), diag.Diagnostics{}
			got := plannedRestores(t.Context(), s, on.m, rec, want, &diags)
			if len(got) != c.is || host.Greatest(got) != c.most || len(diags) > 0 {
				t.Errorf("%s that declares %s: %v %v", on.name, c.name, got, diags)
			}
			list.Case("%s declares %s", on.name, c.name)
			list.Changes(got)
		}
		// containerd's configuration and proxy are files; the service stays as it is.
		if err := rec.Remember(t.Context(), "containerd service", map[string]bool{"Enabled": true, "Active": true}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"/etc/containerd/config.toml", "/etc/containerd/certs.d/docker.io/hosts.toml"} {
			if err := rec.Remember(t.Context(), "containerd file "+name, true); err != nil {
				t.Fatal(err)
			}
		}
		got := plannedRestores(t.Context(), s, on.m, rec, declares(all), new(diag.Diagnostics))
		if len(got) != 2 || host.Greatest(got) != host.RestartsContainer {
			t.Errorf("%s without a runtime: %v", on.name, got)
		}
		list.Case("%s declares no runtime", on.name)
		list.Changes(got)
	}
}
