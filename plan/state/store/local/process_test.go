package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/plan/state"
)

// TestMain plays another process when asked to.
func TestMain(m *testing.M) {
	switch os.Getenv("STOKE_TEST_ROLE") {
	case "writer":
		writer(os.Getenv("STOKE_TEST_STATE"))
	case "holder":
		holder(os.Getenv("STOKE_TEST_STATE"))
	default:
		os.Exit(m.Run())
	}
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// writer creates objects until it is killed, runs after runs, and says what it
// was told is on disk.
func writer(path string) {
	ctx := context.Background()
	s, err := New(path)
	fatal(err)
	_, err = s.Lock(ctx, state.LockInfo{Operation: "OperationTypeApply"})
	fatal(err)
	f, err := state.Open(ctx, s)
	fatal(err)
	next := len(f.State().Instances())
	for {
		j, err := f.Begin(ctx)
		fatal(err)
		for _, in := range j.Open() {
			fatal(j.Result(ctx, state.Result{Intent: in.ID, Err: "settled"}))
		}
		for range 1 + rand.Intn(5) {
			id := fmt.Sprintf("%d-%d", os.Getpid(), next)
			fatal(j.Intent(ctx, state.Intent{ID: id, Address: instance(next), Action: state.Create, Durable: true}))
			fmt.Println("intent", next)
			fatal(j.Result(ctx, state.Result{Intent: id, Changes: []state.Change{change(next, id)}, Durable: true}))
			fmt.Println("result", next)
			next++
		}
		fatal(j.Close(ctx))
	}
}

// holder takes the lock and keeps it.
func holder(path string) {
	s, err := New(path)
	fatal(err)
	l, err := s.Lock(context.Background(), state.LockInfo{Operation: "OperationTypeApply", Version: "0.1"})
	fatal(err)
	fatal(l.SetInfo("waiting for training run 7; Ctrl-C leaves it going"))
	fmt.Println("held")
	time.Sleep(10 * time.Minute) // it is killed before
}

type process struct {
	cmd *exec.Cmd
	out *bufio.Scanner
}

func start(t *testing.T, role, path string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STOKE_TEST_ROLE="+role, "STOKE_TEST_STATE="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, bufio.NewScanner(out)}
	t.Cleanup(p.kill) // where the test ends before it does so
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// TestKill kills a process at work again and again; what it was told is on
// disk is there.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	seed := rand.New(rand.NewSource(1))
	results := -1
	for round := range 20 {
		p := start(t, "writer", path)
		intents := results
		stop := 1 + seed.Intn(40)
		for range stop {
			if !p.out.Scan() {
				p.kill()
				t.Fatalf("round %d: the writer ended", round)
			}
			what, n, _ := strings.Cut(p.out.Text(), " ")
			i, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			if what == "result" {
				results = i
			} else {
				intents = i
			}
		}
		_ = p.cmd.Process.Kill()
		for p.out.Scan() { // what it had said before it died
			what, n, _ := strings.Cut(p.out.Text(), " ")
			if i, err := strconv.Atoi(n); err == nil && what == "result" {
				results = i
			} else if err == nil {
				intents = i
			}
		}
		_ = p.cmd.Wait()

		f, err := state.Open(t.Context(), newStore(t, path))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		found := len(f.State().Instances()) - 1
		if found != results && found != results+1 {
			t.Fatalf("round %d: %d objects, and %d were acknowledged", round, found+1, results+1)
		}
		open := f.Open()
		if found < intents && len(open) == 0 {
			t.Fatalf("round %d: intent %d is lost", round, intents)
		}
		if len(open) > 1 {
			t.Fatalf("round %d: %d open intents", round, len(open))
		}
		results = found
	}
	t.Logf("%d objects", results+1)
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "terraform.tfstate")
	if err := run(t, newStore(t, path), 0); err != nil {
		t.Fatal(err)
	}
	p := start(t, "holder", path)
	defer p.kill()
	if !p.out.Scan() {
		t.Fatal("the holder ended")
	}
	s := newStore(t, path)
	_, err := s.Lock(t.Context(), state.LockInfo{})
	var locked *state.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("lock: %v", err)
	}
	for _, want := range []string{path, "is locked by ", "Apply", "since ", "waiting for training run 7; Ctrl-C leaves it going"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := state.Wait(ctx, s, state.LockInfo{}, time.Hour, nil); !errors.As(err, &locked) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait: %v", err)
	}
	if _, err := state.Wait(t.Context(), s, state.LockInfo{}, time.Millisecond, nil); !errors.As(err, &locked) {
		t.Errorf("wait: %v", err)
	}
	p.kill() // its lock.info stays, its lock doesn't
	l, err := state.Wait(t.Context(), s, state.LockInfo{Operation: "OperationTypePlan"}, time.Minute, nil)
	if err != nil {
		t.Fatalf("after the holder was killed: %v", err)
	}
	var fields map[string]any
	b, err := os.ReadFile(filepath.Join(dir, ".terraform.tfstate.lock.info"))
	if err != nil || json.Unmarshal(b, &fields) != nil {
		t.Fatalf("lock.info %q: %v", b, err)
	}
	for _, name := range []string{"ID", "Operation", "Info", "Who", "Version", "Created", "Path"} {
		if _, ok := fields[name]; !ok {
			t.Errorf("lock.info lacks %s: %s", name, b)
		}
	}
	if err := run(t, s, 1); err != nil { // the snapshot is replaced under the lock
		t.Error(err)
	}
	if _, err := newStore(t, path).Lock(t.Context(), state.LockInfo{}); !errors.As(err, &locked) || !strings.Contains(err.Error(), "Plan") {
		t.Errorf("two holders: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if err := l.Release(); err == nil {
		t.Error("released twice")
	}
	if err := l.SetInfo("x"); err == nil {
		t.Error("a released lock has a message")
	}
	again, err := s.Lock(t.Context(), state.LockInfo{})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
	if list, _ := filepath.Glob(filepath.Join(dir, ".*")); len(list) > 0 {
		t.Errorf("left over: %v", list)
	}
}

// TestLockRace lets many take the lock in turn.
func TestLockRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	holders := make(chan int, 1)
	done := make(chan error)
	for i := range 8 {
		go func() {
			s, err := New(path)
			for range 10 {
				if err != nil {
					break
				}
				var l state.Lock
				if l, err = state.Wait(t.Context(), s, state.LockInfo{}, time.Minute, nil); err != nil {
					break
				}
				select {
				case holders <- i:
					<-holders
				default:
					err = errors.New("two hold the lock")
				}
				err = errors.Join(err, l.Release())
			}
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
