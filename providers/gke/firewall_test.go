package gke

import (
	"maps"
	"strings"
	"testing"

	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

func ssh(more map[string]any) map[string]any {
	all := map[string]any{"name": "ssh", "source_ranges": []any{"10.0.0.0/8"}, "description": "From the office.\nAnd its lab.",
		"allow": []any{map[string]any{"protocol": "tcp", "ports": []any{"22"}}, map[string]any{"protocol": "icmp"}}}
	maps.Copy(all, more)
	return all
}

// TestFirewallRuleChecks: what Google would refuse, or would take for everybody, is
// said by the plan.
func TestFirewallRuleChecks(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	allow := func(protocol string, ports ...any) []any {
		return []any{map[string]any{"protocol": protocol, "ports": ports}}
	}
	for _, test := range []struct {
		name, summary string // "" for what is fine
		given         map[string]any
	}{
		{"everybody", "Open to all addresses", map[string]any{"source_ranges": []any{"0.0.0.0/0"}}},
		{"everybody of IPv6", "Open to all addresses", map[string]any{"source_ranges": []any{"::0/0"}}},
		{"everybody kept out", "", map[string]any{"source_ranges": []any{"0.0.0.0/0"}, "allow": []any{}, "deny": allow("all")}},
		{"nobody", "Rule would match all addresses", map[string]any{"source_ranges": []any{}}},
		{"nobody, with tags", "Rule would match all addresses", map[string]any{"source_ranges": []any{}, "target_tags": []any{"gpu"}}},
		{"machines alone", "", map[string]any{"source_ranges": []any{}, "source_tags": []any{"bastion"}}},
		{"no range", "Not a range of addresses", map[string]any{"source_ranges": []any{"10.0.0.0/33"}}},
		{"a name", "Not a range of addresses", map[string]any{"source_ranges": []any{"office"}}},
		{"bits behind the mask", "Range has bits behind its mask", map[string]any{"source_ranges": []any{"10.0.0.1/8"}}},
		{"both kinds", "IPv4 and IPv6 in one rule", map[string]any{"source_ranges": []any{"10.0.0.0/8", "2001:db8::/32"}}},
		{"an address", "", map[string]any{"source_ranges": []any{"203.0.113.7"}}},
		{"no destination", "Not a range of addresses", map[string]any{"destination_ranges": []any{"10.0.0.0/"}}},
		{"tags with accounts", "Tags and service accounts in one rule", map[string]any{"source_tags": []any{"a"}, "target_service_accounts": []any{"a@b.iam.gserviceaccount.com"}}},
		{"ports of ICMP", "Protocol has no ports", map[string]any{"allow": allow("icmp", "8")}},
		{"no port", "Not a port", map[string]any{"allow": allow("tcp", "ssh")}},
		{"too high", "Not a port", map[string]any{"allow": allow("tcp", "1-70000")}},
		{"backwards", "Not a port", map[string]any{"allow": allow("tcp", "200-100")}},
		{"large letters", "", map[string]any{"allow": allow("TCP", "100-200", "22")}},
		{"neither", "Neither allow nor deny, or both", map[string]any{"allow": []any{}}},
		{"both", "Neither allow nor deny, or both", map[string]any{"deny": allow("tcp")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := w.conf("gke_firewall_rule", ssh(test.given))
			pl := w.plan(thing{kind: "gke_firewall_rule"}, config)
			if test.summary != "" {
				warning := test.summary == "Open to all addresses"
				if len(pl.Diagnostics) != 1 || pl.Diagnostics[0].Summary != test.summary || pl.Diagnostics.HasErrors() == warning {
					t.Errorf("plans %v", pl.Diagnostics)
				}
				return
			}
			if len(pl.Diagnostics) > 0 {
				t.Fatal(pl.Diagnostics)
			}
			it := w.empty(w.make(thing{kind: "gke_firewall_rule"}, config), config)
			if r := w.destroy(it); r.Diagnostics.HasErrors() {
				t.Error(r.Diagnostics)
			}
		})
	}
}

// TestFirewallRuleImported: what only an import has is shown, and is left as it is by
// a change of something else.
func TestFirewallRuleImported(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	path := "projects/stoke-test/global/firewalls/theirs"
	rule := &compute.Firewall{Name: "theirs", Network: "https://www.googleapis.com/compute/v1/projects/stoke-test/global/networks/default", Direction: "INGRESS", Priority: 900,
		SourceRanges: []string{"10.0.0.0/8"}, SourceTags: []string{"bastion"}, TargetTags: []string{"gpu"}, DestinationRanges: []string{"10.8.0.0/16"},
		Allowed: []*compute.FirewallAllowed{{IPProtocol: "tcp", Ports: []string{"22"}}}, LogConfig: &compute.FirewallLogConfig{Enable: true, Metadata: "EXCLUDE_ALL_METADATA"}}
	w.google.Put(path, rule)
	given := map[string]any{"name": "theirs", "source_ranges": []any{"10.0.0.0/8"}, "source_tags": []any{"bastion"}, "target_tags": []any{"gpu"}, "destination_ranges": []any{"10.8.0.0/16"},
		"allow": []any{map[string]any{"protocol": "tcp", "ports": []any{"22"}}}}
	it := w.empty(w.importing("gke_firewall_rule", "theirs"), w.conf("gke_firewall_rule", given))
	given["priority"] = 0
	it = w.make(it, w.conf(it.kind, given))
	w.empty(it, w.conf(it.kind, given))
	now := w.object(path).Value.(*compute.Firewall)
	if now.Priority != 0 || now.LogConfig.Metadata != "EXCLUDE_ALL_METADATA" || len(now.SourceTags)+len(now.DestinationRanges) != 2 {
		t.Errorf("a change of the priority makes it %+v", now)
	}
	given["allow"], given["deny"] = []any{}, []any{map[string]any{"protocol": "tcp"}}
	delete(given, "source_tags")
	it = w.make(it, w.conf(it.kind, given))
	w.empty(it, w.conf(it.kind, given))

	rule.Name, rule.Direction = "out", "EGRESS"
	w.google.Put("projects/stoke-test/global/firewalls/out", rule)
	r := w.phase().Import(t.Context(), providers.ImportRequest{Type: it.kind, ID: "out"})
	if !r.Diagnostics.HasErrors() {
		read := w.phase().Read(t.Context(), providers.ReadRequest{Type: it.kind, State: r.Objects[0].State, Private: r.Objects[0].Private})
		if !read.Diagnostics.HasErrors() || !strings.Contains(read.Diagnostics[0].Detail, "EGRESS") {
			t.Errorf("a rule for what goes out is imported: %v", read.Diagnostics)
		}
	}
}
