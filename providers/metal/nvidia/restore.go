package nvidia

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Restore undoes what Apply did: services, files and holds are as they were
// before, and the modules are out of the kernel if nobody uses them. Packages
// are taken back by uninstall, in between, when nothing uses them any more.
func Restore(ctx context.Context, m host.Machine, rec *host.Record, uninstall func(context.Context) ([]host.Outcome, error)) ([]host.Outcome, error) {
	have, err := Observe(ctx, m, Spec{})
	if err != nil {
		return nil, err
	}
	r := &restorer{m: m, rec: rec, have: have}
	for _, name := range restoredUnits {
		if err := r.stop(ctx, name); err != nil {
			return r.done, err
		}
	}
	for _, step := range []func(context.Context) error{r.unload, r.holds} {
		if err := step(ctx); err != nil {
			return r.done, err
		}
	}
	if uninstall != nil {
		outcomes, err := uninstall(ctx)
		r.done = append(r.done, outcomes...)
		if err != nil {
			return r.done, err
		}
	}
	if err := r.reload(ctx); err != nil {
		return r.done, err
	}
	if err := r.restart(ctx); err != nil {
		return r.done, err
	}
	// A unit that failed while its GPUs went away would stay listed as failed,
	// even where its file is gone.
	if _, _, err := host.Status(ctx, m, append([]string{"systemctl", "reset-failed", "--quiet"}, restoredUnits...)...); err != nil {
		return r.done, err
	}
	if err := r.files(ctx); err != nil {
		return r.done, err
	}
	return r.done, r.resume(ctx)
}

type restorer struct {
	m    host.Machine
	rec  *host.Record
	have State
	done []host.Outcome
}

// setUnit is given a unit and verbs of systemctl for the next boot and for now; - is
// none.
const setUnit = `# set a unit as it was
[ "$2" = - ] || systemctl --no-reload "$2" -- "$1" 2>/dev/null || :
[ "$3" = - ] || systemctl "$3" -- "$1" 2>&1`

// stop stops and disables a unit that did not run, or was not enabled, before.
func (r *restorer) stop(ctx context.Context, name string) error {
	var was Unit
	known, err := r.rec.ReadNote(keyUnit+name, &was)
	now := r.have.Units[name]
	if err != nil || !known || !now.Exists || was.Enabled == now.Enabled && was.Active == now.Active {
		return err
	}
	boot, run, fate := "-", "-", host.Restored
	if now.Enabled && !was.Enabled {
		boot = "disable"
	}
	if now.Active && !was.Active {
		run = "stop"
	}
	if !was.Active && !was.Enabled {
		fate = host.Removed
	}
	r.done = append(r.done, host.Outcome{Fact: name, Fate: fate})
	if boot == "-" && run == "-" {
		return nil
	}
	_, err = host.Script(ctx, r.m, setUnit, name, boot, run)
	return err
}

// restart enables and starts a unit that was enabled, or ran, before, once its
// package is as it was.
func (r *restorer) restart(ctx context.Context) error {
	var keys []string
	was := map[string]Unit{}
	for _, name := range restoredUnits {
		var w Unit
		known, err := r.rec.ReadNote(keyUnit+name, &w)
		if err != nil {
			return err
		}
		if known {
			keys = append(keys, keyUnit+name)
		}
		if w.Active || w.Enabled {
			was[name] = w
		}
	}
	if len(was) > 0 {
		have, err := Observe(ctx, r.m, Spec{})
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(was)) {
			now, boot, run := have.Units[name], "-", "-"
			if was[name].Enabled && !now.Enabled {
				boot = "enable"
			}
			if was[name].Active && !now.Active {
				run = "start"
			}
			if !now.Exists || boot == "-" && run == "-" {
				continue
			}
			out, status, err := host.Status(ctx, r.m, "sh", "-c", setUnit, "sh", name, boot, run)
			if err != nil {
				return err
			}
			if status != 0 {
				r.done = append(r.done, host.Outcome{Fact: name, Fate: host.Left, Why: "it ran before, and does not start now: " + strings.TrimSpace(string(out))})
			}
		}
	}
	return r.rec.Forget(ctx, keys...)
}

