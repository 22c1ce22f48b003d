package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// limit is how long a process may take that is to end.
const limit = 10 * time.Minute

const testToken = "0123456789abcdef0123456789abcdef"

// cell is a run without a supervisor and without a run's folder: its roles get
// all that they need by argument and environment.
type cell struct {
	t       *testing.T
	dir     string
	spec    spec.Spec
	text    string // of the spec
	host    string // its roles listen there
	servers []string
	workers string // the coordinator's address
	api     string
	env     []string // more of each process
	program string   // of its roles
}

// solo is one role's process.
type solo struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  string // its standard error
	out  string // its standard output
	done chan struct{}
}

func newCell(t *testing.T, s spec.Spec) *cell {
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return &cell{t: t, dir: t.TempDir(), host: programtest.Loopback(), spec: s, text: string(text), program: trainer}
}

// start starts a role with the spec and the token in its environment and
// nothing else.
func (c *cell) start(args ...string) *solo {
	c.t.Helper()
	p := &solo{t: c.t, log: filepath.Join(c.t.TempDir(), "log"), done: make(chan struct{})}
	file, err := os.Create(p.log)
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	p.cmd = exec.Command(c.program, args...)
	p.cmd.Dir = c.dir
	p.cmd.Env = append([]string{"STOKE_SPEC=" + c.text, "STOKE_TOKEN=" + testToken}, c.env...)
	p.out = p.log + ".out"
	out, err := os.Create(p.out)
	if err != nil {
		c.t.Fatal(err)
	}
	defer out.Close()
	p.cmd.Stdout, p.cmd.Stderr = out, file
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() { p.cmd.Wait(); close(p.done) }()
	c.t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
		if c.t.Failed() {
			data, _ := os.ReadFile(p.log)
			c.t.Logf("%v:\n%s", args, data[max(0, len(data)-3000):])
		}
	})
	return p
}

// listening waits until the role listens and gives the address.
func (p *solo) listening(of string) (address string) {
	p.t.Helper()
	pattern := regexp.MustCompile(`msg=listening for=` + of + ` address=(\S+)`)
	eventually(p.t, "it listens for "+of, func() bool {
		data, _ := os.ReadFile(p.log)
		if m := pattern.FindSubmatch(data); m != nil {
			address = string(m[1])
		}
		return address != ""
	})
	return address
}

func (p *solo) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// ends waits for the process and checks its status.
func (p *solo) ends(want spec.End) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		p.t.Fatalf("%v does not end", p.cmd.Args[1:])
	}
	if got := spec.End(p.cmd.ProcessState.ExitCode()); got != want {
		p.t.Errorf("%v ended with %d, want %d (%s)", p.cmd.Args[1:], got, want, want)
	}
}

func (c *cell) server(index string) *solo {
	p := c.start("ps", "--index", index, "--listen", c.host+":0")
	c.servers = append(c.servers, p.listening("workers"))
	return p
}

func (c *cell) coordinate(more ...string) *solo {
	args := []string{"coordinator", "--state", filepath.Join(c.dir, "state"), "--checkpoints", filepath.Join(c.dir, "elsewhere"), "--servers", strings.Join(c.servers, ",")}
	workers, to := c.workers, c.api
	if workers == "" {
		workers, to = c.host+":0", c.host+":0"
	}
	p := c.start(append(append(args, "--listen", workers, "--listen-api", to), more...)...)
	c.workers, c.api = p.listening("workers"), p.listening("api")
	return p
}

func (c *cell) worker(index string, more ...string) *solo {
	return c.start(append([]string{"worker", "--index", index, "--coordinator", c.workers, "--servers", strings.Join(c.servers, ",")}, more...)...)
}

func (c *cell) client() *api.Client {
	client := api.New("http://"+c.api, testToken, nil)
	c.t.Cleanup(client.Close)
	return client
}

func (c *cell) until(what string, true func(spec.Status) bool) {
	c.t.Helper()
	client := c.client()
	eventually(c.t, what, func() bool { s, err := client.Status(context.Background()); return err == nil && true(s) })
}

// started starts a run of two servers and two workers.
func started(t *testing.T, s spec.Spec, more ...string) (c *cell, coordinator *solo, others []*solo) {
	s.ParameterServer.Replicas = 2
	return startedBy(newCell(t, s), more...)
}

func startedBy(c *cell, more ...string) (_ *cell, coordinator *solo, others []*solo) {
	others = []*solo{c.server("0"), c.server("1")}
	coordinator = c.coordinate(more...)
	return c, coordinator, append(others, c.worker("0"), c.worker("1"))
}

