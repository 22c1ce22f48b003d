package metal

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/host"
)

// An apply makes no remarks: where none are taken they were a warning each, and the
// plan has made them.
func TestNoted(t *testing.T) {
	var diags diag.Diagnostics
	note(withoutNotes(t.Context()), &diags, providers.NoteFact, []string{"packages"}, "install jq 1.6")
	if len(diags) > 0 {
		t.Error(diags)
	}
	kept := false
	ctx := providers.WithCall(t.Context(), &providers.Call{Address: "metal_host.a", Keep: func() { kept = true }})
	if call := providers.CallFrom(withoutNotes(ctx)); call.Address != "metal_host.a" {
		t.Errorf("it forgets the call: %+v", call)
	}
	if providers.CallFrom(withoutNotes(ctx)).KeepOnError(); !kept {
		t.Error("what is to be kept is not")
	}
	if note(ctx, &diags, providers.NoteFact, nil, "x"); len(diags) != 1 {
		t.Errorf("a plan whose engine takes no remarks: %v", diags)
	}
}

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
