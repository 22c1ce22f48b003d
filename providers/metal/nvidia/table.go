package nvidia

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Table is what this package itself looks after, beside the packages: files, and
// the services that are as before when the driver is gone.
var Table = host.Table[Spec, State]{
	{
		Key:   keyFile,
		Names: func(want Spec, have State) []string { return slices.Sorted(maps.Keys(want.files(have))) },
		Was:   func(_ Spec, have State, name string) any { _, there := have.Files[name]; return there },
		Files: func(name string) []string { return []string{name} },
		Diff:  diffFiles,
		Back: func(rec *host.Record, name string) host.Change {
			c := host.Becomes("file")(rec, name)
			if rec.KeptAbsent(name) {
				c.Fact = "file " + name + " is removed"
			}
			if name == RuntimeFile {
				c.Disruption = host.RestartsContainer
			}
			return c
		},
	},
	{
		Key: keyUnit,
		// Whether the others run is declared both ways.
		Names: func(want Spec, _ State) []string {
			return slices.DeleteFunc(slices.Clone(restoredUnits), func(name string) bool { return want.Toolkit == "" && ofToolkit(name) })
		},
		Was:  func(_ Spec, have State, name string) any { return have.Units[name] },
		Diff: diffServices,
		Back: host.Becomes(""),
	},
}

func diffFiles(want Spec, have State) []host.Change {
	d := differ{want: want, have: have}
	files := want.files(have)
	for _, name := range []string{NouveauFile, UpgradesFile, RuntimeFile} {
		content, declared := files[name]
		if !declared || have.Files[name] == content {
			continue
		}
		is, disruption := "", host.None
		if _, there := have.Files[name]; there {
			is = "changed"
		}
		switch {
		case name == RuntimeFile && have.Units[containerd].Active:
			disruption = host.RestartsContainer
		case name == NouveauFile && have.NouveauBusy:
			disruption = host.Reboots
		}
		d.add("file "+name, nil, is, "as declared", disruption)
	}
	return d.changes
}

func diffServices(want Spec, have State) []host.Change {
	d := differ{want: want, have: have}
	u := have.Units[persistenced]
	switch {
	case want.Persistence && !u.runs():
		d.add("persistence daemon", []string{"persistence"}, u.word(), "running and enabled", host.None)
	case !want.Persistence && u.Active:
		d.add("persistence daemon", []string{"persistence"}, u.word(), "stopped", host.None)
	}
	return d.changes
}

// Undoing is what Apply gives back because the record knows of it and want does not
// declare it: the runtime of containers without a toolkit, the blacklist of nouveau.
func Undoing(rec *host.Record, want Spec, have State) []host.Change {
	changes := Table.Undoing(rec, want)
	for i, c := range changes {
		if c.Disruption == host.RestartsContainer && !have.Units[containerd].Active {
			changes[i].Disruption = host.None
		}
	}
	return slices.DeleteFunc(changes, func(c host.Change) bool {
		unit, _, _ := strings.Cut(c.Fact, " ")
		return ofToolkit(unit) && !have.Units[unit].Active && !have.Units[unit].Enabled
	})
}

// ofToolkit are the services that come with the toolkit.
func ofToolkit(unit string) bool { return unit == cdiRefresh || unit == cdiRefreshPath }

// release gives back the files that are not declared any more. Containerd must not
// point at a runtime whose package is about to go.
func (a *applier) release(ctx context.Context) error {
	for _, key := range Table.Undeclared(a.rec, a.want) {
		name, isFile := strings.CutPrefix(key, keyFile)
		if !isFile { // before the package goes, which would leave it enabled
			r := restorer{m: a.m, rec: a.rec, have: a.have}
			if err := r.stop(ctx, strings.TrimPrefix(key, keyUnit)); err != nil {
				return err
			}
			if err := a.rec.Forget(ctx, key); err != nil {
				return err
			}
			continue
		}
		if name == NouveauFile {
			if err := a.rec.Remember(ctx, keyInitramfs, true); err != nil {
				return err
			}
		}
		if name == RuntimeFile {
			if err := noteRestart(ctx, a.m, a.have); err != nil {
				return err
			}
		}
		if _, err := a.rec.RestoreFile(ctx, name); err != nil {
			return err
		}
		if name == RuntimeFile { // with it goes what said which devices it gives out
			if err := a.releaseCDI(ctx); err != nil {
				return err
			}
		}
		if name == RuntimeFile && a.have.Units[containerd].Active {
			a.have.Unread = false
			if err := reread(ctx, a.m); err != nil {
				return err
			}
		}
		if err := a.rec.Forget(ctx, key); err != nil {
			return err
		}
	}
	return makeInitramfs(ctx, a.m, a.rec)
}

func (a *applier) releaseCDI(ctx context.Context) error {
	if slices.Contains(a.rec.KeptFiles(), oldCDIFile) {
		if _, err := a.rec.RestoreFile(ctx, oldCDIFile); err != nil {
			return err
		}
	}
	return host.Remove(ctx, a.m, newCDIFile)
}

func makeInitramfs(ctx context.Context, m host.Machine, rec *host.Record) error {
	due := false
	if _, err := rec.ReadNote(keyInitramfs, &due); err != nil || !due {
		return err
	}
	if _, err := host.Script(ctx, m, initramfs); err != nil {
		return err
	}
	return rec.Forget(ctx, keyInitramfs)
}