func TestEndsOfAFinishedRun(t *testing.T) {
	t.Parallel()
	c, coordinator, others := started(t, small())
	for _, p := range append(others, coordinator) {
		p.ends(spec.EndFinished)
	}
	var s spec.Status
	if err := run.ReadJSON(filepath.Join(c.dir, "state", "status.json"), &s); err != nil || s.Phase != spec.Succeeded || s.Records != records(c.spec) {
		t.Errorf("status %+v, %v", s, err)
	}
	if found := must(filepath.Glob(filepath.Join(c.dir, "elsewhere", spec.FinalPrefix+"-*", spec.ManifestFile))); len(found) != 1 {
		t.Errorf("finished models %q", found)
	}
	checkSoloLedger(t, run.Folder(filepath.Join(c.dir, "state")), s)
}

// checkSoloLedger compares the coordinator's ledger with its own status.
func checkSoloLedger(t *testing.T, f run.Folder, s spec.Status) {
	t.Helper()
	_, valid := events(t, f.Metrics())
	var sum int64
	for _, e := range valid {
		sum += e.Records
	}
	if int64(len(valid)) != s.Step || sum != s.Records {
		t.Errorf("%d updates of %d records, the status has %d of %d", len(valid), sum, s.Step, s.Records)
	}
}

func TestEndsOfAStoppedRun(t *testing.T) {
	t.Parallel()
	c, coordinator, others := started(t, long())
	c.until("the run trains", func(s spec.Status) bool { return s.Step > 2 && s.Workers == 2 })
	if err := c.client().Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(others, coordinator) {
		p.ends(spec.EndOtherwise)
	}
}

// Who is asked to leave does not end the run, whichever role it is.
func TestEndsOfWhoIsAskedToLeave(t *testing.T) {
	t.Parallel()
	c, coordinator, others := started(t, long())
	c.until("two workers train", func(s spec.Status) bool { return s.Step > 2 && s.Workers == 2 })
	others[2].signal(syscall.SIGTERM)
	others[2].ends(spec.EndAsked)
	again := c.worker("0")
	c.until("two workers train again", func(s spec.Status) bool { return s.Workers == 2 })
	if err := c.client().Change(context.Background(), spec.LiveChange{Workers: new(1)}); err != nil {
		t.Fatal(err)
	}
	others[3].ends(spec.EndAsked) // a scale-down
	coordinator.signal(syscall.SIGTERM)
	coordinator.ends(spec.EndAsked)
	var s spec.Status
	state := run.Folder(filepath.Join(c.dir, "state"))
	if err := run.ReadJSON(state.StatusFile(), &s); err != nil || s.Phase != spec.Pending || s.Saved == 0 {
		t.Fatalf("a run whose coordinator left is %+v, %v", s, err)
	}
	next := c.coordinate()
	c.until("the run goes on", func(now spec.Status) bool { return now.Step > s.Step })
	if _, valid := events(t, state.Metrics()); valid[s.Step].Step != s.Step+1 {
		t.Errorf("update %d follows %d", valid[s.Step].Step, s.Step)
	}
	others[0].signal(syscall.SIGTERM)
	others[0].ends(spec.EndAsked)
	next.signal(syscall.SIGKILL)
	again.signal(syscall.SIGTERM)
	again.ends(spec.EndAsked)
	others[1].signal(syscall.SIGTERM)
	others[1].ends(spec.EndAsked)
}

// A worker that cannot work is given up, not the run.
func TestEndsOfAWorkerThatIsGivenUp(t *testing.T) {
	t.Parallel()
	endless := long()
	endless.Epochs, endless.ParameterServer.Replicas = 100_000, 2
	slow := newCell(t, endless) // it trains until a worker is given up
	slow.program, slow.env = os.Args[0], inSteps("20ms")
	c, _, others := startedBy(slow)
	c.until("two workers train", func(s spec.Status) bool { return s.Step > 2 && s.Workers == 2 })
	others[3].signal(syscall.SIGKILL)
	for _, want := range []spec.End{spec.EndError, spec.EndError, spec.EndGivenUp} {
		c.worker("1", "--data", filepath.Join(c.dir, "nowhere")).ends(want)
	}
	var at int64
	c.until("the run goes on", func(s spec.Status) bool {
		if at == 0 {
			at = s.Step
		}
		return s.Step > at
	})
}

func TestEndsWithoutACoordinator(t *testing.T) {
	t.Parallel()
	s := small()
	s.ParameterServer.Replicas = 1
	c := newCell(t, s)
	c.server("0")
	c.workers = "127.0.0.1:1"
	c.worker("0", "--coordinator-timeout", "100ms").ends(spec.EndNoCoordinator)
	c.start("ps", "--coordinator-timeout", "100ms").ends(spec.EndNoCoordinator)
}

