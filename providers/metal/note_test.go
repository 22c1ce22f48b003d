package metal

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/host"
)

// Destroying tells all that became of what was managed; what anybody expects to
// stay is no warning.
func TestTell(t *testing.T) {
	line := ""
	ctx := providers.WithCall(context.Background(), &providers.Call{Progress: func(p providers.Progress) { line = p.Line }})
	outcomes := []host.Outcome{
		{Fact: "package jq", Fate: host.Removed}, {Fact: "sysctl vm.swappiness", Fate: host.Restored}, {Fact: "package curl", Fate: host.Removed},
		{Fact: "swap", Fate: host.Restored}, {Fact: "file /etc/apt/preferences.d/stoke-host.pref", Fate: host.Removed}, {Fact: "kernel module vxlan", Fate: host.Left, Why: "it stays loaded", Expected: true},
	}
	const want = "restored: sysctl vm.swappiness; swap — removed: package curl, jq; file /etc/apt/preferences.d/stoke-host.pref — left: kernel module vxlan (it stays loaded)"
	var diags diag.Diagnostics
	if reportOutcomes(ctx, &diags, outcomes); line != want || len(diags) > 0 {
		t.Errorf("it tells %q, want %q, and warns %v", line, want, diags)
	}
	outcomes = append(outcomes, host.Outcome{Fact: "/var/lib/containerd", Fate: host.Left, Why: "it is containerd's"})
	reportOutcomes(ctx, &diags, outcomes)
	if len(diags) != 1 || !strings.HasSuffix(diags[0].Detail(), ":\n  - /var/lib/containerd: it is containerd's") || !strings.Contains(line, "left: /var/lib/containerd, ") {
		t.Errorf("it tells %q and warns %v", line, diags)
	}
}
