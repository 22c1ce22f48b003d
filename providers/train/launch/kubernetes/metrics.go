package kubernetes

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// metricsWait is how long one request waits for an event to come.
const metricsWait = 10 * time.Second

// Metrics gives events from the coordinator while it answers, and those that
// were collected once the run has ended.
func (l *Launcher) Metrics(ctx context.Context, id string, want run.EventFilter, follow bool, event func(spec.Event) error) error {
	want, event = inPods(want, event)
	n := want.After
	c, err := l.cluster(ctx)
	if err != nil {
		return err
	}
	f := newFollowed(ctx, c, id, follow)
	defer f.end()
	for {
		s, err := f.look(ctx)
		if err != nil {
			return err
		}
		asked, err := c.session(ctx, id, s.pods)
		switch {
		case err == nil:
			var over bool
			n, over, err = asked.events(ctx, n, follow, func(e spec.Event) error {
				if !want.Accepts(e) {
					return nil
				}
				return event(e)
			})
			asked.Close()
			if errors.As(err, new(stop)) {
				return errors.Unwrap(err)
			}
			if over {
				return nil // although the coordinator waits for its results to be collected
			}
		case errors.Is(err, errNoCoordinator):
			want.After = n
			n, err = l.collectedEvents(id, want, event)
			if err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if !follow {
			return err
		}
		if s.isOver() {
			want.After = n
			_, err := l.collectedEvents(id, want, event)
			return err
		}
		if f.wait(ctx); ctx.Err() != nil {
			return nil
		}
	}
}

// stop is an error of the callback: it ends the call.
type stop struct{ error }

func (s stop) Unwrap() error { return s.error }

// events passes on the coordinator's events after event n, and returns the
// number of the last one; over: with follow, no more will arrive.
func (s *session) events(ctx context.Context, n int64, follow bool, event func(spec.Event) error) (last int64, over bool, err error) {
	for {
		wait := time.Duration(0)
		if follow {
			status, err := s.Status(ctx)
			if err != nil {
				return n, false, err
			}
			if over, wait = status.Phase.Final(), metricsWait; over {
				wait = poll // the event of the end comes after the status
			}
		}
		all, err := s.Metrics(ctx, n, wait)
		ended := false
		for _, e := range all {
			if err := event(e); err != nil {
				return n, false, stop{err}
			}
			n, ended = e.Number, e.Type == spec.EventEnd
		}
		switch {
		case err != nil:
			return n, false, err
		case over && (ended || len(all) == 0), !follow && len(all) == 0:
			return n, over, nil
		}
	}
}

// collectedEvents gives those that were collected on this machine, and returns the
// number of the last one.
func (l *Launcher) collectedEvents(id string, want run.EventFilter, event func(spec.Event) error) (int64, error) {
	events, err := run.OpenEvents(l.Location(id).Metrics, want)
	if errors.Is(err, fs.ErrNotExist) {
		return want.After, nil
	}
	if err != nil {
		return want.After, err
	}
	defer events.Close()
	for last := want.After; ; {
		e, ok, err := events.Next()
		if err != nil || !ok {
			return last, err
		}
		if err := event(e); err != nil {
			return last, err
		}
		last = e.Number
	}
}

// inPods gives the coordinator the name in events that its pod has as a role: the coordinator
// does not know its index.
func inPods(want run.EventFilter, event func(spec.Event) error) (run.EventFilter, func(spec.Event) error) {
	const role = coordinator + "-0"
	if want.Role == role {
		want.Role = coordinator
	}
	return want, func(e spec.Event) error {
		if e.Usage != nil && e.Usage.Role == coordinator {
			usage := *e.Usage
			usage.Role, e.Usage = role, &usage
		}
		return event(e)
	}
}
