package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/ssh"
)

const (
	bootA = "11111111-2222-3333-4444-555555555555"
	bootB = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
)

var (
	errGone = errors.New("dial 192.0.2.1:22: connection refused")
	nologin = ssh.Permanent{Err: errors.New("192.0.2.1 does not let ops in")}
	cut     = &ssh.LostError{Host: "192.0.2.1", Err: errors.New("EOF")}
)

// life is what a machine says of its boot, or the error that it is.
type life struct {
	id, start, state string
	failed           []string
	err              error
}

// rebooter is a machine that restarts as the test says: lives are the answers to
// one question after the other, of which the last stays.
type rebooter struct {
	mu       sync.Mutex
	lives    []life
	sent     []error // what telling it to reboot says
	commands int
	asked    int
	forgot   int
	inner    Machine // answers everything else
	silent   bool    // says nothing at all once it was told to reboot, until forgotten
	dropped  chan struct{}
}

func (r *rebooter) Name() string                        { return "192.0.2.1" }
func (r *rebooter) Put(context.Context, ssh.File) error { return errors.New("no") }
func (r *rebooter) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgot++
	if r.silent && r.forgot > 1 {
		r.silent = false
		close(r.dropped)
	}
}

func (r *rebooter) Run(ctx context.Context, cmd Command) (ssh.Output, error) {
	if err := context.Cause(ctx); err != nil {
		return ssh.Output{}, err
	}
	switch {
	case cmd.Args[0] == "systemctl":
		if !cmd.Once {
			return ssh.Output{}, errors.New("a reboot is no command to repeat")
		}
		r.commands++
		return ssh.Output{}, r.sent[min(r.commands-1, len(r.sent)-1)]
	case cmd.Args[2] != lifeScript:
		return r.inner.Run(ctx, cmd)
	}
	r.mu.Lock()
	silent := r.silent && r.commands > 0
	r.mu.Unlock()
	if silent {
		<-r.dropped // as a dead connection: not even a cancelled context ends it
		return ssh.Output{}, cut
	}
	l := r.lives[min(r.asked, len(r.lives)-1)]
	r.asked++
	if l.err != nil {
		return ssh.Output{}, l.err
	}
	return ssh.Output{Stdout: []byte(fmt.Sprintf("%s\n%s\n%s\n%s\n", l.id, l.start, l.state, strings.Join(l.failed, "\n")))}, nil
}

func TestReboot(t *testing.T) {
	up, down := life{id: bootA, start: "5", state: "running"}, life{err: errGone}
	again := life{id: bootB, start: "5", state: "running"}
	tests := map[string]struct {
		lives    []life
		sent     error
		limits   RebootLimits
		want     string // of the error
		commands int
	}{
		"plain":                     {lives: []life{up, down, down, again}},
		"slow to go":                {lives: []life{up, up, {id: bootA, start: "5", state: "stopping"}, down, again}},
		"the connection breaks":     {lives: []life{up, down, again}, sent: cut},
		"a container":               {lives: []life{up, down, {id: bootA, start: "77", state: "running"}}},
		"starting":                  {lives: []life{up, {id: bootB, start: "5", state: "starting"}, {id: bootB, start: "5", state: "starting"}, again}},
		"breaks off while starting": {lives: []life{up, {id: bootB, start: "5", state: "starting"}, down, again}},
		"degraded":                  {lives: []life{up, down, {id: bootB, start: "5", state: "degraded", failed: []string{"a.service", "b.mount"}}}},
		"nobody is let in yet":      {lives: []life{up, {err: nologin}, down, {err: nologin}, again}},
		"never let in":              {lives: []life{up, {err: nologin}}, limits: RebootLimits{Refused: time.Millisecond}, want: "does not let ops in"},
		"another machine":           {lives: []life{up, {err: ssh.Permanent{Err: &ssh.HostKeyError{Address: "192.0.2.1", Want: "a", Got: "b"}}}}, want: "another machine answers"},
		"refused":                   {lives: []life{up}, sent: &ssh.CommandError{Host: "192.0.2.1", Status: 1, Output: "Call to Reboot failed"}, want: "Call to Reboot failed"},
		"does not go":               {lives: []life{up}, limits: RebootLimits{Up: time.Millisecond}, want: "still runs after"},
		"does not come":             {lives: []life{up, down}, limits: RebootLimits{Up: time.Millisecond}, want: "did not come back within 1ms: look at its console"},
		"does not settle":           {lives: []life{up, {id: bootB, start: "5", state: "starting"}}, limits: RebootLimits{Settle: time.Millisecond}, want: `still "starting"`},
		"restarts twice":            {lives: []life{up, {id: bootB, start: "5", state: "starting"}, up}, want: "restarted once more"},
		"no boot id":                {lives: []life{{id: "x"}}, want: "read the boot id"},
		"lost and never heard": {lives: []life{up, up, up, up, up, up, up, up, up, up, down, again}, sent: cut,
			limits: RebootLimits{Ask: time.Nanosecond + time.Minute}, commands: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.limits.Pause = time.Microsecond
			m := &rebooter{lives: test.lives, sent: []error{test.sent}}
			b, err := Reboot(t.Context(), m, test.limits)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			last := test.lives[len(test.lives)-1]
			if want := (Boot{ID: last.id, Start: last.start, State: last.state, Failed: last.failed}); err == nil && !cmp.Equal(b, want) {
				t.Errorf("%+v, want %+v", b, want)
			}
			if test.commands != 0 && m.commands != test.commands {
				t.Errorf("told %d times", m.commands)
			}
		})
	}
}

