package nvidia

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// apply observes and applies.
func (b *box) apply(t *testing.T, want Spec, hooks Hooks) (State, error) {
	t.Helper()
	ctx := context.Background()
	rec, err := host.OpenRecord(ctx, b, "gpu-driver")
	if errors.Is(err, host.ErrNoRecord) {
		rec, err = host.NewRecord(ctx, b, "gpu-driver", "id1", "metal_gpu_driver.a")
	}
	if err != nil {
		t.Fatal(err)
	}
	return Apply(ctx, b, rec, want, b.state(t, want), hooks)
}

// done applies and expects that nothing is left to do.
func (b *box) done(t *testing.T, want Spec, hooks Hooks) State {
	t.Helper()
	have, err := b.apply(t, want, hooks)
	if err != nil {
		t.Fatal(err)
	}
	if left := Diff(want, b.state(t, want)); len(left) > 0 {
		t.Fatalf("left: %v", left)
	}
	return have
}

// node is a machine with the driver, as a node of a cluster.
func node(t *testing.T, want Spec) *box {
	b := debian("12", h100, h100, nvsw).sees("linux-headers-6.1.0-40-amd64")
	b.units = map[string]string{kubelet: "active enabled", containerd: "active enabled"}
	b.extra = []string{"ctdversion 3", "ctdimports /etc/containerd/conf.d/"}
	b.done(t, want, b.hooks("580.95.05", true))
	b.drains, b.installs = 0, nil
	return b
}

func TestInstall(t *testing.T) {
	want := spec("580", fromNVIDIA)
	b := debian("12", h100, h100, nvsw).sees("linux-headers-6.1.0-40-amd64")
	b.units[containerd] = "active enabled"
	have := b.done(t, want, b.hooks("580.95.05", true))
	if len(have.GPUs) != 2 || have.Loaded != "580.95.05" || b.drains != 0 || b.reboots != 0 {
		t.Errorf("%d GPUs, loaded %s, %d drains, %d reboots", len(have.GPUs), have.Loaded, b.drains, b.reboots)
	}
	// the pin alone, first
	if len(b.installs) != 3 || len(b.installs[0].Packages) != 1 || b.installs[0].Pin != "nvidia-driver-pinning-580" {
		t.Errorf("installed %v", b.installs)
	}
	for _, p := range []string{"nvidia-open", "nvidia-driver-pinning-580", "nvidia-fabricmanager", "libnvidia-compute", "libnvidia-container1"} {
		if !slices.Contains(b.held, p) {
			t.Errorf("%s is not held", p)
		}
	}
	if !strings.Contains(string(b.Files[RuntimeFile].Content), "runtimes.nvidia") || b.runtime != Runtime {
		t.Error("containerd does not know the runtime")
	}
	// once more: nothing
	b.installs = nil
	b.done(t, want, Hooks{})
}

// TestUpgrade exchanges the module on a node with pods: they leave, plugin and
// services stop, and everything is back in the end.
func TestUpgrade(t *testing.T) {
	b := node(t, spec("580", fromNVIDIA))
	id := strings.Repeat("ab", 32)
	b.users = []string{"10\tnvidia-persiste\t/dev/nvidiactl\t", "11\tnvidia-device-p\t/dev/nvidiactl\t" + id}
	want := spec("580", fromNVIDIA, exactly("580.126.20"))
	if got := host.Greatest(Diff(want, b.state(t, want))); got != host.Drains {
		t.Errorf("upgrade %s", got)
	}
	have := b.done(t, want, b.hooks("580.126.20", true))
	if have.Loaded != "580.126.20" || b.drains != 1 || b.reboots != 0 || b.units[kubelet] != "active enabled" || len(b.stopped) > 0 {
		t.Errorf("loaded %s, %d drains, %d reboots, kubelet %s, stopped %v", have.Loaded, b.drains, b.reboots, b.units[kubelet], b.stopped)
	}
	if !slices.Equal(b.installs[0].Remove, []string{"nvidia-driver-pinning-580"}) {
		t.Errorf("the old pin stays: %v", b.installs[0])
	}
	if v := b.cdi[newCDIFile]; v != "580.126.20" {
		t.Errorf("CDI of %s", v)
	}
}

