package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/spec"
)

// slowly is an engine's hook that makes a run last.
func slowly([]int64) error { time.Sleep(time.Millisecond); return nil }

// restored returns the messages of the events that a term has begun.
func (b *bench) restored() (all []string) {
	for _, e := range b.lines() {
		if e.Type == spec.EventRestore {
			all = append(all, fmt.Sprintf("%s at %d", e.Message, e.Step))
		}
	}
	return all
}

// The last member that is asked to end saves the parameters first: the next worker goes on
// from the newest update. A checkpoint that fails is made again before the member ends.
func TestLastMemberSavesTheParameters(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprintf("the store fails %v", fails), func(t *testing.T) {
			t.Parallel()
			lastMemberSaves(t, fails)
		})
	}
}

func lastMemberSaves(t *testing.T, fails bool) {
	s := reduceSpec(2, 1<<40) // it is stopped
	s.Checkpoint.EverySteps, s.Checkpoint.EverySeconds = 0, 0
	b := newBench(t, s, linear{size: 5000, fails: slowly})
	c := &crew{bench: b, ends: make(map[int]context.CancelFunc)}
	stop, done := b.beginUntilStopped()
	c.start(0)
	c.start(1)
	b.until("the run gets on", func() bool { return b.seen("update") >= 20 })
	if fails {
		b.fill()
	}
	c.stop(0)
	c.stop(1)
	if fails {
		b.until("a checkpoint fails", func() bool { return strings.Contains(b.logs.String(), "checkpoint failed") })
		if err := errors.Join(os.Remove(b.options.Folder.Checkpoints()), os.Mkdir(b.options.Folder.Checkpoints(), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	c.gone.Wait()
	made := int64(b.seen("update"))
	saved := int64(-1)
	for _, e := range b.lines() {
		if e.Type == spec.EventCheckpoint && strings.HasPrefix(e.Message, "step ") {
			saved = e.Step
		}
	}
	if saved != made {
		t.Fatalf("the newest checkpoint is of step %d of %d", saved, made)
	}
	before := len(b.restored())
	c.start(0)
	c.start(1) // one alone would wait for it
	b.until("the run goes on", func() bool { return int64(b.seen("update")) > made+3 })
	stop()
	if st := <-done; st.Phase != spec.Stopped || st.Step <= made {
		t.Fatalf("status %+v", st)
	}
	if next := b.restored()[before]; !strings.HasPrefix(next, "step-") || !strings.HasSuffix(next, fmt.Sprintf(" at %d", made)) {
		t.Errorf("the run went on from %s, not from step %d", next, made)
	}
}

// A member that the run no longer needs stays until another one has its parameters.
func TestDismissedMemberHandsOver(t *testing.T) {
	s := reduceSpec(2, 1<<40) // it is stopped
	s.Checkpoint.EverySteps, s.Checkpoint.EverySeconds = 0, 0
	b := newBench(t, s, linear{size: 5000, fails: slowly})
	c := &crew{bench: b, ends: make(map[int]context.CancelFunc)}
	stop, done := b.beginUntilStopped()
	c.start(1)
	b.until("the run gets on", func() bool { return b.seen("update") >= 20 })
	client := api.New("http://"+b.options.API.Addr().String(), token, nil)
	defer client.Close()
	if err := client.Change(b.ctx, spec.LiveChange{Workers: new(1)}); err != nil {
		t.Fatal(err)
	}
	from := b.seen("update")
	b.until("the run goes on with the member that it does not need", func() bool { return b.seen("update") >= from+5 })
	c.start(0)
	b.until("both members end", func() bool { return strings.Contains(fmt.Sprint(b.restored()), "worker-0") })
	from = b.seen("update")
	b.until("the run goes on with the other one", func() bool { return b.seen("update") >= from+5 })
	stop()
	if st := <-done; st.Phase != spec.Stopped || st.Step < int64(from+5) {
		t.Fatalf("status %+v", st)
	}
	c.gone.Wait()
	for _, text := range b.restored()[1:] {
		if !strings.HasPrefix(text, "attached to ") {
			t.Errorf("the run went back: %s", text)
		}
	}
}
