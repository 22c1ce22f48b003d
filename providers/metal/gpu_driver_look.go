package metal

import (
	"context"
	"errors"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/nvidia"
	"github.com/stokehq/stoke/providers/metal/packages"
)

type driverLook struct {
	have     nvidia.State
	want     packages.Spec  // what the driver means in packages
	packages packages.State // as they are
	managed  bool           // stoke has installed it
	rec      *host.Record   // what it noted then
}

func (s *settings) look(ctx context.Context, m host.Machine, want nvidia.Spec) (driverLook, error) {
	l := driverLook{}
	var err error
	if l.have, err = nvidia.Observe(ctx, m, want); err != nil {
		return l, err
	}
	switch rec, err := host.OpenRecord(ctx, m, gpuDriverRecord); {
	case err == nil:
		l.managed, l.rec = true, rec
	case !errors.Is(err, host.ErrNoRecord):
		return l, err
	}
	w, err := want.Want(l.have)
	if err != nil {
		return l, nil // Check reports it, with the rest
	}
	l.want = s.install(w, l.have)
	l.packages, err = packages.Observe(ctx, m, l.want)
	return l, err
}

// changes are all facts that differ. A hold is one of them only once.
func (l driverLook) changes(want nvidia.Spec) []host.Change {
	all := nvidia.Diff(want, l.have)
	if l.want.Owner == "" {
		return all
	}
	for _, c := range packages.Diff(l.want, l.packages) {
		if len(c.Path) == 3 && c.Path[0] == "packages" && c.Path[2] == "hold" {
			continue // "packages held" is about all of them
		}
		c.Path = nil // no attribute of ours
		all = append(all, c)
	}
	return all
}

// foresee returns changes together with the forecast of apt and the removal of
// undeclared parts. If a part is not known, it returns an error with the known
// changes.
func (l driverLook) foresee(ctx context.Context, m host.Machine, want nvidia.Spec) ([]host.Change, packages.Forecast, error) {
	changes := l.changes(want)
	if l.want.Owner == "" {
		return changes, packages.Forecast{}, nil
	}
	forecast, err := packages.Foresee(ctx, m, l.want, l.packages)
	if l.rec != nil {
		changes = append(changes, nvidia.Undoing(l.rec, want, l.have)...)
		gone, failed := packages.Undoing(ctx, m, l.rec, &l.want)
		changes, err = append(changes, gone...), errors.Join(err, failed)
	}
	return forecastChanges(changes, forecast, nil), forecast, err
}
