package nvidia

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDeclared: what is imported is declared as it is, so that no driver has to
// change for it.
func TestDeclared(t *testing.T) {
	const generic = "6.8.0-51-generic"
	closed := ubuntu(generic, a100).with("linux-image-generic", "libnvidia-compute-535-server=535.261.03-0ubuntu1", "nvidia-utils-535-server=535.261.03-0ubuntu1", "linux-modules-nvidia-535-server-"+generic)
	closed.loaded, closed.kernels[generic] = "535.261.03", "535.261.03"
	desktop := ubuntu(generic, r4090).with("libnvidia-compute-580=580.95.05-0ubuntu1", "nvidia-utils-580=580.95.05-0ubuntu1")
	desktop.kernels[generic] = "580.95.05" // and not loaded
	desktop.open, desktop.off = true, true
	theirs := debian("12", h100, nvsw).with("nvidia-open=580.126.20-1", "libcuda1=580.126.20-1", "nvidia-container-toolkit=1.17.8-1", "nvidia-driver-pinning-580=580.126.20-1")
	theirs.loaded, theirs.loadedOpen, theirs.open, theirs.kernels[theirs.running] = "580.126.20", true, true, "580.126.20"
	theirs.units[persistenced] = "active enabled"
	for _, c := range []struct {
		name string
		box  *box
		want Spec
	}{
		{"Ubuntu's, proprietary", closed, Spec{Branch: "535", Modules: Proprietary, Source: Distribution, Server: true}},
		{"Ubuntu's, for a desktop", desktop, Spec{Branch: "580", Modules: Open, Source: Distribution, NoNouveau: true}},
		{"NVIDIA's", theirs, Spec{Branch: "580", Modules: Open, Source: NVIDIA, Toolkit: "1.17.8", Persistence: true}},
	} {
		c.want.FabricManager, c.want.Reboot = Auto, Never
		have := c.box.state(t, Spec{})
		got := have.AsSpec()
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(Spec{})); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, change := range Diff(got, c.box.state(t, got)) {
			switch change.Fact {
			case "driver", "kernel modules", "container toolkit":
				t.Errorf("%s: %+v", c.name, change)
			}
		}
		if w, err := got.Want(have); err != nil || len(w.Remove) > 0 {
			t.Errorf("%s: %v would go, %v", c.name, w.Remove, err)
		}
	}
}