// TestKernelUpdate is an update of the kernel alone: the next one has no module.
func TestKernelUpdate(t *testing.T) {
	want := spec("580", fromNVIDIA)
	b := node(t, want)
	b.next = "6.1.0-41-amd64"
	b.kernels[b.next] = ""
	b.sees("linux-headers-6.1.0-41-amd64")
	changes := Diff(want, b.state(t, want))
	wantChanges := []host.Change{{Fact: "module of kernel 6.1.0-41-amd64, which boots next", Want: "580.95.05"}}
	if diff := cmp.Diff(wantChanges, changes); diff != "" {
		t.Error(diff)
	}
	if p := Check(want, b.state(t, want), true); len(p) > 0 {
		t.Errorf("problems: %v", p)
	}
	b.done(t, want, b.hooks("580.95.05", true))
	if b.drains != 0 || b.reboots != 0 || b.loaded != "580.95.05" {
		t.Errorf("%d drains, %d reboots, loaded %q", b.drains, b.reboots, b.loaded)
	}
}

func TestTrouble(t *testing.T) {
	for _, c := range []struct {
		name    string
		make    func(*box)
		want    Spec
		version string // that is installed; "" for 580.126.20
		fails   string // "" when it does not
		reboots int
	}{
		{"stuck, no reboot", func(b *box) { b.stuck = true }, spec("580", fromNVIDIA, exactly("580.126.20")), "", "a reboot would help and is not allowed", 0},
		{"stuck, may reboot", func(b *box) { b.stuck = true }, spec("580", fromNVIDIA, mayReboot, exactly("580.126.20")), "", "", 1},
		{"training, no reboot", func(b *box) { b.users = []string{"7\tpython3\t/dev/nvidia0\t"} }, spec("580", fromNVIDIA, exactly("580.126.20")), "", "python3 (process 7) uses /dev/nvidia0", 0},
		{"training, may reboot", func(b *box) { b.users = []string{"7\tpython3\t/dev/nvidia0\t"} }, spec("580", fromNVIDIA, mayReboot, exactly("580.126.20")), "", "", 1},
		{"broken", func(b *box) { b.broken = true }, spec("580", fromNVIDIA, exactly("580.126.20")), "", "RmInitAdapter failed", 0},
		{"broken for good", func(b *box) { b.broken = true }, spec("580", fromNVIDIA, mayReboot, exactly("580.126.20")), "", "after a reboot as well", 1},
		{"a GPU is lost", func(b *box) { b.lost = 1 }, spec("580", fromNVIDIA), "580.95.05", "nvidia-smi lists 1 of the 2 GPUs on the PCI bus: missing H100 SXM5 80GB at 0000:0", 0},
		{"a GPU stays lost", func(b *box) { b.lost = 1 }, spec("580", fromNVIDIA, mayReboot), "580.95.05", "after a reboot as well", 1},
		{"does not answer", func(b *box) { b.smi = "Unable to determine the device handle for GPU0" }, spec("580", fromNVIDIA), "580.95.05", "Unable to determine the device handle", 0},
		{"another version came", func(b *box) {}, spec("580", fromNVIDIA, exactly("580.126.20")), "580.95.05", "driver 580.95.05 is installed, not 580.126.20", 0},
		{"libraries changed by hand", func(b *box) { b.packages["libnvidia-compute"] = "580.126.20-1" }, spec("580", fromNVIDIA), "580.126.20", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := node(t, spec("580", fromNVIDIA))
			c.make(b)
			if len(Diff(c.want, b.state(t, c.want))) == 0 {
				t.Fatal("nothing differs")
			}
			_, err := b.apply(t, c.want, b.hooks(first(c.version, "580.126.20"), true))
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("%v, want %q", err, c.fails)
			}
			if b.reboots != c.reboots {
				t.Errorf("%d reboots", b.reboots)
			}
			if b.units[kubelet] != "active enabled" {
				t.Errorf("the kubelet is %s, stopped %v", b.units[kubelet], b.stopped)
			}
		})
	}
}

