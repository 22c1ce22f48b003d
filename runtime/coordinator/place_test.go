package coordinator

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/spec"
)

// saved is a run that was stopped on its way, with checkpoints.
func saved(t *testing.T) *bench {
	t.Helper()
	s := pointsSpec()
	s.Checkpoint.EverySteps = 6
	gate, stop := make(chan struct{}), make(chan struct{})
	b := newBench(t, s, linear{gate: gate})
	b.options.Stop = stop
	go func() {
		defer close(gate)
		for b.seen("update") < 6 {
			select {
			case gate <- struct{}{}:
			case <-time.After(time.Millisecond):
			}
		}
		for b.seen("checkpoint") < 1 { // however long it takes, the run has not ended
			time.Sleep(time.Millisecond)
		}
		close(stop)
	}()
	if st := b.run(); st.Phase != spec.Stopped || st.Saved < 6 {
		t.Fatalf("status %+v", st)
	}
	b.options.Stop = nil
	return b
}

// goesOn checks that a run ends well and did not begin anew.
func (b *bench) goesOn() {
	b.t.Helper()
	begun := 0
	for _, e := range b.lines() {
		if e.Type == spec.EventRestore && e.Step == 0 {
			begun++
		}
	}
	if st := b.again().run(); st.Phase != spec.Succeeded || st.Step != 36 || st.Records != 1800 {
		b.t.Errorf("status %+v", st)
	}
	for _, e := range b.lines() {
		if e.Type == spec.EventRestore && e.Step == 0 {
			begun--
		}
	}
	if begun != 0 {
		b.t.Error("the run began anew")
	}
}

// A folder of checkpoints that has vanished is not an empty one: the run waits
// a while, stops, and goes on once it is there again.
func TestVanishedCheckpointsStopTheRun(t *testing.T) {
	b := saved(t)
	folder := b.options.Folder.Checkpoints()
	if err := os.Rename(folder, folder+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil { // the place where it is mounted
		t.Fatal(err)
	}
	st := b.again().run()
	if st.Phase != spec.Stopped || st.Cause != spec.CauseDisk || !strings.Contains(st.Message, "was saved") {
		t.Fatalf("status %+v", st)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(folder+".away", folder); err != nil {
		t.Fatal(err)
	}
	b.goesOn()
}

// They may come back while the run waits for them.
func TestCheckpointsThatComeBack(t *testing.T) {
	b := saved(t)
	folder := b.options.Folder.Checkpoints()
	if err := os.Rename(folder, folder+".away"); err != nil {
		t.Fatal(err)
	}
	b.options.PlacePatience = time.Hour
	again := b.again()
	done := make(chan spec.Status, 1)
	go func() { done <- again.run() }()
	for !strings.Contains(again.logs.String(), "trying again") {
		time.Sleep(time.Millisecond)
	}
	if err := os.Rename(folder+".away", folder); err != nil {
		t.Fatal(err)
	}
	if st := <-done; st.Phase != spec.Succeeded || st.Step != 36 || st.Records != 1800 {
		t.Errorf("status %+v", st)
	}
}

// A server that looks for checkpoints in another place is no reason to pass
// over them.
func TestServersThatLookElsewhere(t *testing.T) {
	b := saved(t)
	b.astray = checkpoint.Folder(t.TempDir())
	if st := b.again().run(); st.Phase != spec.Stopped || st.Cause != spec.CauseDisk {
		t.Errorf("status %+v", st)
	}
	b.astray = nil
	b.goesOn()
}

// Nothing is saved that only the servers can find.
func TestServersThatWriteElsewhere(t *testing.T) {
	b := newBench(t, pointsSpec(), linear{})
	b.astray = checkpoint.Folder(t.TempDir())
	b = b.again()
	if st := b.run(); st.Phase != spec.Stopped || st.Cause != spec.CauseDisk || !strings.Contains(st.Message, "--checkpoints") {
		t.Errorf("status %+v", st)
	}
	if found := b.checkpoints(); len(found) > 0 {
		for _, name := range found {
			if _, err := b.options.Checkpoints.Manifest(t.Context(), name); err == nil {
				t.Errorf("checkpoint %s has a manifest and no parts", name)
			}
		}
	}
}

// A coordinator that waits for its servers hears that it is to end.
func TestAWaitingCoordinatorEnds(t *testing.T) {
	for name, tell := range map[string]func(b *bench, stop, leave chan struct{}){
		"stop":  func(_ *bench, stop, _ chan struct{}) { close(stop) },
		"leave": func(_ *bench, _, leave chan struct{}) { close(leave) },
		"api": func(b *bench, _, _ chan struct{}) {
			c := api.New("http://"+b.options.API.Addr().String(), token, nil)
			defer c.Close()
			if err := c.Stop(b.ctx); err != nil {
				t.Error(err)
			}
		},
	} {
		s := pointsSpec()
		b := newBench(t, s, linear{})
		gone := listen(t)
		b.options.Servers = []string{gone.Addr().String()}
		gone.Close() // nobody will ever be there
		stop, leave := make(chan struct{}), make(chan struct{})
		b.options.Stop, b.options.Leave = stop, leave
		done := b.begin()
		for !strings.Contains(b.logs.String(), "cannot connect") {
			time.Sleep(time.Millisecond)
		}
		tell(b, stop, leave)
		want := map[string]spec.Phase{"stop": spec.Stopped, "leave": spec.Pending, "api": spec.Stopped}[name]
		select {
		case st := <-done:
			if st.Phase != want {
				t.Errorf("%s: status %+v", name, st)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: the coordinator does not end", name)
		}
	}
}
