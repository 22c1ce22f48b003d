package program

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestCommandsThatCannotBeStarted(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, s *Spec)
		kind   error
		text   string
	}{
		"not in the PATH": {func(t *testing.T, s *Spec) { s.Command = []string{"no-such-command"} }, ErrNotFound, "PATH"},
		"PATH of the program": {func(t *testing.T, s *Spec) {
			s.Command, s.Environment = []string{"sh"}, []string{"PATH=/nowhere"}
		}, ErrNotFound, "/nowhere"},
		"no file":        {func(t *testing.T, s *Spec) { s.Command = []string{"./train.py"} }, ErrNotFound, "train.py"},
		"not executable": {func(t *testing.T, s *Spec) { s.Command = []string{script(t, s, "x", 0o644)} }, ErrNotExecutable, "chmod +x"},
		"not executable in the PATH": {func(t *testing.T, s *Spec) {
			script(t, s, "x", 0o644)
			s.Command, s.Environment = []string{"train.py"}, []string{"PATH=/nowhere:."}
		}, ErrNotExecutable, "chmod +x"},
		"folder":         {func(t *testing.T, s *Spec) { s.Command = []string{"../code"} }, ErrNotExecutable, "folder"},
		"no interpreter": {func(t *testing.T, s *Spec) { s.Command = []string{script(t, s, "#!/no/python\n", 0o755)} }, ErrNotFound, "interpreter"},
		"not a program":  {func(t *testing.T, s *Spec) { s.Command = []string{script(t, s, "print(1)\n", 0o755)} }, ErrNotExecutable, "#!"},
		"no folder":      {func(t *testing.T, s *Spec) { s.Folder += "/none" }, ErrFolder, "does not exist"},
		"file as folder": {func(t *testing.T, s *Spec) { s.Folder = s.Command[0] }, ErrFolder, "not a folder"},
		"parameter":      {func(t *testing.T, s *Spec) { s.Command = append(s.Command, "{{lr}}") }, ErrParameter, "lr"},
		"too long":       {func(t *testing.T, s *Spec) { s.Command = append(s.Command, strings.Repeat("x", 4<<20)) }, ErrParameter, "STOKE_PARAMETERS"},
		"settings":       {func(t *testing.T, s *Spec) { s.Processes = 0 }, ErrSpec, "processes"},
		"no scratch":     {func(t *testing.T, s *Spec) { s.Scratch += "/none" }, ErrStart, "parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSpec(t, "sleep", 2)
			test.change(t, &s)
			before := descriptors(t)
			_, err := Start(s, func(e Event) { t.Errorf("%+v", e) })
			var typed *StartError
			if !errors.As(err, &typed) || !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v", err)
			}
			if after := descriptors(t); after != before {
				t.Errorf("%d descriptors before, %d after", before, after)
			}
			if left := childrenOf(t, os.Getpid()); len(left) > 0 {
				t.Errorf("%+v", left)
			}
		})
	}
}

func script(t *testing.T, s *Spec, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Folder, "train.py"), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return "./train.py"
}

// A rank that cannot be started ends the ranks before it.
func TestHalfAStart(t *testing.T) {
	s := newSpec(t, "sleep", 3)
	before := descriptors(t)
	var started []Event
	_, err := Start(s, func(e Event) {
		if e.Kind == Started {
			started = append(started, e)
			if len(started) == 2 { // the folder is gone for the third one
				if err := os.RemoveAll(s.Folder); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if err == nil || len(started) != 2 {
		t.Errorf("%v, %+v", err, started)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	if left := childrenOf(t, os.Getpid()); len(left) > 0 {
		t.Errorf("%+v", left)
	}
}

// When the agent is killed, its ranks end at once, and the other processes are
// found by their mark.
func TestKilledAgentLeavesOnlyMarkedProcesses(t *testing.T) {
	if err := adoptOrphans(); err != nil { // as the supervisor does
		t.Fatal(err)
	}
	s := newSpec(t, "forks", 1)
	agent := exec.Command(s.Command[0])
	s.Command = []string{"/bin/sh", "-c", s.Command[0] + "; sleep 1000"}
	agent.Env = append(os.Environ(), modeVariable+"=agent")
	in, err := agent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	agent.Stderr = os.Stderr
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	json.NewEncoder(in).Encode(s)
	in.Close()
	var seen struct {
		Ranks []int
		Lines []string
	}
	if err := json.NewDecoder(out).Decode(&seen); err != nil {
		t.Fatal(err)
	}
	agent.Process.Kill()
	agent.Wait()
	awaitExit(seen.Ranks[0]) // now a child of this process
	if p, err := readProcess(seen.Ranks[0]); err == nil {
		p.reap()
	}
	found, err := EndMarked(t.Context(), Mark{Run: s.Member.Run, Member: s.Member.Name}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range seen.Lines {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		if marked := i < 2; slices.Contains(found, pid) != marked {
			t.Errorf("process %d was found: %v", i, !marked)
		}
	}
	for { // all orphans, among them the shell without its environment
		left := childrenOf(t, os.Getpid())
		if len(left) == 0 {
			break
		}
		for _, p := range left {
			p.signal(syscall.SIGKILL)
			awaitExit(p.pid)
			p.reap()
		}
	}
	if again, err := EndMarked(t.Context(), Mark{Run: s.Member.Run}, 0); err != nil || len(again) > 0 {
		t.Error(again, err)
	}
}
