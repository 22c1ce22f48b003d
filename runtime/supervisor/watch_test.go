package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// acting is a variable that has this program act as a role of a run.
const acting = "STOKE_SUPERVISOR_TEST"

func TestMain(m *testing.M) {
	if as := os.Getenv(acting); as != "" {
		act(as, os.Args[1])
		return
	}
	os.Exit(m.Run())
}

// act is a role that does what a test needs.
func act(as, role string) {
	if role != Coordinator {
		time.Sleep(never) // until it is asked, or killed
	}
	control := json.NewEncoder(os.NewFile(5, "control"))
	over := spec.Control{Outcome: &spec.Status{Phase: spec.Succeeded}}
	switch as {
	case "hangs": // the first one
		if os.Mkdir(filepath.Join(os.Args[len(os.Args)-1], "first"), 0o700) == nil {
			control.Encode(spec.Control{Beat: new(spec.Beat)})
			syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			time.Sleep(never) // another thread may stop first
		}
	case "stops":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		control.Encode(spec.Control{Beat: new(spec.Beat)})
		<-asked
		over.Outcome = &spec.Status{Phase: spec.Stopped, Message: "saved"}
	case "beats":
		for {
			control.Encode(spec.Control{Beat: new(spec.Beat)})
			time.Sleep(10 * time.Millisecond)
		}
	}
	control.Encode(over)
}

// supervised gives the processes of a run whose roles act, and its supervisor's
// own patience.
func supervised(t *testing.T, as string, p patience) *processes {
	t.Helper()
	t.Setenv(acting, as)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := spec.Default()
	f := run.Folder(filepath.Join(t.TempDir(), "run"))
	s.Model, s.Dataset = "mlp", spec.Dataset{Path: string(f), Hash: "x"} // the coordinator's last argument
	s.Worker.Replicas = 3
	if err := f.Create(s); err != nil {
		t.Fatal(err)
	}
	ports, err := listen(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ports.close)
	h, err := openHome(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	c := newProcesses(Options{Folder: f, Program: program, Log: slog.New(slog.DiscardHandler)}, s, ports, h)
	c.patience = p
	return c
}

// never is longer than a test runs.
const never = 24 * time.Hour

// A coordinator that has stopped is killed and started again.
func TestHungCoordinatorIsReplaced(t *testing.T) {
	c := supervised(t, "hangs", patience{look: 10 * time.Millisecond, beat: 50 * time.Millisecond, first: never, farewell: never})
	outcome, err := c.run(t.Context(), spec.Status{})
	if err != nil || outcome.Phase != spec.Succeeded || c.roles[0].starts != 2 {
		t.Errorf("%+v after %d starts, %v", outcome, c.roles[0].starts, err)
	}
}

// The other roles are asked to end once the coordinator has told those that it
// knows: none of these was ever connected.
func TestRolesThatNeverJoinedAreAskedToEnd(t *testing.T) {
	c := supervised(t, "ends", patience{look: never, beat: never, first: never, farewell: never})
	if outcome, err := c.run(t.Context(), spec.Status{}); err != nil || outcome.Phase != spec.Succeeded {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// A coordinator that has just begun is asked to stop once it can hear that, and
// not killed by the request.
func TestStopOfACoordinatorThatHasJustBegun(t *testing.T) {
	c := supervised(t, "stops", patience{look: 10 * time.Millisecond, beat: never, first: never, farewell: never})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	outcome, err := c.run(ctx, spec.Status{})
	if err != nil || outcome.Message != "saved" || c.roles[0].starts != 1 {
		t.Errorf("%+v after %d starts, %v", outcome, c.roles[0].starts, err)
	}
}

func TestFolderThatIsGoneEndsTheRun(t *testing.T) {
	for name, do := range map[string]func(f run.Folder) error{
		"vanished": func(f run.Folder) error { return os.RemoveAll(string(f)) },
		"moved":    func(f run.Folder) error { return os.Rename(string(f), string(f)+"-moved") },
		"replaced": func(f run.Folder) error {
			return errors.Join(os.Rename(string(f), string(f)+"-moved"), os.MkdirAll(f.Logs(), 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := supervised(t, "beats", patience{look: 10 * time.Millisecond, beat: never, first: never, farewell: never})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := c.run(ctx, spec.Status{})
				ended <- err
			}()
			var roles []run.Role
			for len(roles) < 5 || roles[0].Phase != run.RoleRunning {
				roles, _ = c.Folder.ReadRoles() // until it is there
			}
			if err := do(c.Folder); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; !errors.Is(err, ErrFolderGone) {
				t.Errorf("it ends with %v", err)
			}
			for _, r := range c.roles {
				if r.process != nil {
					t.Errorf("%s runs", r)
				}
			}
			entries, err := os.ReadDir(string(c.Folder))
			if name == "replaced" && (err != nil || len(entries) != 1) || name != "replaced" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("in its place are %v, %v", entries, err)
			}
		})
	}
}

// Silence counts, and so does a loop that does one thing for ever. A machine that
// stood still, or is busy, does not.
func TestSignsOfLife(t *testing.T) {
	usual := usualPatience()
	beat := func(idle time.Duration) spec.Control { return spec.Control{Beat: &spec.Beat{Idle: idle.Seconds()}} }
	for name, tt := range map[string]struct {
		lines  []spec.Control
		passed []time.Duration
		hung   bool
	}{
		"just started":                 {nil, repeat(59, time.Second), false},
		"never began":                  {nil, repeat(60, time.Second), true},
		"a late beat":                  {[]spec.Control{beat(0)}, repeat(19, time.Second), false},
		"no beat":                      {[]spec.Control{beat(0)}, repeat(20, time.Second), true},
		"the machine stood still":      {[]spec.Control{beat(0)}, []time.Duration{time.Hour, time.Second}, false},
		"looks are rare on a busy one": {[]spec.Control{beat(0)}, repeat(9, 10*time.Second), false},
		"the disk is slow":             {[]spec.Control{beat(4 * time.Minute)}, repeat(1, time.Second), false},
		"the loop stands":              {[]spec.Control{beat(6 * time.Minute)}, repeat(1, time.Second), true},
		"other lines are no beats":     {[]spec.Control{beat(0), {Committed: true}}, repeat(20, time.Second), true},
		"beats that follow each other": {[]spec.Control{beat(0), beat(time.Minute), beat(0)}, repeat(2, time.Second), false},
	} {
		var p pulse
		for _, line := range tt.lines {
			p.take(line)
		}
		why := ""
		for _, d := range tt.passed {
			why = p.hung(d, usual)
		}
		if (why != "") != tt.hung {
			t.Errorf("%s: hung is %q", name, why)
		}
	}
}

func repeat(n int, d time.Duration) (all []time.Duration) {
	for range n {
		all = append(all, d)
	}
	return all
}
