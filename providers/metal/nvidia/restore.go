package nvidia

import (
	"context"
	"fmt"
	"slices"

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
		if err := r.unit(ctx, name); err != nil { // what did not run before is stopped
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
	// A unit that failed while its GPUs went away would stay listed as failed,
	// even where its file is gone.
	if _, _, err := host.Status(ctx, m, append([]string{"systemctl", "reset-failed", "--quiet"}, restoredUnits...)...); err != nil {
		return r.done, err
	}
	return r.done, r.files(ctx)
}

type restorer struct {
	m    host.Machine
	rec  *host.Record
	have State
	done []host.Outcome
}

func (r *restorer) unit(ctx context.Context, name string) error {
	var was Unit
	known, err := r.rec.Was(keyUnit+name, &was)
	if err != nil || !known {
		return err
	}
	now := r.have.Units[name]
	fate := host.Restored
	if now.Exists && !was.Active && !was.Enabled && (now.Active || now.Enabled) {
		if _, err := host.Script(ctx, r.m, disable, name); err != nil {
			return err
		}
		fate = host.Removed
	}
	if now.Exists {
		r.done = append(r.done, host.Outcome{Fact: name, Fate: fate})
	}
	return r.rec.Forget(ctx, keyUnit+name)
}

// unload takes the modules out of the kernel unless a driver was there before.
func (r *restorer) unload(ctx context.Context) error {
	var before []string
	if known, err := r.rec.Was(keyPackages, &before); err != nil || !known || len(before) > 0 || r.have.Loaded == "" {
		return err
	}
	_, err := host.Script(ctx, r.m, unload)
	if gone := host.Remove(ctx, r.m, modulesFile); gone != nil {
		return gone
	}
	if err != nil {
		r.done = append(r.done, host.Outcome{Fact: "driver in the kernel", Fate: host.Left, Why: "something uses it; it goes with the next reboot"})
		return nil
	}
	r.done = append(r.done, host.Outcome{Fact: "driver in the kernel", Fate: host.Removed})
	return nil
}

func (r *restorer) holds(ctx context.Context) error {
	var before []string
	known, err := r.rec.Was(keyHeld, &before)
	if err != nil || !known {
		return err
	}
	ours := slices.DeleteFunc(ofDriver(r.have.Held), func(name string) bool { return slices.Contains(before, name) })
	if len(ours) > 0 {
		if _, err := host.Script(ctx, r.m, unhold, ours...); err != nil {
			return fmt.Errorf("release packages: %w", err)
		}
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
		outcomes, err := r.rec.GiveBack(ctx, keyFile+name, name)
		if err != nil {
			return err
		}
		r.done = append(r.done, outcomes...)
		if name == RuntimeFile && r.have.Units[containerd].Active {
			if _, err := host.Run(ctx, r.m, "systemctl", "restart", containerd); err != nil {
				return err
			}
		}
	}
	if err := makeInitramfs(ctx, r.m, r.rec); err != nil {
		return err
	}
	if err := host.Remove(ctx, r.m, newCDIFile); err != nil { // under /run; the service that wrote it is gone
		return err
	}
	var made []string
	if _, err := r.rec.Was(keyFolders, &made); err != nil {
		return err
	}
	if len(made) > 0 { // whoever has put something there keeps it
		if _, err := host.Script(ctx, r.m, `rmdir -- "$@" 2>/dev/null || :`, made...); err != nil {
			return err
		}
	}
	return r.rec.Forget(ctx, keyHeld, keyPackages, keyFolders)
}
