package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/ssh"
)

// shell is a machine whose commands run here, without being root.
type shell struct {
	name string
	down atomic.Bool // it is not reached
	ran  atomic.Int64
}

func (s *shell) Name() string { return s.name }

func (s *shell) Run(ctx context.Context, cmd Command) (ssh.Output, error) {
	if s.down.Load() {
		return ssh.Output{}, &ssh.LostError{Host: s.name, Err: errors.New("no route to host")}
	}
	if err := context.Cause(ctx); err != nil {
		return ssh.Output{}, err
	}
	s.ran.Add(1)
	c := exec.CommandContext(ctx, cmd.Args[0], cmd.Args[1:]...)
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr, c.Stdin = &out, &stderr, bytes.NewReader(cmd.Stdin)
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = &ssh.CommandError{Host: s.name, Command: ssh.QuoteAll(cmd.Args...), Status: exit.ExitCode(), Output: stderr.String()}
	}
	return ssh.Output{Stdout: out.Bytes(), Stderr: stderr.Bytes()}, err
}

func (s *shell) Put(_ context.Context, f ssh.File) error {
	s.ran.Add(1)
	return os.WriteFile(f.Path, f.Content, f.Mode)
}

// two are two processes that work on one machine.
func two(t *testing.T) (a, b *Locks, m *shell) {
	t.Helper()
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("flock is not installed")
	}
	dir := t.TempDir()
	return &Locks{Holder: "alice@laptop, process 1", dir: dir}, &Locks{Holder: "bob@desk, process 2", dir: dir, Wait: time.Millisecond}, &shell{name: "192.0.2.1"}
}

func lockFile(l *Locks) string { return filepath.Join(l.dir, "lock") }

