package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// The test binary plays the supervisor: what it does is told by its name.

func TestMain(m *testing.M) {
	play, ok := map[string]func(run.Folder){
		"good": func(f run.Folder) { introduce(f, os.Getpid()); obey(f) },
		"liar": func(f run.Folder) { introduce(f, os.Getppid()); obey(f) },
		"loud": func(run.Folder) { os.Stdout.WriteString(strings.Repeat("x", 1<<20)) },
		"odd":  func(run.Folder) { os.Stdout.WriteString("hello\n") },
		"mute": func(f run.Folder) { obey(f) },
		"dead": func(run.Folder) { os.Stderr.WriteString("no space left\n"); os.Exit(1) },
	}[filepath.Base(os.Args[0])]
	if ok {
		play(run.Folder(os.Args[3]))
		return
	}
	os.Exit(m.Run())
}

func introduce(f run.Folder, pid int) {
	p, err := run.Identify(pid)
	if err != nil {
		panic(err)
	}
	sup := run.Supervisor{Process: p}
	if err := run.WriteJSON(f.Supervisor(), sup); err != nil {
		panic(err)
	}
	json.NewEncoder(os.Stdout).Encode(sup)
}

// obey waits for "go" and then for its end, or ends with the pipe. What it was
// told is left in a file.
func obey(f run.Folder) {
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return
	}
	launched, _ := Launched(f)
	if err := run.WriteJSON(filepath.Join(string(f), "told.json"), []any{strings.TrimSpace(line), launched, strings.Join(os.Environ(), "\n")}); err != nil {
		panic(err)
	}
	time.Sleep(time.Hour)
}

// player gives a program that plays the part.
func player(t *testing.T, part string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), part)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func small() spec.Spec {
	s := spec.Default()
	s.Name, s.Model = "digits", "mlp"
	s.Dataset = spec.Dataset{Path: "/data", Hash: "sha256:0"}
	return s
}

func made(t *testing.T, operation string) (Place, string, run.Folder) {
	t.Helper()
	p := Place(filepath.Join(t.TempDir(), "runs"))
	id := launch.ID(operation)
	f, err := p.Create(t.Context(), id, operation, small(), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := Stop(ctx, f); err != nil {
			t.Error(err)
		}
	})
	return p, id, f
}

func TestLaunchRecordsBeforeItLetsGo(t *testing.T) {
	for _, name := range []string{"TF_VAR_secret", "STOKE_PLAN_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "GOPROXY", "PATHS"} {
		t.Setenv(name, "hunter2")
	}
	for _, name := range []string{"GOMAXPROCS", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "LC_ALL", "VIRTUAL_ENV",
		"STOKE_XLA_PLUGIN", "STOKE_XLA_CACHE", "STOKE_CUDA_LIBRARIES", "STOKE_PTXAS", "STOKE_LIBDEVICE", "STOKE_GPU_MEMORY_FRACTION"} {
		t.Setenv(name, "7")
	}
	p, id, f := made(t, "op")
	sup, err := Launch(t.Context(), player(t, "good"), f)
	if err != nil {
		t.Fatal(err)
	}
	var told []any
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if err := run.ReadJSON(filepath.Join(string(f), "told.json"), &told); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if told[0] != "go" || told[1] != true {
		t.Errorf("told %v, record on disk by then: %v", told[0], told[1])
	}
	environment, _ := told[2].(string)
	if strings.Contains(environment, "hunter2") {
		t.Errorf("secrets reach a process that outlives us:\n%s", environment)
	}
	for _, want := range []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=7", "OMP_NUM_THREADS=7", "CUDA_VISIBLE_DEVICES=7", "LD_LIBRARY_PATH=7", "LC_ALL=7",
		"VIRTUAL_ENV=7", "STOKE_XLA_PLUGIN=7", "STOKE_XLA_CACHE=7", "STOKE_CUDA_LIBRARIES=7", "STOKE_PTXAS=7", "STOKE_LIBDEVICE=7",
		"STOKE_GPU_MEMORY_FRACTION=7"} {
		if !strings.Contains(environment, want) {
			t.Errorf("%s does not reach the run", want)
		}
	}
	if !Alive(f) {
		t.Error("the supervisor does not count as alive")
	}
	if got, err := p.Settle(shortly(t), id); err != nil || got != f {
		t.Errorf("settled as %q, %v", got, err)
	}
	if err := Stop(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if sup.Alive() || Alive(f) {
		t.Error("the supervisor is still there")
	}
	if err := Stop(t.Context(), f); err != nil {
		t.Errorf("stopping what has ended: %v", err)
	}
}

