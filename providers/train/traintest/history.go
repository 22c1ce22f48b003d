package traintest

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"os"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// Size is the amount of events of a run.
type Size struct {
	Workers int
	Updates int64 // each of one micro-batch of every worker
	Full    int64 // newest updates that are in full
	Samples int   // newest samples of usage of each role that are in full
}

// Long is the size of a run of 32 workers with 10 million updates: ten a second, and
// a sample of usage every five seconds.
var Long = Size{Workers: 32, Updates: 10_000_000, Full: 15_000, Samples: 300}

const (
	perUpdate    = 100 * time.Millisecond
	perSample    = 50     // updates
	merged       = 100    // lines of older samples of a role
	perEvent     = 10_000 // updates between two evaluations, and two checkpoints
	recordsEach  = 32     // of a micro-batch
	updatesEpoch = 100_000
)

// writer writes the events of one run.
type writer struct {
	Size
	to     *json.Encoder
	start  time.Time
	number int64
	roles  []string
}

func newWriter(to io.Writer, s Size, end time.Time) *writer {
	w := &writer{Size: s, to: json.NewEncoder(to), start: end.Add(-time.Duration(s.Updates) * perUpdate)}
	w.roles = []string{"coordinator", run.RoleName("ps", 0)}
	for i := range s.Workers {
		w.roles = append(w.roles, run.RoleName("worker", i))
	}
	return w
}

func (w *writer) at(update int64) time.Time { return w.start.Add(time.Duration(update) * perUpdate) }

// add writes an event at an update, in place of so many events.
func (w *writer) add(update, count int64, e spec.Event) error {
	w.number += count
	e.Number, e.Time, e.Step, e.Epoch, e.Term = w.number, w.at(update), update, int(update/updatesEpoch), 1
	return w.to.Encode(e)
}

// write writes the whole history.
func (w *writer) write() error {
	for i := range w.Workers {
		if err := w.add(0, 1, spec.Event{Type: spec.EventWorker, Worker: &i, Message: "joined"}); err != nil {
			return err
		}
	}
	old := max(0, w.Updates-w.Full)
	last := int64(0)
	for _, count := range mergedCounts(old) {
		if err := w.between(last, last+count, max(1, old/merged)); err != nil {
			return err
		}
		last += count
		if err := w.several(last, count); err != nil {
			return err
		}
	}
	for last < w.Updates {
		if err := w.between(last, last+1, perSample); err != nil {
			return err
		}
		last++
		if err := w.update(last); err != nil {
			return err
		}
	}
	return nil
}

// mergedCounts returns the numbers of updates that the older lines of a history stand
// for, the oldest first: each time that 10,000 more are older, history merges four of
// them to one.
func mergedCounts(old int64) (counts []int64) {
	each, lines := int64(4), int64(2500)
	for old > 0 {
		n := min(lines, max(1, old/each))
		for range n {
			count := min(each, old)
			if lines <= 1 {
				count = old
			}
			if count > 0 {
				counts = append([]int64{count}, counts...)
			}
			old -= count
		}
		each, lines = 4*each, max(1, lines/4)
	}
	return counts
}

// between writes what happened besides updates in (from, to]: samples of usage every so
// many updates, evaluations and checkpoints.
func (w *writer) between(from, to, every int64) error {
	for at := (from/every + 1) * every; at <= to; at += every {
		isRecent := at > w.Updates-int64(w.Samples)*perSample
		if every == perSample && !isRecent {
			continue
		}
		for i, role := range w.roles {
			e := spec.Event{Type: spec.EventUsage, Usage: usageOf(role, i, at)}
			count := every / perSample
			if count > 1 {
				e.Count = count
			}
			if err := w.add(at, max(1, count), e); err != nil {
				return err
			}
		}
	}
	for at := (from/perEvent + 1) * perEvent; at <= to; at += perEvent {
		accuracy := 0.95 - 0.85*math.Exp(-float64(at)/2e6)
		for _, e := range []spec.Event{
			{Type: spec.EventEvaluation, Metrics: map[string]float64{"accuracy": accuracy, "loss": lossAt(at) * 1.1}},
			{Type: spec.EventCheckpoint, Message: "saved"},
		} {
			if err := w.add(at, 1, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func lossAt(update int64) float64 {
	return 0.1 + 2.2*math.Exp(-float64(update)/1e6) + 0.05*math.Sin(float64(update)*12.9898)
}

func usageOf(role string, i int, at int64) *spec.Usage {
	x := float64(at)/1000 + float64(i)
	return &spec.Usage{
		Role: role, CPU: 1.6 + 0.3*math.Sin(x), Memory: int64(410e6 + 30e6*math.Cos(x)), Limit: 2 << 30, Processes: 1,
		Received: spec.Flow{Bytes: at * 3e5, PerSecond: 3.2e6 + 1e6*math.Sin(x)},
		Sent:     spec.Flow{Bytes: at * 3e5, PerSecond: 2.9e6 + 8e5*math.Cos(x)},
		Written:  spec.Flow{Bytes: at * 10, PerSecond: 2000},
	}
}

// several writes an event of several updates.
func (w *writer) several(last, count int64) error {
	loss := lossAt(last)
	return w.add(last, count, spec.Event{
		Type: spec.EventUpdates, First: last - count + 1, Count: count, Records: count * int64(w.Workers) * recordsEach,
		Loss: spec.Number(loss), LossMin: spec.Number(loss * 0.9), LossMax: spec.Number(loss * 1.1), Norm: 1.5,
	})
}

// update writes one update in full.
func (w *writer) update(step int64) error {
	records := int64(w.Workers) * recordsEach
	taken := make([]spec.Contribution, w.Workers)
	for i := range taken {
		start := (step*records + int64(i)*recordsEach) % 50_000
		taken[i] = spec.Contribution{Epoch: int(step / updatesEpoch), Start: start, End: start + recordsEach, Sequence: i,
			Attempt: 1, Term: 1, Generation: 33, Worker: i}
	}
	return w.add(step, 1, spec.Event{Type: spec.EventUpdate, Records: records, Loss: spec.Number(lossAt(step)), Norm: 1.5, Taken: taken})
}

// WriteHistory writes the history of a run up to a time, and returns the number of
// the last event.
func WriteHistory(path string, s Size, end time.Time) (int64, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	b := bufio.NewWriterSize(f, 1<<20)
	w := newWriter(b, s, end)
	if err := w.write(); err != nil {
		return 0, err
	}
	return w.number, b.Flush()
}
