package rendezvous

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// progress is how far the program has come, as it reports.
type progress struct {
	step    int64
	saved   int64            // step of the newest checkpoint; 0: unknown, or without a checkpoint
	steps   map[string]int64 // of checkpoints, by name
	names   []string         // of those, in their order in the history
	reached int64            // the highest step of all generations
	metrics map[string]float64
	ranks   map[string]int // that metrics are from: the lowest one counts
}

func newProgress() progress {
	return progress{steps: make(map[string]int64), metrics: make(map[string]float64), ranks: make(map[string]int)}
}

// keyStep names the step of a checkpoint in its event: the step of the event itself
// may be a later one.
const keyStep = "step"

// maxCheckpoints is how many checkpoints are remembered with their step.
const maxCheckpoints = 1000

// follow takes an event of the history.
func (p *progress) follow(e spec.Event) {
	p.step, p.reached = e.Step, max(p.reached, e.Step)
	switch e.Type {
	case spec.EventCheckpoint:
		p.saved = int64(e.Metrics[keyStep])
		if _, known := p.steps[e.Message]; !known {
			p.names = append(p.names, e.Message)
		}
		p.steps[e.Message] = p.saved
		if len(p.names) > maxCheckpoints { // the oldest one goes back to an unknown step
			delete(p.steps, p.names[0])
			p.names = p.names[1:]
		}
	case spec.EventUpdate, spec.EventUpdates:
		maps.Copy(p.metrics, e.Metrics)
		for _, name := range e.NotFinite {
			delete(p.metrics, name) // an older value would pass for the newest one
		}
	}
}

// goBack restores the progress of a checkpoint; "" is the start.
func (p *progress) goBack(checkpoint string) {
	p.step = p.steps[checkpoint]
	p.saved = p.step
	clear(p.ranks)
}

// take takes the values of a rank, and returns them without metrics that a lower rank
// reports. Metrics beyond a number of them are left out.
func (p *progress) take(point wire.Point) (values map[string]float64, notFinite []string) {
	p.step = max(p.step, point.Step)
	mine := func(name string) bool {
		if slices.Contains(reserved, name) {
			return false
		}
		by, known := p.ranks[name]
		_, kept := p.metrics[name] // of an earlier generation
		if known && by < point.Rank || !known && !kept && max(len(p.ranks), len(p.metrics)) >= maxMetrics {
			return false
		}
		p.ranks[name] = point.Rank
		return true
	}
	values = make(map[string]float64)
	for name, v := range point.Values {
		if mine(name) {
			values[name] = v
		}
	}
	for _, name := range point.NotFinite {
		if mine(name) {
			notFinite = append(notFinite, name)
		}
	}
	return values, notFinite
}

// reserved are the names of stoke's own metrics of a program: its values of these names
// are only in its logs.
var reserved = []string{"steps", "restarts", "training_seconds", "elapsed_seconds"}

// maxMetrics is how many metrics a run has: its status and its last message to the
// supervisor have all of them.
const maxMetrics = 500

// takeObserved takes what an agent saw of its processes.
func (r *rendezvous) takeObserved(at session.Seat, m *wire.Observed) {
	g := r.current
	if g == nil || g.number != m.Generation {
		return
	}
	for _, point := range m.Points {
		reached := r.progress.reached
		values, notFinite := r.progress.take(point)
		if point.Step > reached {
			r.progressed(g)
		}
		if len(values)+len(notFinite) == 0 {
			continue
		}
		e := spec.Event{Type: spec.EventUpdate, Metrics: values, NotFinite: notFinite}
		if loss, ok := values["loss"]; ok {
			e.Loss = spec.Number(loss)
		} else if slices.Contains(notFinite, "loss") {
			e.Loss = spec.Number(math.NaN())
		}
		r.session.Note(e)
	}
	for _, c := range m.Checkpoints {
		if g.saved.add(at, c, r.now()) {
			r.noteSaves([]wire.Checkpoint{c})
		}
	}
	if p := g.parts[at]; p != nil {
		p.done = append(p.done, m.Done...)
	}
	for _, text := range m.Facts {
		r.Log.Info(text, "member", at)
		r.session.Note(spec.Event{Type: spec.EventProgram, Message: fmt.Sprintf("%s: %s", at, text)})
	}
}

// progressed notes progress of the program in a generation. The supervisor then
// forgets earlier ends of agents and coordinators.
func (r *rendezvous) progressed(g *generation) {
	if !g.moved {
		g.moved, r.losses = true, 0
		r.session.TellSupervisor(spec.Control{Committed: true})
	}
}

// noteSaves notes checkpoints that became complete.
func (r *rendezvous) noteSaves(checkpoints []wire.Checkpoint) {
	for _, c := range checkpoints {
		r.progressed(r.current)
		r.change.saved = true
		noteSave(r, c)
	}
}

// noteUntold notes the checkpoint that a generation begins from, where it is newer than all
// those that agents have told of: a rank may end between its save and the report on it, and
// the folder may have checkpoints of before the run. listed are the checkpoints of the folder,
// the newest one last.
func noteUntold(r *rendezvous, checkpoint string, listed []string) {
	at := slices.Index(listed, checkpoint)
	told := func(name string) bool {
		_, known := r.progress.steps[name]
		return known
	}
	if checkpoint == "" || at < 0 || slices.ContainsFunc(listed[at:], told) {
		return
	}
	r.losses = 0 // the generation before made progress; before the first one it is 0 already
	noteSave(r, wire.Checkpoint{Name: checkpoint, Step: -1})
}

// noteSave notes a checkpoint. Where its step is not known, it is the newest reported step.
func noteSave(r *rendezvous, c wire.Checkpoint) {
	if c.Step < 0 {
		c.Step = r.progress.step
	}
	r.session.Note(spec.Event{Type: spec.EventCheckpoint, Message: c.Name, Metrics: map[string]float64{keyStep: float64(c.Step)}})
}

// Step returns the newest step that the program reported.
func (r *rendezvous) Step() int64 { return r.progress.step }

// Report adds the program's figures to a status.
func (r *rendezvous) Report(s *spec.Status) {
	s.Step, s.Saved, s.Evaluated = r.progress.step, r.progress.saved, -1
	s.Loss = spec.Number(r.progress.metrics["loss"])
	maps.Copy(s.Metrics, r.progress.metrics)
	s.Metrics["training_seconds"] = r.clock.Read().Seconds()
	s.Metrics["steps"] = float64(r.progress.step)
	s.Metrics["restarts"] = float64(r.past.restarts)
}

// Routes adds the path of the program's code.
func (r *rendezvous) Routes(mux *http.ServeMux) {
	s := codeServer{folder: r.Folder, hash: r.Spec.Program.Code, send: r.session.SendResult}
	s.gone = func(ctx context.Context) { r.session.Post(ctx, codeGone{}) }
	mux.HandleFunc("GET "+api.PathCode, s.get)
}