func TestNouveau(t *testing.T) {
	want := spec("580", fromNVIDIA, noToolkit)
	b := debian("12", r4090).sees("linux-headers-6.1.0-40-amd64")
	b.nouveau = true
	if p := Check(want, b.state(t, want), false); len(p) != 1 || p[0].Summary != "nouveau drives the GPUs" {
		t.Errorf("problems %v", p)
	}
	want.Reboot = IfNeeded
	if p := Check(want, b.state(t, want), false); len(p) != 0 {
		t.Errorf("problems %v", p)
	}
	if got := host.Greatest(Diff(want, b.state(t, want))); got != host.Reboots {
		t.Errorf("it %s", got)
	}
	b.done(t, want, b.hooks("580.126.20", true))
	if b.reboots != 1 || b.nouveau {
		t.Errorf("%d reboots, nouveau %v", b.reboots, b.nouveau)
	}
}

// TestKilled cuts apply off at every command, once; the next one finishes, and so does
// a destroy.
func TestKilled(t *testing.T) {
	want := spec("580", fromNVIDIA, exactly("580.126.20"))
	for try := 0; ; try++ {
		at, destroy := try/2, try%2 == 0
		b := node(t, spec("580", fromNVIDIA))
		delete(b.Files, RuntimeFile)
		b.runtime = ""
		b.users = []string{"10\tnvidia-persiste\t/dev/nvidiactl\t", "11\tnvidia-device-p\t/dev/nvidiactl\t" + strings.Repeat("ab", 32)}
		ctx, cut := context.WithCancel(context.Background())
		rec, err := host.OpenRecord(ctx, b, "gpu-driver")
		if err != nil {
			t.Fatal(err)
		}
		have, n := b.state(t, want), 0
		b.Answer = func(cmd host.Command) (hosttest.Answer, bool) {
			if n++; n > at {
				cut()
			}
			return b.answer(cmd)
		}
		_, err = Apply(ctx, b, rec, want, have, b.hooks("580.126.20", true))
		cut()
		b.Answer = b.answer
		if err == nil && n <= at {
			if at < 15 {
				t.Errorf("only %d commands", at)
			}
			return
		}
		if destroy {
			b.users = nil // by then
			b.destroyed(t)
			if b.units[kubelet] != "active enabled" || b.loaded != "" || b.runtime != "" {
				t.Errorf("cut off at command %d, then destroyed: kubelet %s, loaded %s, runtime %q", at, b.units[kubelet], b.loaded, b.runtime)
			}
			continue
		}
		b.done(t, want, b.hooks("580.126.20", true))
		if b.runtime != Runtime {
			t.Errorf("cut off at command %d: containerd does not know the runtime", at)
		}
		if b.units[kubelet] != "active enabled" || b.loaded != "580.126.20" || !slices.Contains(b.held, "nvidia-open") {
			t.Errorf("cut off at command %d: kubelet %s, loaded %s, held %v", at, b.units[kubelet], b.loaded, b.held)
		}
	}
}

// destroyed is a machine whose driver has gone, with nothing to be finished.
func (b *box) destroyed(t *testing.T) {
	t.Helper()
	if _, err := Restore(t.Context(), b, b.record(t), nil); err != nil {
		t.Fatal(err)
	}
	if keys := b.record(t).Keys(""); len(keys) > 0 || len(b.stopped) > 0 || b.unread {
		t.Errorf("left: %v in the record, %v stopped, to be restarted %v", keys, b.stopped, b.unread)
	}
}

