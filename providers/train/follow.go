package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// ending says why following a run is over.
type ending int

const (
	ended    ending = iota // the run has reached its end, whichever
	lost                   // no process runs it
	detached               // we were asked to leave it
	overdue                // we have waited long enough
)

// follow watches the run and reports what it sees until it ends, is lost, or
// ctx or the call says to leave it; a deadline of ctx means overdue. The
// status is the last one seen.
func follow(ctx context.Context, call *providers.Call, r trainingRun) (last launch.State, why ending, err error) {
	w := watcher{call: call}
	watch, leave := context.WithCancel(ctx)
	defer leave()
	go func() {
		select {
		case <-call.Stopping:
			leave()
		case <-watch.Done():
		}
	}()
	call.Report(providers.Progress{Step: "starting", Percent: -1,
		Line: fmt.Sprintf("Ctrl-C leaves %s going; the next apply attaches to it again", r.id)})
	for s, err := range r.Watch(watch, r.id) {
		if err != nil {
			return s, ended, err
		}
		last = s
		w.see(s)
		switch {
		case s.Phase.Final():
			return s, ended, nil
		case s.Phase == spec.Lost:
			return s, lost, nil
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return last, overdue, nil
	}
	return last, detached, nil
}

// watcher reports the differences between one status and the next.
type watcher struct {
	call *providers.Call
	seen launch.State
	any  bool
}

func (w *watcher) see(s launch.State) {
	before, first := w.seen, !w.any
	w.seen, w.any = s, true
	if first {
		before.Status = spec.Status{Evaluated: -1, Workers: s.Workers, Resumed: s.Resumed}
	}
	if s.Evaluated >= 0 && s.Evaluated != before.Evaluated {
		w.line("evaluation at step %s: %s", thousands(s.Evaluated), scores(s.Metrics))
	}
	if s.Workers < before.Workers && !s.Phase.Final() {
		w.line("%d of %d workers are alive", s.Workers, s.Wanted)
	}
	switch {
	case s.Resumed <= before.Resumed:
	case s.Program:
		w.line("the program was started again")
	default:
		w.line("went back to step %s", thousands(s.Step))
	}
	if first || s.Phase != before.Phase || s.Step != before.Step || s.Epoch != before.Epoch || s.Workers != before.Workers || s.Message != before.Message {
		w.call.Report(providers.Progress{Step: step(s), Percent: percent(s.Status)})
	}
}

func (w *watcher) line(format string, args ...any) {
	w.call.Report(providers.Progress{Step: step(w.seen), Line: fmt.Sprintf(format, args...), Percent: percent(w.seen.Status)})
}

// step says in one line where the run is.
func step(s launch.State) string {
	if s.Phase == spec.Pending {
		if m := printable(s.Message); m != "" {
			return "starting: " + m
		}
		return "starting"
	}
	parts := progressOf(s)
	if m := printable(s.Message); s.Program && m != "" && !s.Phase.Final() {
		parts = append(parts, m)
	}
	if rate := s.Metrics["samples_per_second"]; rate > 0 && rate < 1e15 {
		parts = append(parts, thousands(int64(rate))+" samples/s")
	}
	switch {
	case s.Phase.Final(): // they have all left
	case s.Workers == 1:
		parts = append(parts, "1 worker")
	default:
		parts = append(parts, fmt.Sprintf("%d workers", s.Workers))
	}
	return strings.Join(parts, ", ")
}

// progressOf returns the progress of the run as words. A program may report neither
// steps nor a loss.
func progressOf(s launch.State) (parts []string) {
	if s.Program {
		if s.Step > 0 {
			parts = append(parts, "step "+thousands(s.Step))
		} else if !s.Phase.Final() {
			parts = append(parts, "running")
		}
		if loss, ok := s.Metrics["loss"]; ok {
			parts = append(parts, fmt.Sprintf("loss %.3g", loss))
		}
		return parts
	}
	if s.Epochs == 0 && s.Step == 0 {
		return append(parts, "evaluates only")
	}
	parts = append(parts, fmt.Sprintf("epoch %d/%d", min(s.Epoch+1, max(1, s.Epochs)), max(1, s.Epochs)))
	if s.Steps > 0 {
		parts = append(parts, fmt.Sprintf("step %s/%s", thousands(s.Step), thousands(s.Steps)))
	} else {
		parts = append(parts, "step "+thousands(s.Step))
	}
	if s.Step > 0 {
		parts = append(parts, fmt.Sprintf("loss %.3g", float64(s.Loss)))
	}
	return parts
}

// atStep is the step of a run after a text such as "stopped"; "" for a program that
// reports none.
func atStep(s launch.State) string {
	if s.Program && s.Step == 0 {
		return ""
	}
	return " at step " + thousands(s.Step)
}

func percent(s spec.Status) float64 {
	if s.Steps <= 0 || s.Step < 0 {
		return -1
	}
	return min(100, 100*float64(s.Step)/float64(s.Steps))
}

// scores words an evaluation: what was measured on held-out records, without
// what is known about the run.
func scores(metrics map[string]float64) string {
	var names []string
	for name := range metrics {
		if name == "steps" || name == "records" || strings.HasSuffix(name, "_seconds") || strings.HasSuffix(name, "_per_second") {
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%s %.4g", name, metrics[name])
	}
	return strings.Join(parts, ", ")
}
