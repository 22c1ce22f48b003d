package train

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/providers/train/launch/local"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// Ledger implements providers.RunAccountant.
func (r experimentRun) Ledger(ctx context.Context) (providers.RunLedger, error) {
	books, ok := r.Launcher.(launch.Bookkeeper)
	if !ok {
		return providers.RunLedger{}, providers.ErrNoLedger
	}
	is, err := books.Ledger(ctx, r.id)
	if errors.Is(err, launch.ErrNoLedger) {
		return providers.RunLedger{}, providers.ErrNoLedger
	}
	if err != nil {
		return providers.RunLedger{}, gone(err)
	}
	out := providers.RunLedger{Records: is.Records, Step: is.Step, Whole: is.Whole}
	for _, e := range is.Epochs {
		part := providers.RunEpoch{Epoch: e.Epoch, Ranges: len(e.Ranges)}
		for _, of := range e.Ranges {
			part.Committed += of[1] - of[0]
		}
		out.Parts = append(out.Parts, part)
	}
	if _, isHere := r.Launcher.(*local.Launcher); isHere { // of a cluster all events would have to be sent
		err = r.addLeases(ctx, &out)
	}
	return out, err
}

// Bounds of the updates whose leases are counted.
const (
	leaseTime    = 30 * time.Second
	leaseUpdates = 1000
)

// addLeases counts the leases of the newest updates.
func (r experimentRun) addLeases(ctx context.Context, out *providers.RunLedger) error {
	s, err := r.trainingRun.Status(ctx, r.id)
	if err != nil {
		return gone(err)
	}
	end := s.Updated
	if !s.Ended.IsZero() {
		end = s.Ended
	}
	byWorker := make(map[int]*providers.RunLeases)
	errEnough := errors.New("enough updates")
	want := run.EventFilter{Since: end.Add(-leaseTime), Usage: run.WithoutUsage}
	err = r.trainingRun.Metrics(ctx, r.id, want, false, func(e spec.Event) error {
		if len(e.Taken) == 0 {
			return nil
		}
		if out.Updates++; out.Updates == 1 {
			out.First = e.Step
		}
		for _, c := range e.Taken {
			w := byWorker[c.Worker]
			if w == nil {
				w = &providers.RunLeases{Worker: c.Worker}
				byWorker[c.Worker] = w
			}
			w.Leases, w.Records = w.Leases+1, w.Records+c.End-c.Start
			if c.Attempt > 1 {
				w.Again++
			}
		}
		if out.Updates == leaseUpdates {
			return errEnough
		}
		return nil
	})
	for _, w := range byWorker {
		out.Leases = append(out.Leases, *w)
	}
	slices.SortFunc(out.Leases, func(a, b providers.RunLeases) int { return a.Worker - b.Worker })
	if errors.Is(err, errEnough) {
		return nil
	}
	return gone(err)
}
