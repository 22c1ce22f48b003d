package packages

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Undoing is what Apply takes back that the record knows of and want does not
// declare, and what that interrupts, as far as packages do by their names and by
// the scripts that are there; nil is all of it, as Restore. Packages that are no
// longer installed interrupt nothing.
func Undoing(ctx context.Context, m host.Machine, rec *host.Record, want *Spec) ([]host.Change, error) {
	all, err := recorded(rec)
	if err != nil {
		return nil, err
	}
	var on Spec
	names := slices.Sorted(maps.Keys(all))
	if want != nil {
		on = *want
		names, err = undeclared(ctx, m, on, all)
	} else {
		_, err = rec.ReadNote(noteOwner, &on.Owner)
	}
	settings := Table.Undoing(rec, on)
	if err != nil || len(names) == 0 && len(settings) == 0 {
		return nil, err
	}
	have, err := observe(ctx, m, on, names)
	if err != nil {
		return nil, err
	}
	var changes []host.Change
	for _, name := range names {
		changes = append(changes, all[name].undoing(name, have.Packages[name])...)
	}
	for _, c := range settings {
		if c.Path[0] == "repositories" && len(have.otherOwners(c.Path[1], on.Owner)) > 0 {
			continue // it stays
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func (w priorPackage) undoing(name string, p Installed) []host.Change {
	var changes []host.Change
	if p.IsInstalled() && p.Held != w.Held && w.Version != "" {
		changes = append(changes, host.Change{Fact: "hold of " + name + " becomes what it was before",
			Have: strconv.FormatBool(p.Held), Want: strconv.FormatBool(w.Held)})
	}
	if p.Version == w.Version && p.IsInstalled() || !p.IsInstalled() && w.Version == "" || w.untouched(p) {
		return changes
	}
	d := disruption(name, p.IsInstalled(), p.Scripts)
	c := host.Change{Fact: "package " + name + " becomes what it was before", Have: p.Version, Want: w.Version, Disruption: d, Reloads: d > host.ReloadsSystemd}
	if w.Version == "" { // what runs containers goes
		c.Fact, c.Drains = removal(name), d >= host.RestartsKubelet
	}
	return append(changes, c)
}

func removal(name string) string { return "package " + name + " is removed" }

// Removes tells whether a change takes a package away.
func Removes(c host.Change, name string) bool { return c.Fact == removal(name) }

// undeclared are the packages that want no longer declares, and what came in for
// them alone, which is for apt to say.
func undeclared(ctx context.Context, m host.Machine, want Spec, all map[string]priorPackage) ([]string, error) {
	var gone, args []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if w := all[name]; w.Declared && !want.declares(name) {
			if gone = append(gone, name); w.Version == "" {
				args = append(args, name+"-")
			}
		}
	}
	if len(args) == 0 {
		return gone, nil
	}
	actions, err := simulate(ctx, m, want, append([]string{"install", "--auto-remove"}, args...)...)
	if impossible := (*ImpossibleError)(nil); err != nil && !errors.As(err, &impossible) {
		return nil, err
	}
	for _, x := range actions {
		if w, ours := all[x.Package]; ours && x.New == "" && w.Version == "" && !w.Asked {
			gone = append(gone, x.Package)
		}
	}
	return gone, nil
}

func (s Spec) declares(name string) bool {
	_, declared := s.Packages[name]
	return declared || slices.Contains(s.Absent, name)
}
