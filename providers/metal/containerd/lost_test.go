package containerd

import (
	"slices"
	"testing"
)

// TestLost: what somebody wrote by hand is shown before it is replaced, and what is
// stoke's own is not.
func TestLost(t *testing.T) {
	have := Facts{Version: "1.7.28", Config: "# mine\nversion = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n\tsandbox_image   = \"mine.lan/pause:3.9\"\n"}
	if got := LostLines(Spec{Config: true}, have); !slices.Equal(got, []string{`sandbox_image = "mine.lan/pause:3.9"`}) {
		t.Errorf("by hand: %q", got)
	}
	own, _ := Rendered(Spec{Config: true, Sandbox: "a"}, have)
	have.Config = own
	if got := LostLines(Spec{Config: true}, have); len(got) > 0 {
		t.Errorf("stoke's own: %q", got)
	}
	if got := LostLines(Spec{Config: true}, Facts{Config: "version = 2\nroot = \"/data\"\nconfig_path = \"/etc/containerd/certs.d\"\n"}); !slices.Equal(got, []string{`root = "/data"`}) {
		t.Errorf("by hand, of a containerd that is to come: %q", got)
	}
	if got := LostLines(Spec{Config: true}, Facts{Version: "1.7.28"}); len(got) > 0 {
		t.Errorf("none: %q", got)
	}
}
