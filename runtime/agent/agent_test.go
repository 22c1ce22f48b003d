package agent

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Of each metric the newest value is reported, and of a metric that is not a number any
// more its name. What waits has a bound.
func TestObserver(t *testing.T) {
	o := newObserver()
	report := func(rank int, step int64, values map[string]float64) {
		o.report(program.Event{Kind: program.Metric, Rank: rank, Step: step, Values: values})
	}
	report(1, 3, map[string]float64{"loss": 2, "accuracy": 0.5})
	report(1, 4, map[string]float64{"loss": math.NaN(), "norm": math.Inf(1)})
	report(1, 5, map[string]float64{"norm": 7})
	report(0, -1, map[string]float64{"loss": 1})
	o.report(program.Event{Kind: program.Complete, Rank: 1, Checkpoint: "/saved/step-5"})
	o.report(program.Event{Kind: program.Ended, Rank: 1, PID: 9, Text: "ended with 3"})
	o.report(program.Event{Kind: program.Ended, Rank: 0, PID: 8, Text: "ended with 0", OK: true})
	m, any := o.take()
	if !any || len(m.Points) != 2 || m.Points[0].Rank != 0 || m.Points[0].Step != -1 {
		t.Fatalf("reported %+v", m)
	}
	if p := m.Points[1]; p.Step != 5 || !maps.Equal(p.Values, map[string]float64{"accuracy": 0.5, "norm": 7}) || !slices.Equal(p.NotFinite, []string{"loss"}) {
		t.Errorf("rank 1 reported %+v", p)
	}
	if !slices.Equal(m.Checkpoints, []wire.Checkpoint{{Name: "step-5", Step: 5}}) || !slices.Equal(m.Facts, []string{"rank 1 ended with 3", "rank 0 ended with 0"}) ||
		!slices.Equal(m.Done, []int{0}) {
		t.Errorf("reported %+v", m)
	}
	for i := range 2 * max(maxFacts, maxValues) {
		report(0, 6, map[string]float64{fmt.Sprint(i): 1})
		o.report(program.Event{Kind: program.Leftover, Rank: -1, PID: i + 1})
	}
	if m, _ = o.take(); len(m.Points[0].Values) != maxValues || len(m.Facts) != maxFacts+1 {
		t.Errorf("%d values and %d facts", len(m.Points[0].Values), len(m.Facts))
	}
	if m, any := o.take(); any {
		t.Errorf("reported twice: %+v", m)
	}
}

// Each generation finds the planned files, whatever the program has done to them. Files
// that it has written stay, and links that it has made are not followed.
func TestCodeIsRestored(t *testing.T) {
	s := spec.DefaultProgram()
	s.Program.Code = strings.Repeat("ab", 32)
	a := &agent{Options: Options{Spec: s, Role: wire.RoleWorker, Folder: filepath.Join(t.TempDir(), "worker-0"), Logs: t.TempDir()}}
	if err := a.makeFolders(); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(a.snapshot(), "lib"), 0o700))
	must(os.WriteFile(filepath.Join(a.snapshot(), "lib", "net.py"), []byte("planned"), 0o600))
	must(os.WriteFile(filepath.Join(a.snapshot(), "run.sh"), []byte("planned"), 0o700))
	must(os.Symlink("lib/net.py", filepath.Join(a.snapshot(), "net.py")))
	place := func() {
		t.Helper()
		must(a.placeCode(t.Context()))
		for _, name := range []string{"lib/net.py", "net.py", "run.sh"} {
			if text, err := os.ReadFile(filepath.Join(a.work(), name)); err != nil || string(text) != "planned" {
				t.Errorf("%s is %q, %v", name, text, err)
			}
		}
		if info, err := os.Stat(filepath.Join(a.work(), "run.sh")); err != nil || info.Mode()&0o100 == 0 {
			t.Errorf("run.sh: %v, %v", info, err)
		}
	}
	place()
	must(os.WriteFile(filepath.Join(a.work(), "result.txt"), []byte("own"), 0o600))
	must(os.WriteFile(filepath.Join(a.work(), "run.sh"), []byte("changed"), 0o600))
	must(os.RemoveAll(filepath.Join(a.work(), "lib")))
	must(os.Symlink(outside, filepath.Join(a.work(), "lib")))
	place()
	if text, err := os.ReadFile(filepath.Join(a.work(), "result.txt")); err != nil || string(text) != "own" {
		t.Errorf("the program's own file is %q, %v", text, err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("written outside: %v, %v", left, err)
	}
}

// Values that wait while there is no connection are reported on the next one before the
// result: with that the run may be over.
func TestValuesAreReportedBeforeTheResult(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	credentials := wire.Credentials{Token: strings.Repeat("k", 32), Network: true}
	peers := make(chan *wire.Conn, 1)
	go credentials.Serve(t.Context(), l, func(c *wire.Conn, _ wire.Hello) { //nolint:errcheck // it ends with the test
		peers <- c
		<-t.Context().Done()
	}, func(err error) { t.Error(err) })
	a := &agent{Options: Options{Log: slog.New(slog.DiscardHandler), Coordinator: l.Addr().String()}, observer: newObserver(), link: &link{}}
	a.begin, a.state = wire.Begin{Generation: 3}, running
	a.observer.report(program.Event{Kind: program.Metric, Rank: 1, Step: 20, Values: map[string]float64{"sum": 40}})
	a.flush()
	a.state, a.result = idle, &wire.Result{Begin: a.begin, Cause: "ended"}

	c, err := credentials.Dial(t.Context(), l.Addr().String(), wire.Hello{Role: wire.RoleWorker})
	if err != nil {
		t.Fatal(err)
	}
	a.link.use(c)
	a.announce()
	peer := <-peers
	next := func(want wire.Type, into any) {
		t.Helper()
		m, err := peer.Receive(time.Minute)
		for err == nil && m.Type == wire.TypeHeartbeat {
			m, err = peer.Receive(time.Minute)
		}
		if err != nil || m.Type != want {
			t.Fatalf("received %+v, %v, want %v", m, err, want)
		}
		if err := m.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	var got wire.Observed
	next(wire.TypeObserved, &got)
	if len(got.Points) != 1 || got.Points[0].Step != 20 || got.Points[0].Values["sum"] != 40 {
		t.Errorf("reported %+v", got)
	}
	next(wire.TypeResult, new(wire.Result))
	next(wire.TypeReady, new(wire.Ready))
}
