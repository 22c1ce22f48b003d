package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// TestReasons holds the table of reasons for failed: each has its evidence, and
// a test that exists.
func TestReasons(t *testing.T) {
	var all []spec.Reason
	for _, row := range spec.Reasons {
		if row.Reason == "" || row.Meaning == "" || row.Evidence == "" || slices.Contains(all, row.Reason) {
			t.Errorf("row %+v", row)
		}
		all = append(all, row.Reason)
		folder, name, _ := strings.Cut(row.Test, ".")
		found := false
		files, _ := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)")
		}
		if !found {
			t.Errorf("%s: there is no test %s", row.Reason, row.Test)
		}
	}
	docs, err := os.ReadFile("../../docs/runs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range spec.Reasons {
		if line := fmt.Sprintf("\n| `%s` | %s | %s |\n", row.Reason, row.Meaning, row.Evidence); !strings.Contains(string(docs), line) {
			t.Errorf("docs/runs.md lacks %q", line)
		}
	}
	for _, reason := range []spec.Reason{spec.ReasonRejected, spec.ReasonDiverged, spec.ReasonEngine, spec.ReasonChecksum} {
		if !slices.Contains(all, reason) {
			t.Errorf("the table lacks %s", reason)
		}
	}
}

// keep runs a worker and, as a launcher does, another one after it as long as
// the run goes on.
func (b *bench) keep(index int) {
	for b.ctx.Err() == nil {
		var how wire.Leave
		if errors.As(b.work(b.ctx, index), &how) && how.End != spec.EndError {
			return
		}
	}
}

// kept trains to the end with workers that are started again.
func (b *bench) kept() spec.Status {
	b.t.Helper()
	var workers sync.WaitGroup
	for i := range b.options.Spec.Worker.Replicas {
		workers.Go(func() { b.keep(i) })
	}
	st, err := Run(b.ctx, b.options)
	if err != nil {
		b.t.Error(err)
	}
	b.cancel()
	workers.Wait()
	return st
}

// report answers a lease of a guest.
func (b *bench) report(c *wire.Conn, l wire.Lease, fault spec.Fault) {
	b.t.Helper()
	r := wire.Report{ID: l.ID, Term: l.Term, Evaluate: l.Evaluate, Error: "tried", Fault: fault}
	if err := c.Send(wire.TypeReport, r, nil); err != nil {
		b.t.Error(err)
	}
}

// leased receives until the guest gets a lease; false: its connection ends.
func leased(c *wire.Conn) (l wire.Lease, ok bool) {
	for {
		m, err := c.Receive(time.Minute)
		if err != nil {
			return l, false
		}
		if m.Type == wire.TypeLease {
			return l, m.Decode(&l) == nil
		}
	}
}

