package packages

import (
	"context"
	"maps"
	"slices"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Undoing is what Restore interrupts, as far as packages do by their names and by
// the scripts that are there. What is not known any more interrupts nothing here.
func Undoing(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Change, error) {
	all, err := recorded(rec)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var want Spec
	if _, err := rec.Was(noteOwner, &want.Owner); err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(all))
	have, err := observe(ctx, m, want, names)
	if err != nil {
		return nil, err
	}
	var changes []host.Change
	for _, name := range names {
		w, p := all[name], have.Packages[name]
		if p.Version == w.Version && p.There() || !p.There() && w.Version == "" {
			continue
		}
		if d := disruption(name, p.There(), p.Scripts); d > host.None {
			changes = append(changes, host.Change{
				Fact: "package " + name + " becomes what it was before", Have: p.Version, Want: w.Version, Disruption: d, Reloads: d > host.ReloadsSystemd,
			})
		}
	}
	return changes, nil
}
