package metal

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/host"
)

// TestReplacedConfiguration: a plan shows what somebody wrote into a configuration
// that is replaced, as far as anybody reads, and that Docker loses its containerd.
func TestReplacedConfiguration(t *testing.T) {
	m, _, want := machineThatDeclares(t, `{"containerd": {}}`)
	m.Sh(`mkdir -p /etc/containerd; echo "active enabled" | tee /run/units/containerd.service >/run/units/docker.service
{ echo 'version = 2'; echo '[plugins."io.containerd.grpc.v1.cri"]'; echo '  sandbox_image = "mine.lan/pause:3.9"'; echo "  long = '$(printf %080d 0)'"; for i in 1 2 3 4 5 6 7 8 9; do echo "  mine$i = $i"; done; } >/etc/containerd/config.toml`)
	var said []string
	ctx := providers.WithCall(t.Context(), &providers.Call{Note: func(n providers.Note) { said = append(said, n.Text) }})
	var diags diag.Diagnostics
	changes := containerdSection{&settings{shared: newShared()}}.changes(ctx, m, want, &diags)
	if len(changes) != 1 || len(diags) > 0 {
		t.Errorf("%v %v", changes, diags)
	}
	const replaces = "replaces a foreign line: - "
	for _, says := range []string{replaces + `sandbox_image = "mine.lan/pause:3.9"`, replaces + "mine1 = 1", replaces + "and 3 lines more", "Docker loses containerd while it restarts, and connects again; its containers go on"} {
		if !slices.Contains(said, says) {
			t.Errorf("%q is not said: %q", says, said)
		}
	}
	if len(said) != maxLost+2 || slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, replaces) && len(s) > 100 }) {
		t.Errorf("it says %d lines: %q", len(said), said)
	}
}

// TestRuntimeKept: containerd's package is not taken from under what needs it.
func TestRuntimeKept(t *testing.T) {
	removed := []host.Change{{Fact: "package containerd.io is removed"}}
	declared := func(name string) containerdModel {
		m := containerdModel{Containerd: types.ObjectNull(nil), Images: types.MapNull(types.StringType)}
		switch name {
		case "containerd":
			m.Containerd = types.ObjectValueMust(map[string]attr.Type{}, map[string]attr.Value{})
		case "images":
			m.Images = types.MapValueMust(types.StringType, map[string]attr.Value{})
		}
		return m
	}
	for _, test := range []struct {
		declares string
		changes  []host.Change
		refused  bool
	}{
		{"containerd", removed, true}, {"images", removed, true}, {"", removed, false},
		{"containerd", []host.Change{{Fact: "package runc is removed"}}, false}, {"containerd", nil, false},
	} {
		var diags diag.Diagnostics
		m := declared(test.declares)
		if m.keepsRuntime(test.changes, &diags); diags.HasError() != test.refused {
			t.Errorf("%q with %v: %v", test.declares, test.changes, diags)
		}
	}
}