// TestDestroyKilled cuts destroy off at every command, once; the next one finishes.
func TestDestroyKilled(t *testing.T) {
	for at := 0; ; at++ {
		b := node(t, spec("580", fromNVIDIA))
		ctx, cut := context.WithCancel(context.Background())
		rec, n := b.record(t), 0
		b.Answer = func(cmd host.Command) (hosttest.Answer, bool) {
			if n++; n > at {
				cut()
			}
			return b.answer(cmd)
		}
		_, err := Restore(ctx, b, rec, nil)
		cut()
		b.Answer = b.answer
		if err == nil && n <= at {
			if at < 8 {
				t.Errorf("only %d commands", at)
			}
			return
		}
		b.destroyed(t)
		if b.units[kubelet] != "active enabled" || b.loaded != "" || b.runtime != "" {
			t.Errorf("cut off at command %d: kubelet %s, loaded %s, runtime %q", at, b.units[kubelet], b.loaded, b.runtime)
		}
	}
}

// TestOlderDriverComesBack: the module of a driver that was there before goes into the
// kernel again with its packages, or the outcome says that it takes a reboot.
func TestOlderDriverComesBack(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		b := node(t, spec("580", fromNVIDIA))
		maps.DeleteFunc(b.Files, func(name string, _ ssh.File) bool { return strings.HasPrefix(name, host.Root) }) // it is somebody else's
		b.done(t, spec("580", fromNVIDIA, exactly("580.126.20")), b.hooks("580.126.20", true))
		b.units[hostengine] = "active enabled"
		outcomes, err := Restore(t.Context(), b, b.record(t), func(ctx context.Context) ([]host.Outcome, error) {
			b.stuck = stuck
			w := Target{Packages: []Package{{Name: "nvidia-open"}, {Name: "nvidia-driver-pinning-580"}}}
			return nil, b.hooks("580.95.05", true).Install(ctx, w)
		})
		if err != nil {
			t.Fatal(err)
		}
		said := outcomeLines(outcomes)
		if want := map[bool]string{true: "580.126.20", false: "580.95.05"}[stuck]; b.loaded != want || strings.Contains(said, "before a reboot") != stuck {
			t.Errorf("stuck %v: the kernel has %s:\n%s", stuck, b.loaded, said)
		}
		if b.units[kubelet] != "active enabled" || b.units[hostengine] != "active enabled" || len(b.stopped) > 0 {
			t.Errorf("stuck %v: %v, stopped %v", stuck, b.units, b.stopped)
		}
	}
}

func TestRestore(t *testing.T) {
	ctx := context.Background()
	want := spec("580", fromNVIDIA)
	b := debian("12", a100).sees("linux-headers-6.1.0-40-amd64")
	b.units[containerd] = "active enabled"
	b.held = []string{"vim"}
	b.done(t, want, b.hooks("580.126.20", true))
	rec, err := host.OpenRecord(ctx, b, "gpu-driver")
	if err != nil {
		t.Fatal(err)
	}
	uninstalled := false
	outcomes, err := Restore(ctx, b, rec, func(context.Context) ([]host.Outcome, error) {
		if b.loaded != "" || len(b.held) != 1 {
			t.Errorf("packages go while %q is loaded and %v held", b.loaded, b.held)
		}
		uninstalled = true
		return []host.Outcome{{Fact: "package nvidia-open", Fate: host.Removed}}, nil
	})
	if err != nil || !uninstalled {
		t.Fatal(err)
	}
	golden(t, "restore.golden", outcomeLines(outcomes))
	for _, f := range []string{NouveauFile, UpgradesFile, RuntimeFile} {
		if _, there := b.Files[f]; there {
			t.Errorf("%s is left", f)
		}
	}
	if keys := rec.Keys(""); len(keys) > 0 {
		t.Errorf("the record has %v", keys)
	}
}

func outcomeLines(outcomes []host.Outcome) string {
	var b strings.Builder
	for _, o := range outcomes {
		b.WriteString(o.Fact + ": " + string(o.Fate))
		if o.Why != "" {
			b.WriteString(" (" + o.Why + ")")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