// reload brings the module of the driver that is back into the kernel, where that
// still has ours: nothing opens a GPU while the two differ.
func (r *restorer) reload(ctx context.Context) error {
	a := &applier{m: r.m, rec: r.rec}
	if err := a.look(ctx); err != nil {
		return err
	}
	now := a.have.Installed()
	if now == "" || a.have.Loaded == "" || a.have.Loaded == now {
		return nil
	}
	ours := a.have.Loaded
	if err := a.stopGPUUnits(ctx); err != nil { // resume starts them
		return err
	}
	for _, script := range []string{unload, insert} {
		_, status, err := host.Status(ctx, r.m, "sh", "-c", script, "sh")
		if err != nil {
			return err
		}
		if status != 0 {
			r.done = append(r.done, host.Outcome{Fact: "driver in the kernel", Fate: host.Left, Why: fmt.Sprintf("%s is installed again, and %s cannot make way for it: nothing can use the GPUs before a reboot", now, ours)})
			return nil
		}
	}
	r.done = append(r.done, host.Outcome{Fact: "driver in the kernel", Fate: host.Restored})
	return nil
}

// resume starts the services that were stopped for the GPUs and do not belong to the
// driver, now or by an interrupted run: the kubelet last.
func (r *restorer) resume(ctx context.Context) error {
	have, err := Observe(ctx, r.m, Spec{})
	if err != nil || len(have.Stopped) == 0 {
		return err
	}
	if slices.Contains(have.Stopped, hostengine) && have.Units[hostengine].Exists {
		out, status, err := host.Status(ctx, r.m, "sh", "-c", setUnit, "sh", hostengine, "-", "start")
		if err != nil {
			return err
		}
		if status != 0 {
			r.done = append(r.done, host.Outcome{Fact: hostengine, Fate: host.Left, Why: "it ran before, and does not start now: " + strings.TrimSpace(string(out))})
		}
	}
	var units []string
	if slices.Contains(have.Stopped, kubelet) {
		units = append(units, kubelet)
	}
	_, err = host.Script(ctx, r.m, again, units...)
	return err
}

// unload takes the modules out of the kernel unless a driver was there before.
func (r *restorer) unload(ctx context.Context) error {
	var before []string
	if known, err := r.rec.ReadNote(keyPackages, &before); err != nil || !known || len(before) > 0 || r.have.Loaded == "" {
		return err
	}
	_, err := host.Script(ctx, r.m, unload)
	if gone := host.Remove(ctx, r.m, modulesFile); gone != nil {
		return gone
	}
	if err != nil {
		r.done = append(r.done, host.Outcome{Fact: "driver in the kernel", Fate: host.Left, Why: "something uses it; " +
			"the next reboot unloads it"})
		return nil
	}
	r.done = append(r.done, host.Outcome{Fact: "driver in the kernel", Fate: host.Removed})
	return nil
}

func (r *restorer) holds(ctx context.Context) error {
	var before []string
	known, err := r.rec.ReadNote(keyHeld, &before)
	if err != nil || !known {
		return err
	}
	ours := slices.DeleteFunc(ofDriver(r.have.Held), func(name string) bool { return slices.Contains(before, name) })
	if len(ours) > 0 {
		if _, err := host.Script(ctx, r.m, unhold, ours...); err != nil {
			return fmt.Errorf("release packages: %w", err)
		}
	}
	if err := releaseKernels(ctx, r.m, r.rec, &r.have); err != nil {
		return err
	}
	r.done = append(r.done, host.Outcome{Fact: "holds of the driver's packages", Fate: host.Restored})
	return nil
}

func (r *restorer) files(ctx context.Context) error {
	kept := r.rec.KeptFiles()
	for _, name := range []string{NouveauFile, UpgradesFile, RuntimeFile, oldCDIFile} {
		if !slices.Contains(kept, name) {
			continue
		}
		if name == NouveauFile {
			if err := r.rec.Remember(ctx, keyInitramfs, true); err != nil {
				return err
			}
		}
		if name == RuntimeFile {
			if err := noteRestart(ctx, r.m, r.have); err != nil {
				return err
			}
			r.have.Unread = true
		}
		outcomes, err := r.rec.GiveBack(ctx, keyFile+name, name)
		if err != nil {
			return err
		}
		r.done = append(r.done, outcomes...)
	}
	if r.have.Unread && r.have.Units[containerd].Active {
		if err := reread(ctx, r.m); err != nil {
			return err
		}
	}
	if err := makeInitramfs(ctx, r.m, r.rec); err != nil {
		return err
	}
	if err := host.Remove(ctx, r.m, newCDIFile); err != nil { // under /run; the service that wrote it is gone
		return err
	}
	var made []string
	if _, err := r.rec.ReadNote(keyFolders, &made); err != nil {
		return err
	}
	if len(made) > 0 { // whoever has put something there keeps it
		if _, err := host.Script(ctx, r.m, `rmdir -- "$@" 2>/dev/null || :`, made...); err != nil {
			return err
		}
	}
	return r.rec.Forget(ctx, keyHeld, keyPackages, keyKernels, keyFolders)
}