// TestRebootIsSaidAgain where nobody knows whether the machine has heard it.
func TestRebootIsSaidAgain(t *testing.T) {
	up := life{id: bootA, start: "5", state: "running"}
	m := &rebooter{lives: []life{up, up, up, {err: errGone}, {id: bootB, start: "5", state: "running"}}, sent: []error{cut, nil}}
	w := &rebooting{machine: m, before: Boot{ID: bootA, Start: "5"}, limits: RebootLimits{Pause: 60 * time.Millisecond, Ask: 50 * time.Millisecond}.orDefaults()}
	m.asked = 1
	if _, err := w.run(t.Context()); err != nil && !strings.Contains(err.Error(), "did not answer") {
		t.Fatal(err)
	}
	if m.commands != 2 {
		t.Errorf("told %d times", m.commands)
	}
}

// TestRebootOfADeadConnection does not wait for a question that is never
// answered.
func TestRebootOfADeadConnection(t *testing.T) {
	m := &rebooter{lives: []life{{id: bootA, start: "5", state: "running"}, {id: bootB, start: "5", state: "running"}}, sent: []error{nil}, silent: true, dropped: make(chan struct{})}
	if _, err := Reboot(t.Context(), m, RebootLimits{Ask: 20 * time.Millisecond, Pause: time.Microsecond, Up: time.Hour}); err != nil && !errors.Is(err, errNotAnswered) {
		t.Fatal(err)
	}
}

func TestRebootStops(t *testing.T) {
	stopping := make(chan struct{})
	close(stopping)
	m := &rebooter{lives: []life{{id: bootA, start: "5", state: "running"}, {err: errGone}}, sent: []error{nil}}
	_, err := Reboot(providers.WithCall(t.Context(), &providers.Call{Stopping: stopping}), m, RebootLimits{Pause: time.Hour})
	if err == nil || !strings.Contains(err.Error(), "stopped while 192.0.2.1 restarts") {
		t.Error(err)
	}
}

// TestRebootKeepsTheLock: the lock is gone with the reboot and taken anew,
// unless somebody was quicker.
func TestRebootKeepsTheLock(t *testing.T) {
	for _, quicker := range []bool{false, true} {
		t.Run(fmt.Sprint(quicker), func(t *testing.T) {
			a, b, sh := two(t)
			up := life{id: bootA, start: "5", state: "running"}
			m := &rebooter{lives: []life{up, {err: errGone}, {id: bootB, start: "5", state: "running"}}, sent: []error{nil}, inner: sh}
			lock, err := a.Lock(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Unlock()
			ctx := providers.WithCall(lock.Context(), &providers.Call{Progress: func(p providers.Progress) {
				if !strings.HasPrefix(p.Step, "restarted") {
					return
				}
				os.Remove(lockFile(a))
				if quicker {
					if other, err := b.Lock(t.Context(), sh); err != nil {
						t.Error(err)
					} else {
						t.Cleanup(other.Unlock)
					}
				}
			}})
			_, err = Reboot(ctx, lock.Machine(), RebootLimits{Pause: time.Microsecond})
			var lost *LostLockError
			if quicker {
				if !errors.As(err, &lost) || !strings.Contains(err.Error(), "bob@desk") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := lock.lease.check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func FuzzBoot(f *testing.F) {
	f.Add(bootA + "\n5\nrunning\n")
	f.Add(bootA + "\n5\ndegraded\na.service\nb.mount\n")
	f.Add("\n\n\n")
	f.Fuzz(func(t *testing.T, out string) {
		b, err := parseBoot(out)
		if err == nil && (!bootID.MatchString(b.ID) || b.Start == "" || len(b.Failed) > 20 || strings.ContainsAny(b.State, "\n\x1b")) {
			t.Errorf("%+v", b)
		}
	})
}
