package program

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// recorder keeps the events of a generation.
type recorder struct {
	mu     sync.Mutex
	events []Event
	news   chan struct{}
}

func (r *recorder) report(e Event) {
	r.mu.Lock()
	r.events = append(r.events, e)
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func (r *recorder) all(kinds ...Kind) []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []Event
	for _, e := range r.events {
		if len(kinds) == 0 || slices.Contains(kinds, e.Kind) {
			found = append(found, e)
		}
	}
	return found
}

// await waits for a number of events of a kind.
func (r *recorder) await(t *testing.T, kind Kind, n int) []Event {
	t.Helper()
	for {
		if found := r.all(kind); len(found) >= n {
			return found
		}
		select {
		case <-r.news:
		case <-t.Context().Done():
			t.Fatal("the test was ended")
		}
	}
}

func kinds(events []Event) []Kind {
	var all []Kind
	for _, e := range events {
		all = append(all, e.Kind)
	}
	return all
}

// newSpec is a generation of n ranks of one of the programs.
func newSpec(t *testing.T, mode string, n int) Spec {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"code", "checkpoints", "logs", "scratch"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{
		Command: []string{binary}, Folder: filepath.Join(dir, "code"), Environment: append(os.Environ(), modeVariable+"="+mode), Processes: n,
		Grace: time.Hour, Sole: true, Checkpoints: filepath.Join(dir, "checkpoints"), Logs: filepath.Join(dir, "logs"), Scratch: filepath.Join(dir, "scratch"),
		Member: Member{Run: "run-" + strconv.Itoa(os.Getpid()), Name: "worker-0", Generation: 1, Role: Worker, World: n, Groups: 1},
	}
}

// launch starts a generation. When the test ends, no process and no descriptor may
// be left.
func launch(t *testing.T, s Spec, change ...func(*machine)) (*Generation, *recorder) {
	t.Helper()
	before := descriptors(t)
	m := usualMachine()
	m.poll = 5 * time.Millisecond
	for _, f := range change {
		f(&m)
	}
	r := &recorder{news: make(chan struct{}, 1)}
	g, err := start(s, r.report, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Stop(canceled())
		if after := descriptors(t); after > before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
		if left := childrenOf(t, os.Getpid()); len(left) > 0 {
			t.Errorf("processes left behind: %+v", left)
		}
	})
	return g, r
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// descriptors counts pipes and files, which generations open; the runtime's own
// ones are made once.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.HasPrefix(target, "anon_inode:[event") && target != "/dev/null" {
			n++
		}
	}
	return n
}

func childrenOf(t *testing.T, pid int) []process {
	t.Helper()
	all, err := listProcesses()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(p process) bool { return p.parent != pid })
}

// ready waits until each rank has printed a number of lines.
func ready(t *testing.T, g *Generation, lines int) {
	t.Helper()
	for local := range g.ranks {
		for len(g.Tail(local)) < lines {
			select {
			case <-g.Finished():
				t.Fatalf("the program has ended: %s", g.result)
			case <-time.After(time.Millisecond):
			}
		}
	}
}
