package coordinator

import (
	"errors"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
)

// apart gives the run's checkpoints a place that is not in its folder.
func (b *bench) apart() *bench {
	b.options.Checkpoints = checkpoint.Folder(b.t.TempDir())
	return b
}

// elsewhere is another coordinator of the same run, with the same servers and
// checkpoints, whose own folder is empty.
func (b *bench) elsewhere() *bench {
	b.t.Helper()
	next := b.beside()
	next.options.Folder = run.Folder(b.t.TempDir())
	return next
}

// A coordinator whose folder was lost takes a term above the one that still
// runs elsewhere, which then ends.
func TestTermsRiseWithoutTheFolder(t *testing.T) {
	s := pointsSpec()
	s.Epochs, s.Checkpoint.EverySteps = 1<<40, 20
	b := unserved(t, s, linear{}).apart()
	b.serve()
	old := make(chan spec.Status, 1)
	go func() { old <- b.run() }()
	for b.seen("update") < 50 {
		time.Sleep(time.Millisecond)
	}
	next := b.elsewhere()
	next.options.Spec.MaxSteps = 3000
	st := next.run()
	last := <-old
	if st.Phase != spec.Succeeded || st.Step != 3000 {
		t.Errorf("the one that followed: %+v", st)
	}
	if last.Phase != spec.Stopped || last.Cause != spec.CauseSuperseded || last.Term >= st.Term {
		t.Errorf("the one that was followed: %+v", last)
	}
}

// One that is cut off from servers and workers learns of a higher term where it
// writes its checkpoint, which then does not come to be.
func TestCheckpointIsFencedWithoutTheFolder(t *testing.T) {
	b := unserved(t, pointsSpec(), linear{}).apart()
	c := b.opened()
	if err := c.session.Begin(); err != nil {
		t.Fatal(err)
	}
	term := c.session.Term()
	c.saver.parameters = slow{meanwhile: func() {
		if _, err := c.Checkpoints.Save(t.Context(), spec.StepName(5, term), "part", 0, [][]float32{{1}}); err != nil {
			t.Fatal(err)
		}
		if ok, err := c.Claims.Claim(t.Context(), c.session.Hash(), term+1); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}}
	err := c.saver.write(t.Context(), spec.StepName(5, c.session.Term()), &checkpoint.Manifest{Term: c.session.Term(), Step: 5})
	if !errors.Is(err, session.ErrSuperseded) {
		t.Fatal(err)
	}
	if err := c.checkpointed(checkpointWritten{manifest: checkpoint.Manifest{Term: c.session.Term(), Step: 5}, err: err}); !errors.Is(err, session.ErrSuperseded) {
		t.Errorf("it goes on: %v", err)
	}
	if names, err := c.Checkpoints.Names(t.Context(), spec.StepPrefix); err != nil || len(names) > 0 {
		t.Errorf("checkpoints %q, %v", names, err)
	}
}
