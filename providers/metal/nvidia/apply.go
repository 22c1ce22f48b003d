package nvidia

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Hooks are what others do for Apply. All of them may be asked again.
type Hooks struct {
	// Install brings repositories and packages about, and removes what is in
	// the way.
	Install func(ctx context.Context, w Target) error
	// Drain is called before anything that pods could be hurt by; nil: nobody
	// has to leave.
	Drain func(ctx context.Context) error
	// Reboot restarts the machine and waits for its next life; nil: it must not.
	Reboot func(ctx context.Context) error
}

// Apply brings the declared driver about, from the state that Observe found, and
// returns the state that it leaves. Whatever had been done before is found by
// looking. It ends with the driver itself: that nvidia-smi lists every GPU.
func Apply(ctx context.Context, m host.Machine, rec *host.Record, want Spec, have State, hooks Hooks) (State, error) {
	a := &applier{m: m, rec: rec, want: want, have: have, hooks: hooks}
	if err := a.remember(ctx); err != nil { // what is right by now may be changed by hand later
		return have, err
	}
	undone := len(Table.Undeclared(rec, want)) > 0
	if len(Diff(want, have)) == 0 && !undone {
		return have, nil
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"give back what is no longer declared", a.release},
		{"blacklist nouveau", a.blacklist},
		{"free the GPUs", a.freeGPUs},
		{"install the driver", a.install},
		{"build modules", a.build},
		{"hold packages", a.hold},
		{"load the driver", a.load},
		{"start services", a.start},
		{"ask the driver", a.verify},
		{"give containers their GPUs", a.containers},
		{"start the kubelet", a.resume},
	} {
		host.Step(ctx, "%s", step.name)
		if err := step.do(ctx); err != nil {
			a.resume(ctx) // as far as it goes; what is still stopped is a difference in the next plan
			return a.have, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	if left := Diff(want, a.have); len(left) > 0 {
		return a.have, fmt.Errorf("%s: still not as declared: %s", m.Name(), describeChanges(left))
	}
	return a.have, nil
}

func describeChanges(changes []host.Change) string {
	var all []string
	for _, c := range changes {
		all = append(all, fmt.Sprintf("%s is %q, not %q", c.Fact, c.Have, c.Want))
	}
	return strings.Join(all, "; ")
}

type applier struct {
	m     host.Machine
	rec   *host.Record
	want  Spec
	have  State
	hooks Hooks
	empty bool // pods have left
}

func (a *applier) drain(ctx context.Context) error {
	if a.empty || a.hooks.Drain == nil {
		return nil
	}
	err := a.hooks.Drain(ctx)
	a.empty = err == nil
	return err
}

func (a *applier) look(ctx context.Context) (err error) {
	have, err := Observe(ctx, a.m, a.want)
	if err == nil {
		a.have = have
	}
	return err
}

// Keys in the record.
const (
	keyHeld      = "nvidia held"
	keyPackages  = "nvidia packages"
	keyKernels   = "nvidia kernels held"
	keyUnit      = "nvidia unit "
	keyFile      = "nvidia file "
	keyFolders   = "nvidia folders"
	keyInitramfs = "nvidia initramfs is due"
)

// restoredUnits are those that are as before when the driver is gone.
var restoredUnits = []string{persistenced, fabricmanager, cdiRefreshPath, cdiRefresh}

func (a *applier) remember(ctx context.Context) error {
	if err := a.rec.RememberAll(ctx, map[string]any{
		keyHeld: ofDriver(a.have.Held), keyPackages: a.have.Driver(),
		keyKernels: slices.DeleteFunc(a.have.metapackages(), func(name string) bool { return !a.have.holds(name) }),
	}); err != nil {
		return err
	}
	return Table.Note(ctx, a.rec, a.want, a.have)
}

// put writes one of this package's files, once what was there is kept.
func (a *applier) put(ctx context.Context, name, content string) (changed bool, err error) {
	if was, there := a.have.Files[name]; there && was == content {
		return false, nil
	}
	if name == RuntimeFile {
		if err := a.folders(ctx); err != nil {
			return false, err
		}
	}
	if err = a.rec.WriteFile(ctx, name, []byte(content)); err == nil {
		a.have.Files[name] = content
	}
	return true, err
}

const absent = `for d in "$@"; do [ -d "$d" ] || echo "$d"; done`

// folders makes the folders that containerd would have, if it is not installed
// yet.
func (a *applier) folders(ctx context.Context) error {
	out, err := host.Script(ctx, a.m, absent, "/etc/containerd/conf.d", "/etc/containerd")
	missing := strings.Fields(string(out))
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := a.rec.Remember(ctx, keyFolders, missing); err != nil {
		return err
	}
	_, err = host.Run(ctx, a.m, "mkdir", "-p", "--", missing[0])
	return err
}

const initramfs = `command -v update-initramfs >/dev/null || exit 0; exec update-initramfs -u -k all`

// blacklist keeps nouveau away, in the initramfs as well: there it would be
// loaded before the root file system is there to say otherwise.
func (a *applier) blacklist(ctx context.Context) error {
	changed := false
	if content, declared := a.want.files(a.have)[NouveauFile]; declared {
		var err error
		if changed, err = a.put(ctx, NouveauFile, content); err != nil {
			return err
		}
	}
	if !changed && (!a.want.NoNouveau || len(a.have.OldInitrd) == 0) {
		return nil
	}
	_, err := host.Script(ctx, a.m, initramfs)
	return err
}

// stopUnits stops units and writes down which ran, first, so that the next apply can
// start them if this one does not come so far.
const stopUnits = `# stop what uses the GPUs
set -e
umask 077
for u in "$@"; do systemctl is-active -q "$u" && echo "$u" >> /run/stoke-gpu-stopped || :; done
[ ! -e /run/stoke-gpu-stopped ] || sort -u -o /run/stoke-gpu-stopped /run/stoke-gpu-stopped
for u in "$@"; do systemctl stop -- "$u" 2>/dev/null || ! systemctl is-active -q "$u"; done`

// endProcesses asks processes of containers that have a GPU's device open to end, and
// ends them half a minute later. The kubelet is stopped: it starts them again
// once it is back.
const endProcesses = `# wait until the GPUs are free
gone() { for p in "$@"; do find /proc/"$p"/fd -maxdepth 1 -lname '/dev/nvidia*' 2>/dev/null | grep -q . && return 1; done; return 0; }
for p in "$@"; do find /proc/"$p"/fd -maxdepth 1 -lname '/dev/nvidia*' 2>/dev/null | grep -q . && kill -TERM "$p" 2>/dev/null; done
i=0; while [ $i -lt 60 ] && ! gone "$@"; do sleep 0.5; i=$((i+1)); done
gone "$@" || for p in "$@"; do find /proc/"$p"/fd -maxdepth 1 -lname '/dev/nvidia*' 2>/dev/null | grep -q . && kill -KILL "$p" 2>/dev/null; done; :`

// freeGPUs stops everything that keeps the loaded module: pods (which were
// drained before, except pods of DaemonSets: plugin and exporter), the driver's
// own services; it rejects the work while other programs use the GPUs.
func (a *applier) freeGPUs(ctx context.Context) error {
	if !a.have.exchanges(a.want) {
		return nil
	}
	if users := a.have.ForeignProcesses(); len(users) > 0 && (a.hooks.Reboot == nil || a.want.Reboot != IfNeeded) {
		return fmt.Errorf("%s: %s, and a reboot is not allowed: stop what uses the GPUs, or set reboot = \"if-needed\"", a.m.Name(), describe(users))
	}
	if err := a.drain(ctx); err != nil {
		return err
	}
	return a.stopGPUUnits(ctx)
}

// stopGPUUnits stops the services that hold the module, and what is left of containers.
// Packages start services again, so that it is done before installing and before
// unloading.
func (a *applier) stopGPUUnits(ctx context.Context) error {
	var units []string
	for _, u := range []string{kubelet, hostengine, fabricmanager, persistenced} { // the kubelet first: it would start pods again
		if a.have.Units[u].Active {
			units = append(units, u)
		}
	}
	if len(units) > 0 {
		if _, err := host.Script(ctx, a.m, stopUnits, units...); err != nil {
			return err
		}
	}
	if err := a.look(ctx); err != nil {
		return err
	}
	var pids []string
	for _, u := range a.have.Users {
		if u.Container != "" {
			pids = append(pids, fmt.Sprint(u.PID))
		}
	}
	if len(pids) == 0 {
		return nil
	}
	_, err := host.Script(ctx, a.m, endProcesses, pids...)
	return err
}

const unhold = `[ $# = 0 ] || apt-mark unhold -- "$@" >/dev/null`

// install has the packages installed: NVIDIA's pin first, so that apt chooses
// the others by it.
func (a *applier) install(ctx context.Context) error {
	w, err := a.want.Want(a.have)
	if err != nil {
		return err
	}
	if held := a.have.heldPackages(); len(held) > 0 && !a.have.ready(a.want) {
		if _, err := host.Script(ctx, a.m, unhold, held...); err != nil {
			return err
		}
	}
	if w.Pin != "" && a.have.Packages[w.Pin] == "" {
		first := Target{Sources: w.Sources, Pin: w.Pin, Packages: []Package{{Name: w.Pin}}, Remove: slices.DeleteFunc(slices.Clone(w.Remove), func(name string) bool { return !strings.HasPrefix(name, pinning) })}
		for _, name := range a.have.Driver() { // as it is, for the moment
			if !slices.Contains(first.Remove, name) {
				first.Packages = append(first.Packages, Package{Name: name})
			}
		}
		if err := a.hooks.Install(ctx, first); err != nil {
			return err
		}
		if err := a.look(ctx); err != nil { // now that the repositories are there
			return err
		}
		if w, err = a.want.Want(a.have); err != nil {
			return err
		}
	}
	if err := a.hooks.Install(ctx, w); err != nil {
		return err
	}
	if err := a.look(ctx); err != nil {
		return err
	}
	// What came along is the driver's as well, and is pinned and held with it.
	whole, err := a.want.Want(a.have)
	if err != nil || reflect.DeepEqual(whole, w) {
		return err
	}
	if err := a.hooks.Install(ctx, whole); err != nil {
		return err
	}
	return a.look(ctx)
}

const autoinstall = `dkms autoinstall -k "$1" || { cat /var/lib/dkms/nvidia*/*/build/make.log 2>/dev/null | tail -n 20 >&2; exit 1; }`

func (a *applier) build(ctx context.Context) error {
	if a.want.precompiled(a.have) {
		return nil
	}
	built := false
	for _, k := range a.have.neededPackages() {
		if a.have.kernel(k).Version == a.have.Installed() || a.have.Packages["dkms"] == "" {
			continue
		}
		if _, err := host.Script(ctx, a.m, autoinstall, k); err != nil {
			return fmt.Errorf("kernel %s: %w", k, err)
		}
		built = true
	}
	if !built {
		return nil
	}
	return a.look(ctx)
}

// releaseKernels takes the holds of kernels back that the record has no earlier hold of.
func releaseKernels(ctx context.Context, m host.Machine, rec *host.Record, have *State) error {
	var before []string
	known, err := rec.ReadNote(keyKernels, &before)
	ours := slices.DeleteFunc(have.metapackages(), func(name string) bool { return !have.holds(name) || slices.Contains(before, name) })
	if err != nil || !known || len(ours) == 0 {
		return err
	}
	if _, err := host.Script(ctx, m, unhold, ours...); err != nil {
		return fmt.Errorf("release kernels: %w", err)
	}
	have.Held = slices.DeleteFunc(have.Held, func(name string) bool { return slices.Contains(ours, name) })
	return nil
}

const hold = `[ $# = 0 ] || apt-mark hold -- "$@" >/dev/null`

// hold keeps apt and unattended-upgrades from changing one part of the driver
// without the others, and from bringing a kernel without modules. A driver whose modules dkms builds
// holds no kernel.
func (a *applier) hold(ctx context.Context) error {
	if _, err := a.put(ctx, UpgradesFile, a.have.upgrades()); err != nil {
		return err
	}
	if len(a.have.kernels()) == 0 {
		if err := releaseKernels(ctx, a.m, a.rec, &a.have); err != nil {
			return err
		}
	}
	free := a.have.notHeld()
	if len(free) == 0 {
		return nil
	}
	if _, err := host.Script(ctx, a.m, hold, free...); err != nil {
		return err
	}
	a.have.Held = append(a.have.Held, free...)
	return nil
}
