package kubernetes

import (
	"context"
	"errors"

	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

var (
	_ launch.Bookkeeper = (*Launcher)(nil)
	_ launch.Surveyor   = (*Launcher)(nil)
)

// Ledger asks the run's coordinator. Without one the checkpoints are out of reach.
func (l *Launcher) Ledger(ctx context.Context, id string) (spec.Ledger, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return spec.Ledger{}, err
	}
	f := newFollowed(ctx, c, id, false)
	defer f.end()
	s, err := f.look(ctx)
	if err != nil {
		return spec.Ledger{}, err
	}
	asked, err := c.session(ctx, id, s.pods)
	if errors.Is(err, errNoCoordinator) {
		return spec.Ledger{}, providers.ErrNoLedger
	}
	if err != nil {
		return spec.Ledger{}, err
	}
	defer asked.Close()
	return asked.Ledger(ctx)
}

// Survey implements launch.Surveyor.
func (l *Launcher) Survey(ctx context.Context) (providers.RunSurvey, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return providers.RunSurvey{}, err
	}
	return c.Client.Survey(ctx, c.namespace, func(p *core.Pod) string { return p.Labels[runLabel] })
}
