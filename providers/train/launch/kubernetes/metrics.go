package kubernetes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// metricsWait is how long one request waits for an event to come.
const metricsWait = 10 * time.Second

// Metrics gives events from the coordinator while it answers, and those that
// were collected once the run has ended.
func (l *Launcher) Metrics(ctx context.Context, id string, n int64, follow bool, event func(spec.Event) error) error {
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
			n, over, err = asked.events(ctx, n, follow, event)
			asked.Close()
			if errors.As(err, new(stop)) {
				return errors.Unwrap(err)
			}
			if over {
				return nil // although the coordinator waits for its results to be collected
			}
		case errors.Is(err, errNoCoordinator):
			n, err = l.collectedEvents(id, n, event)
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
			_, err := l.collectedEvents(id, n, event)
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

// collectedEvents gives those that were collected on this machine.
func (l *Launcher) collectedEvents(id string, n int64, event func(spec.Event) error) (int64, error) {
	file, err := os.Open(l.Location(id).Metrics)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	defer file.Close()
	decoder := json.NewDecoder(bufio.NewReader(file))
	for {
		var e spec.Event
		switch err := decoder.Decode(&e); {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		if e.Number <= n {
			continue
		}
		if err := event(e); err != nil {
			return n, err
		}
		n = e.Number
	}
}