func TestFailedOnlyByEvidence(t *testing.T) {
	bad := func(records []int64) error {
		if slices.Contains(records, 7) {
			return errors.New("singular matrix")
		}
		return nil
	}
	panics := func(records []int64) error {
		if err := bad(records); err != nil {
			panic(err)
		}
		return nil
	}
	for name, tt := range map[string]struct {
		workers int
		fails   func([]int64) error
	}{"error, two workers": {2, bad}, "error, one worker": {1, bad}, "panic, two workers": {2, panics}, "panic, one worker": {1, panics}} {
		t.Run(name, func(t *testing.T) {
			s := pointsSpec()
			s.Worker.Replicas = tt.workers
			st := newBench(t, s, linear{fails: tt.fails}).kept()
			if st.Phase != spec.Failed || st.Reason != spec.ReasonEngine || !strings.Contains(st.Message, "singular matrix") {
				t.Errorf("status %+v", st)
			}
		})
	}
	t.Run("crash", func(t *testing.T) {
		b := newBench(t, pointsSpec(), linear{})
		b.options.HearTime = 100 * time.Millisecond
		done := b.begin()
		for i := range 3 {
			hello := wire.Hello{Role: "worker", Index: 0, Instance: fmt.Sprint(i)}
			if i > 0 {
				hello.Crashed = "signal: segmentation fault"
			}
			c := b.guestWith(hello)
			if i < 2 {
				b.hears(c)
			}
			c.Close()
		}
		if st := <-done; st.Phase != spec.Failed || st.Reason != spec.ReasonEngine || !strings.Contains(st.Message, "segmentation fault") {
			t.Errorf("status %+v", st)
		}
	})
	for _, machines := range []int{1, 2} {
		t.Run(fmt.Sprintf("checksum on %d machines", machines), func(t *testing.T) {
			s := pointsSpec()
			s.Worker.Replicas = 2
			b := newBench(t, s, linear{})
			b.options.HearTime = 100 * time.Millisecond
			done := b.begin()
			for i := range 2 {
				c := b.guestWith(wire.Hello{Role: "worker", Index: i, Instance: fmt.Sprint(i), Machine: fmt.Sprint(i % machines)})
				go func() {
					for {
						l, ok := leased(c)
						if !ok {
							return
						}
						b.report(c, l, spec.FaultChecksum)
					}
				}()
			}
			st := <-done
			if machines == 2 && (st.Phase != spec.Failed || st.Reason != spec.ReasonChecksum) {
				t.Errorf("status %+v", st)
			}
			if machines == 1 && (st.Phase != spec.Stopped || st.Cause != spec.CauseData) {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// TestWhatPassesDoesNotFail has workers that are lost, and data that cannot be
// read: the run goes on, or stops where it can go on.
func TestWhatPassesDoesNotFail(t *testing.T) {
	t.Run("20 workers lost with one lease", func(t *testing.T) {
		b, done := begun(t, pointsSpec())
		for i := range 20 {
			c := b.guestWith(wire.Hello{Role: "worker", Index: 0, Instance: fmt.Sprint(i)})
			b.hears(c)
			c.Close()
		}
		go b.work(b.ctx, 0) //nolint:errcheck // its run ends
		if st := <-done; st.Phase != spec.Succeeded || st.Records != 1800 {
			t.Errorf("status %+v", st)
		}
	})
	for name, tt := range map[string]struct {
		errs  int64 // reads that fail
		phase spec.Phase
		cause spec.Cause
	}{"for a while": {6, spec.Succeeded, ""}, "for ever": {1 << 60, spec.Stopped, spec.CauseData}} {
		t.Run("data unreadable "+name, func(t *testing.T) {
			b := newBench(t, pointsSpec(), linear{})
			b.options.PlacePatience = time.Hour
			if tt.phase == spec.Stopped {
				b.options.PlacePatience = time.Second
			}
			away := &unreadable{Source: b.options.Workload.Train, errs: tt.errs}
			b.options.Workload.Train = away
			if st := b.kept(); st.Phase != tt.phase || st.Cause != tt.cause {
				t.Errorf("status %+v", st)
			}
			if away.tried.Load() < min(tt.errs, 4) {
				t.Errorf("%d reads", away.tried.Load())
			}
		})
	}
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("one of four cannot work, first %v", first), func(t *testing.T) {
			s := pointsSpec()
			s.Worker.Replicas = 4
			gate := make(chan struct{}) // the run does not end before
			b := newBench(t, s, linear{gate: gate})
			done := b.begin()
			cannot := func() {
				c, err := credentials.Dial(b.ctx, b.options.Workers.Addr().String(), wire.Hello{Role: "worker", Index: 3})
				if err == nil {
					err = c.Send(wire.TypeFailure, wire.Failure{Error: "no driver"}, nil)
				}
				if err != nil {
					t.Error(err)
					return
				}
				b.dismissed(c)
			}
			if first {
				cannot()
			}
			for i := range 3 {
				go b.keep(i)
			}
			if !first {
				b.until("a worker joins", func() bool { return b.seen("worker") > 0 })
				cannot()
			}
			close(gate)
			if st := <-done; st.Phase != spec.Succeeded || st.Records != 1800 {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// unreadable is a source whose first reads fail.
type unreadable struct {
	dataset.Source
	errs  int64
	tried atomic.Int64
}

func (u *unreadable) Read(ctx context.Context, records []int64, features, labels []byte) error {
	if u.tried.Add(1) <= u.errs {
		return errors.New("input/output error")
	}
	return u.Source.Read(ctx, records, features, labels)
}