// rewrite changes the lock behind everybody's back.
func rewrite(t *testing.T, l *Locks, change func(lines []string)) {
	t.Helper()
	b, err := os.ReadFile(lockFile(l))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	change(lines)
	if err := os.WriteFile(lockFile(l), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLockKeepsOthersOut(t *testing.T) {
	a, b, m := two(t)
	lock, err := a.Lock(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Lock(t.Context(), m)
	var locked *LockedError
	if !errors.As(err, &locked) || locked.Who != "alice@laptop, process 1" {
		t.Fatalf("the second one: %v", err)
	}
	if err := lock.CheckHeld(t.Context()); err != nil {
		t.Error(err)
	}
	lock.Unlock()
	lock.Unlock()
	if err := lock.Context().Err(); err == nil {
		t.Error("the context goes on after Unlock")
	}
	if _, err := os.Stat(lockFile(a)); !os.IsNotExist(err) {
		t.Errorf("after Unlock: %v", err)
	}
	other, err := b.Lock(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	other.Unlock()
}

// TestLockWaits lets the second one in as soon as the first is done, and tells
// who it waits for.
func TestLockWaits(t *testing.T) {
	a, b, m := two(t)
	b.Wait = time.Hour
	lock, err := a.Lock(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	ctx := providers.WithCall(t.Context(), &providers.Call{Progress: func(p providers.Progress) {
		told = append(told, p.Step)
		lock.Unlock()
	}})
	other, err := b.Lock(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	other.Unlock()
	if len(told) != 1 || told[0] != "waiting for alice@laptop, process 1" {
		t.Errorf("told %q", told)
	}
}

func TestWaitingForALockEnds(t *testing.T) {
	a, b, m := two(t)
	b.Wait = time.Hour
	lock, err := a.Lock(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	stopping := make(chan struct{})
	close(stopping)
	if _, err := b.Lock(providers.WithCall(t.Context(), &providers.Call{Stopping: stopping}), m); err == nil || !strings.Contains(err.Error(), "stopped while waiting for alice") {
		t.Errorf("when stopping: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := b.Lock(ctx, m); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("when cancelled: %v", err)
	}
}

// TestDeadHolder: whoever did not renew the lock is nobody any more, and learns
// it before anything else runs.
func TestDeadHolder(t *testing.T) {
	for _, beat := range []string{"0", "", "-5", "x", "99999999999"} {
		t.Run(beat, func(t *testing.T) {
			a, b, m := two(t)
			a.beatEach = time.Hour // as if it were suspended
			lock, err := a.Lock(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Unlock()
			rewrite(t, a, func(lines []string) { lines[1] = beat })
			other, err := b.Lock(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Unlock()

			lock.lease.mu.Lock()
			lock.lease.seen = time.Now().Add(-24 * time.Hour)
			lock.lease.mu.Unlock()
			marker := filepath.Join(t.TempDir(), "marker")
			_, err = lock.Machine().Run(t.Context(), Command{Args: []string{"touch", marker}})
			var lost *LostLockError
			if !errors.As(err, &lost) || !strings.Contains(lost.Why, "bob@desk") {
				t.Errorf("a step after the lock was lost: %v", err)
			}
			if err := lock.Machine().Put(t.Context(), ssh.File{Path: marker}); !errors.As(err, &lost) {
				t.Errorf("a file after the lock was lost: %v", err)
			}
			if _, err := os.Stat(marker); !os.IsNotExist(err) {
				t.Errorf("it ran: %v", err)
			}
			<-lock.Context().Done()
			if !errors.As(context.Cause(lock.Context()), &lost) {
				t.Errorf("the context ends with %v", context.Cause(lock.Context()))
			}
			lock.Unlock() // frees nothing that is somebody else's
			if err := other.lease.check(t.Context()); err != nil {
				t.Errorf("the one who took it: %v", err)
			}
		})
	}
}

// TestHeartbeat: the lock of a machine that restarted is gone, which the holder
// learns by itself.
func TestHeartbeat(t *testing.T) {
	a, _, m := two(t)
	a.beatEach = time.Millisecond
	lock, err := a.Lock(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	os.Remove(lockFile(a))
	<-lock.Context().Done()
	if err := context.Cause(lock.Context()); err == nil || !strings.Contains(err.Error(), "the machine was restarted") {
		t.Errorf("%v", err)
	}
}

// TestUnreachable: while the machine cannot be asked, nothing runs; if nobody
// took it meanwhile, the work goes on.
func TestUnreachable(t *testing.T) {
	a, b, m := two(t)
	a.beatEach = time.Hour
	lock, err := a.Lock(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	lock.lease.doubt()
	m.down.Store(true)
	if err := Remove(t.Context(), lock.Machine(), "/nowhere"); err == nil || !strings.Contains(err.Error(), "renew the lock") {
		t.Errorf("while it is away: %v", err)
	}
	m.down.Store(false)
	if err := Remove(t.Context(), lock.Machine(), "/nowhere"); err != nil || lock.Context().Err() != nil {
		t.Errorf("when it is back: %v", err)
	}

	// A connection that breaks in the middle of a command: it is run again, but
	// not before the machine says that it is still ours.
	breaks := &breaking{shell: m, times: 2}
	lock.Machine().(*guarded).Machine = breaks
	if err := Remove(t.Context(), lock.Machine(), "/nowhere"); err != nil || breaks.times != 0 {
		t.Errorf("broken twice: %v", err)
	}
	breaks.times = 1
	breaks.meanwhile = func() {
		rewrite(t, a, func(lines []string) { lines[1] = "0" })
		other, err := b.Lock(t.Context(), m)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(other.Unlock)
	}
	ran := m.ran.Load()
	var lost *LostLockError
	if err := Remove(t.Context(), lock.Machine(), "/nowhere"); !errors.As(err, &lost) {
		t.Errorf("taken over meanwhile: %v", err)
	}
	if n := m.ran.Load() - ran; n != 2 { // the other one's and the question
		t.Errorf("%d commands ran", n)
	}
	breaks.times = 1
	if _, err := lock.Machine().Run(t.Context(), Command{Args: []string{"true"}, Once: true}); err == nil {
		t.Error("something runs after all")
	}
}

// breaking is a machine the connection to which breaks when commands run.
type breaking struct {
	*shell
	times     int
	meanwhile func()
}

func (b *breaking) Run(ctx context.Context, cmd Command) (ssh.Output, error) {
	if b.times > 0 {
		b.times--
		if b.meanwhile != nil {
			b.meanwhile()
		}
		return ssh.Output{}, &ssh.LostError{Host: b.name, Err: errors.New("EOF"), Begun: true}
	}
	return b.shell.Run(ctx, cmd)
}

// TestTurns: the resources of one process share the lock, one at a time.
func TestTurns(t *testing.T) {
	a, b, m := two(t)
	var inside, most atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			lock, err := a.Lock(t.Context(), m)
			if err != nil {
				t.Error(err)
				return
			}
			defer lock.Unlock()
			most.Store(max(most.Load(), inside.Add(1)))
			nested, err := a.Lock(lock.Context(), lock.Machine())
			if err != nil {
				t.Error(err)
				return
			}
			nested.Unlock()
			if _, err := b.Lock(t.Context(), m); err == nil {
				t.Error("another process is let in between")
			}
			inside.Add(-1)
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d at once", most.Load())
	}
	if len(a.machines) != 0 {
		t.Errorf("left: %v", a.machines)
	}
	if _, err := os.Stat(lockFile(a)); !os.IsNotExist(err) {
		t.Errorf("the machine is still locked: %v", err)
	}
}

// TestOneMachineByTwoNames waits for itself without a limit.
func TestOneMachineByTwoNames(t *testing.T) {
	a, _, m := two(t)
	a.Wait = time.Nanosecond
	first, err := a.Lock(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	ctx := providers.WithCall(t.Context(), &providers.Call{Progress: func(providers.Progress) { first.Unlock() }})
	second, err := a.Lock(ctx, &shell{name: "private"})
	if err != nil {
		t.Fatal(err)
	}
	second.Unlock()
}

// TestTakers: of many who find a dead holder at once, one has the machine.
func TestTakers(t *testing.T) {
	a, _, m := two(t)
	lock, err := a.Lock(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	rewrite(t, a, func(lines []string) { lines[1] = "0" })
	var all sync.WaitGroup
	var won atomic.Int64
	for i := range 8 {
		all.Go(func() {
			s := (&Locks{Holder: fmt.Sprintf("taker %d", i), dir: a.dir}).newLease(m)
			if a, err := s.ask(t.Context(), "take", ""); err != nil {
				t.Error(err)
			} else if a.state == "held" {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d have the machine", won.Load())
	}
}

// TestKilledHolder: a process that ran on the same computer and is gone does not
// have to be waited for. One that cannot be seen from here has.
func TestKilledHolder(t *testing.T) {
	self := process("self")
	if self == "" {
		t.Skip("there is no /proc")
	}
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	alive := process(strconv.Itoa(sleep.Process.Pid))
	killed := alive
	fields := strings.Fields(self)
	fields[0] = "another-boot"
	elsewhere := strings.Join(fields, " ")
	check := func(process string, free bool) {
		t.Helper()
		a, b, m := two(t)
		a.process = process
		lock, err := a.Lock(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Unlock()
		other, err := b.Lock(t.Context(), m)
		if (err == nil) != free {
			t.Errorf("held by %q: %v", process, err)
		}
		if err == nil {
			other.Unlock()
		}
	}
	check(alive, false)
	check(self, false)
	check(elsewhere, false)
	check("odd", false)
	sleep.Process.Kill()
	sleep.Wait()
	check(killed, true)
	fields = strings.Fields(self)
	fields[3] = "1" // the number belongs to another process by now
	check(strings.Join(fields, " "), true)
}

func TestLockAnswers(t *testing.T) {
	a, _, m := two(t)
	odd := &answering{Machine: m, answer: "hello\n"}
	if _, err := a.Lock(t.Context(), odd); err == nil || !strings.Contains(err.Error(), `answers "hello"`) {
		t.Errorf("%v", err)
	}
	m.down.Store(true)
	if _, err := a.Lock(t.Context(), m); err == nil || !strings.Contains(err.Error(), "lock 192.0.2.1") {
		t.Errorf("%v", err)
	}
	if len(a.machines) != 0 {
		t.Errorf("left: %v", a.machines)
	}
}

type answering struct {
	Machine
	answer string
}

func (a *answering) Run(context.Context, Command) (ssh.Output, error) {
	return ssh.Output{Stdout: []byte(a.answer)}, nil
}