// shortly bounds the moment that a settling waits for a decision.
func shortly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestBadSupervisorsAreNotLetGo(t *testing.T) {
	tests := map[string]string{
		"liar": "supervisor reports process",
		"loud": "ended before it was ready",
		"odd":  `introduced itself with "hello\n"`,
		"mute": "did not say who it is",
		"dead": "it says: no space left",
	}
	for part, want := range tests {
		t.Run(part, func(t *testing.T) {
			p, id, f := made(t, "op-"+part)
			ctx := t.Context()
			if part == "mute" {
				ctx = shortly(t)
			}
			_, err := Launch(ctx, player(t, part), f)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v, want %q", err, want)
			}
			if _, err := os.Lstat(filepath.Join(string(f), "told.json")); err == nil {
				t.Error("it was let go")
			}
			os.Remove(f.Supervisor()) // the liar's names this test
			if _, err := p.Settle(t.Context(), id); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("settled with %v", err)
			}
			if _, err := os.Lstat(string(f)); !errors.Is(err, fs.ErrNotExist) {
				t.Error("its folder is still there")
			}
		})
	}
	_, _, f := made(t, "op-missing")
	if _, err := Launch(t.Context(), filepath.Join(t.TempDir(), "nothing"), f); err == nil {
		t.Error("a trainer that is missing is no error")
	}
}

// TestStopLeavesOthersAlone: the number fits, the start time does not.
func TestStopLeavesOthersAlone(t *testing.T) {
	_, _, f := made(t, "op")
	bystander := exec.Command("sleep", "3600")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { bystander.Wait(); close(ended) }()
	defer func() { bystander.Process.Kill(); <-ended }()
	who, err := run.Identify(bystander.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	who.Start++
	if err := run.WriteJSON(f.Supervisor(), run.Supervisor{Process: who}); err != nil {
		t.Fatal(err)
	}
	if err := Stop(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
		t.Error("a process that is not ours was stopped")
	default:
	}
}

func TestPlaceGuardsWhatItRemoves(t *testing.T) {
	p, id, f := made(t, "op")
	if _, err := p.Create(t.Context(), id, "op", small(), launch.Code{}); err == nil {
		t.Error("a run was made twice")
	}
	for _, bad := range []string{"", ".", "..", "../" + id, "run-", "run-../../../../..", "run-0123456789ABCDEF"} {
		if err := p.Remove(bad); err == nil {
			t.Errorf("removing %q is no error", bad)
		}
		if err := p.Sweep(bad); err == nil {
			t.Errorf("sweeping %q is no error", bad)
		}
	}
	if err := Place("runs").Remove(id); err == nil {
		t.Error("a relative place is no error")
	}

	// Somebody's folder under a run's name, and a link to somebody's folder.
	theirs := launch.ID("theirs")
	if err := os.Mkdir(string(p.Folder(theirs)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(theirs); !errors.Is(err, ErrNotOurs) {
		t.Errorf("removing an unmarked folder: %v", err)
	}
	linked := launch.ID("linked")
	if err := os.Symlink(string(f), string(p.Folder(linked))); err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(linked); !errors.Is(err, ErrNotOurs) {
		t.Errorf("removing a link: %v", err)
	}

	// A link within goes, what it leads to stays.
	outside := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(f.Logs(), "link")); err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(id); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("what a link led to is gone: %v", err)
	}
	if _, err := os.Lstat(string(f)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the folder is still there")
	}
	if err := p.Remove(id); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
}

func TestIDFollowsFromTheOperation(t *testing.T) {
	seen := make(map[string]string)
	for _, operation := range []string{"a", "b", "", "a", ""} {
		id := launch.ID(operation)
		if !launch.ValidID(id) {
			t.Errorf("%s is not valid", id)
		}
		before, again := seen[operation]
		if again && (before == id) != (operation != "") {
			t.Errorf("operation %q: %s, then %s", operation, before, id)
		}
		seen[operation] = id
	}
	if seen["a"] == seen["b"] {
		t.Error("two operations make one run")
	}
}