// A worker whose coordinator is lost keeps looking for it.
func TestWorkerLooksForALostCoordinator(t *testing.T) {
	t.Parallel()
	c, coordinator, others := started(t, long())
	c.until("the run trains", func(s spec.Status) bool { return s.Step > 2 })
	coordinator.signal(syscall.SIGKILL)
	<-coordinator.done
	next := c.coordinate()
	c.until("the run goes on", func(s spec.Status) bool { return s.Step > 2 && s.Workers == 2 })
	if err := c.client().Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(others, next) {
		p.ends(spec.EndOtherwise)
	}
}

func TestEndsOfWrongUsage(t *testing.T) {
	t.Parallel()
	c := newCell(t, small())
	bad := filepath.Join(c.dir, "bad")
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"unknown flag":        {[]string{"worker", "--colour"}, "unknown flag: --colour"},
		"unknown command":     {[]string{"walk"}, "walk"},
		"an argument":         {[]string{"ps", "here"}, "here"},
		"no coordinator":      {[]string{"worker"}, "--coordinator"},
		"no servers":          {[]string{"worker", "--coordinator", "127.0.0.1:1"}, "--servers names 0 servers: the run has 1"},
		"no such server":      {[]string{"ps", "--index", "7"}, "counted from 0"},
		"no folder":           {[]string{"coordinator", "--servers", "127.0.0.1:1"}, "--state"},
		"no such output":      {[]string{"coordinator", "--state", c.dir, "--servers", "127.0.0.1:1", "--metrics", "here"}, "--metrics"},
		"nowhere to tell":     {[]string{"coordinator", "--state", c.dir, "--servers", "127.0.0.1:1", "--outcome", bad + "/der"}, "--outcome"},
		"lingers backwards":   {[]string{"coordinator", "--state", c.dir, "--servers", "127.0.0.1:1", "--linger", "-1s"}, "--linger"},
		"negative number":     {[]string{"worker", "--coordinator", "127.0.0.1:1", "--servers", "127.0.0.1:1", "--first-index", "-1"}, "--first-index"},
		"no interval":         {[]string{"ps", "--usage-interval", "0s"}, "--usage-interval"},
		"spec is no JSON":     {[]string{"ps", "--spec", bad}, "bad"},
		"spec is missing":     {[]string{"ps", "--spec", bad + "der"}, "badder"},
		"token is too short":  {[]string{"ps", "--token-file", bad}, "shorter than 32"},
		"address in use":      {[]string{"ps", "--listen", "127.0.0.1:99999"}, "99999"},
		"supervise no folder": {[]string{"supervise", "--run", bad + "der"}, "badder"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCell(t, small())
			p := c.start(tt.args...)
			p.ends(spec.EndUsage)
			if data, _ := os.ReadFile(p.log); !strings.Contains(string(data), tt.says) {
				t.Errorf("it says %q, want %q", data, tt.says)
			}
		})
	}
}

// The table is in the help of every role.
func TestHelpTellsTheEnds(t *testing.T) {
	for _, role := range []string{"coordinator", "ps", "worker", "supervise"} {
		out, err := exec.Command(trainer, role, "--help").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range spec.Ends {
			if !strings.Contains(string(out), row.Meaning) {
				t.Errorf("%s --help does not tell %d", role, row.End)
			}
		}
	}
}

// The table is in the documentation, as it is.
func TestDocumentationTellsTheEnds(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "runs.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range spec.Ends {
		if line := fmt.Sprintf("\n| %d | %s | %s |\n", row.End, row.Meaning, row.Again); !strings.Contains(string(page), line) {
			t.Errorf("docs/runs.md has no line %q", line)
		}
	}
}

// The supervisor records what its processes do, and keeps their outputs apart.
func TestProcessesAreRecorded(t *testing.T) {
	t.Parallel()
	r, _ := disturbed(t, long(), atStep(t, 5), func(r *trial) bool { return kill(t, r.folder, "worker") })
	restarted := func() (all []run.Role) {
		all, err := r.folder.ReadRoles()
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // its supervisor may write it later than the first steps
			t.Fatal(err)
		}
		return all
	}
	eventually(t, "a worker was started again", func() bool {
		for _, role := range restarted() {
			if role.Restarts == 1 && strings.HasPrefix(role.Name, "worker-") && strings.Contains(role.Reason, "killed") {
				return true
			}
		}
		return false
	})
	r.wait()
	var names []string
	for _, role := range restarted() {
		names = append(names, role.Name)
		if role.Phase != run.RoleEnded || role.Since.IsZero() {
			t.Errorf("after the end: %+v", role)
		}
	}
	if got := strings.Join(names, " "); got != "coordinator ps-0 worker-0 worker-1" {
		t.Errorf("roles are %s", got)
	}
	for _, path := range []string{r.folder.Output("worker", 0), r.folder.Log("worker", 0)} {
		if info, err := os.Stat(path); err != nil || strings.HasSuffix(path, ".log") != (info.Size() > 0) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
