package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// googleConfiguration is a cluster with three pools, two disks and a firewall
// rule. Each argument in angle brackets is one thing before an update and another
// after it, so that the update makes every call that changes something.
const googleConfiguration = `
terraform {
  required_providers { gke = { source = "stokehq/gke" } }
}
resource "gke_cluster" "lab" {
  name            = "lab"
  release_channel = "NONE"
  shielded_nodes  = <true|false>
  labels          = { team = "<vision|speech>" }
  maintenance_window = {
    start      = "2026-01-03T02:00:00Z"
    end        = "2026-01-03T0<8|9>:00:00Z"
    recurrence = "FREQ=DAILY"
  }
}
resource "gke_node_pool" "cpu" {
  cluster      = gke_cluster.lab.id
  name         = "cpu"
  machine_type = "n2-standard-4"
  node_count   = <1|2>
  auto_upgrade = <true|false>
}
resource "gke_node_pool" "gpu" {
  cluster      = gke_cluster.lab.id
  name         = "gpu"
  machine_type = "g2-standard-8"
  node_count   = 1
  labels       = { job = "<a|b>" }
  accelerator {
    type  = "nvidia-l4"
    count = 1
  }
}
resource "gke_node_pool" "spare" {
  cluster      = gke_cluster.lab.id
  name         = "spare"
  machine_type = "n2-standard-4"
  spot         = true
  autoscaling {
    min = 0
    max = <3|5>
  }
}
resource "gke_disk" "data" {
  name                    = "data"
  type                    = "hyperdisk-balanced"
  size_gb                 = <100|200>
  iops                    = <3000|4000>
  labels                  = { team = "<vision|speech>" }
  snapshot_before_destroy = true
}
resource "gke_disk" "scratch" {
  name          = "scratch"
  location      = "us-central1"
  replica_zones = ["us-central1-a", "us-central1-b"]
  type          = "pd-<balanced|ssd>"
  size_gb       = 200

  allow_data_loss = true # the type makes it anew
}
resource "gke_firewall_rule" "ssh" {
  name          = "ssh"
  source_ranges = ["10.0.0.0/<8|16>"]
  allow {
    protocol = "tcp"
    ports    = ["22"]
  }
}
`

// The stages of the configuration's life, in their order.
const (
	made      = "made"
	altered   = "altered"
	destroyed = "destroyed"
)

var googleStages = []string{made, altered, destroyed}

// googleLab is a folder with the configuration, and the Google that it is about.
type googleLab struct {
	*testing.T
	google    *gcptest.Cloud
	transport string
	dir, home string

	mu     sync.Mutex
	killed []gcptest.Call
	trap   func(e gcptest.Event) bool // whether to kill now; nil for never
	victim *os.Process
	buried chan struct{} // closed when the victim has ended
}

func newGoogleLab(t *testing.T, transport string) *googleLab {
	l := &googleLab{T: t, transport: transport, dir: t.TempDir(), home: t.TempDir(), google: gcptest.New(t, gcptest.Options{Polls: googlePolls})}
	for _, on := range []func(gcptest.Hook){l.google.OnCommit, l.google.OnReply, l.google.OnPoll} {
		on(l.spring)
	}
	l.declare(made)
	l.stoke(0, "init")
	return l
}

// declare writes the configuration of a stage.
func (l *googleLab) declare(stage string) {
	l.Helper()
	text := googleConfiguration
	for {
		before, rest, ok := strings.Cut(text, "<")
		if !ok {
			break
		}
		choice, after, _ := strings.Cut(rest, ">")
		was, is, _ := strings.Cut(choice, "|")
		if stage == altered {
			was = is
		}
		text = before + was + after
	}
	l.write(text)
}

// write writes a configuration, and leads the provider to the double.
func (l *googleLab) write(text string) {
	l.Helper()
	container := l.google.REST() + "/container"
	if l.transport == "grpc" {
		container = "http://" + l.google.Container()
	}
	text += fmt.Sprintf(`
provider "gke" {
  project            = %q
  zone               = "us-central1-a"
  transport          = %q
  container_endpoint = %q
  compute_endpoint   = "%[4]s/compute/v1/"
  file_endpoint      = "%[4]s/file/"
}
`, l.google.Project(), l.transport, container, l.google.REST())
	write(l.T, filepath.Join(l.dir, "main.tf"), []byte(text))
}

func (l *googleLab) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(l.Context(), "stoke", append([]string{"-chdir=" + l.dir}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+l.home, "NO_COLOR=1", "GOOGLE_APPLICATION_CREDENTIALS="+filepath.Join(l.home, "none.json"))
	return cmd
}

// stoke runs a command that has to end with this exit code.
func (l *googleLab) stoke(want int, args ...string) string {
	l.Helper()
	cmd := l.command(args...)
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != want {
		l.Fatalf("stoke %v ended with %d, want %d:\n%s", args, got, want, tail(out))
	}
	return string(out)
}

// spring is the hook that kills.
func (l *googleLab) spring(e gcptest.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trap == nil || !l.trap(e) {
		return nil
	}
	l.trap = nil
	_ = l.victim.Kill()
	select {
	case <-l.buried:
	case <-time.After(time.Minute):
		l.Error("the killed process has not ended")
	}
	call := e.Call
	if e.When == gcptest.Polling {
		call = e.Started
	}
	l.killed = append(l.killed, call)
	return gcptest.ErrGone
}

// kill runs what brings a stage about with a trap, and tells whether that was
// sprung. A run that nothing has killed has to succeed.
func (l *googleLab) kill(stage string, trap func(gcptest.Event) bool, more ...string) bool {
	l.Helper()
	cmd := l.command(append(bringing(stage), more...)...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	l.mu.Lock()
	l.buried, l.trap = make(chan struct{}), trap
	if err := cmd.Start(); err != nil {
		l.mu.Unlock()
		l.Fatal(err)
	}
	l.victim = cmd.Process
	l.mu.Unlock()
	err := cmd.Wait()
	close(l.buried)
	l.mu.Lock()
	sprung := l.trap == nil
	l.trap = nil
	l.mu.Unlock()
	switch {
	case sprung && cmd.ProcessState.Exited():
		l.Fatalf("stoke was not killed, and ended with %v:\n%s", err, out.String())
	case !sprung && err != nil:
		l.Fatalf("stoke %v: %v\n%s", bringing(stage), err, tail([]byte(out.String())))
	}
	return sprung
}

// bringing is the command that brings a stage about.
func bringing(stage string) []string {
	if stage == destroyed {
		return []string{"destroy", "-auto-approve"}
	}
	return []string{"apply", "-auto-approve"}
}

// makes are the calls that make an object.
func makes(c gcptest.Call) bool {
	return strings.HasPrefix(c.Method, "Create") || strings.HasSuffix(c.Method, ".insert") || strings.HasSuffix(c.Method, ".createSnapshot")
}

// accepted are the mutating calls since the last Forget that had an effect, whether
// or not anybody got the answer.
func (l *googleLab) accepted() (all []gcptest.Call) {
	for _, c := range l.google.Calls() {
		if c.Mutating && c.Operation != "" {
			all = append(all, c)
		}
	}
	return all
}

// check compares Google with the state, after a stage was brought about by any
// number of runs. No object was made twice.
func (l *googleLab) check(stage string) {
	l.Helper()
	creates := map[string]int{}
	for _, c := range l.accepted() {
		if makes(c) {
			creates[c.Method+" "+c.Target]++
		}
	}
	for target, n := range creates {
		if n > 1 {
			l.Errorf("%s was accepted %d times", target, n)
		}
	}
	state := l.state()
	var there, snapshots []string
	for _, o := range l.google.Inventory() {
		if strings.Contains(o.Path, "/snapshots/") {
			snapshots = append(snapshots, o.Path)
			continue
		}
		there = append(there, o.Path)
		if o.Labels["stoke-operation"] == "" && !strings.Contains(o.Description, "stoke-operation") {
			l.Errorf("%s has no mark", o.Path)
		}
		if n, ok := state[o.Path]["node_count"].(float64); ok && int(n) != o.Nodes {
			l.Errorf("%s has %d nodes, the state says %v", o.Path, o.Nodes, n)
		}
	}
	if ours := slices.Sorted(maps.Keys(state)); !slices.Equal(ours, there) {
		l.Errorf("the state has\n%s\nGoogle has\n%s", strings.Join(ours, "\n"), strings.Join(there, "\n"))
	}
	want, kept := 7, 0
	if stage == destroyed {
		want, kept = 0, 1
	}
	if len(there) != want || len(snapshots) != kept {
		l.Errorf("%d objects and %d snapshots, want %d and %d: %v %v", len(there), len(snapshots), want, kept, there, snapshots)
	}
	for _, path := range l.google.Running() {
		if strings.Contains(path, "/clusters/") { // what became of the others is seen before they end
			l.Errorf("an operation still runs on %s", path)
		}
	}
}

// state is the attributes of all objects in the state, by id.
func (l *googleLab) state() map[string]map[string]any {
	l.Helper()
	var s struct {
		Resources []struct {
			Instances []struct {
				Status     string
				Attributes map[string]any
			}
		}
	}
	if err := json.Unmarshal([]byte(l.stoke(0, "state", "pull")), &s); err != nil {
		l.Fatal(err)
	}
	all := map[string]map[string]any{}
	for _, r := range s.Resources {
		for _, i := range r.Instances {
			id, _ := i.Attributes["id"].(string)
			all[id] = i.Attributes
			if i.Status != "" {
				l.Errorf("%s is %s in the state", id, i.Status)
			}
		}
	}
	return all
}

// settled brings a stage to its end, after which there is nothing to do.
func (l *googleLab) settled(stage string) {
	l.Helper()
	l.stoke(0, bringing(stage)...)
	if stage != destroyed {
		l.stoke(0, "plan", "-detailed-exitcode")
	}
	l.check(stage)
}

// killing is a moment at which stoke is to be killed: at the n-th call of a method for a target.
type killing struct {
	when           gcptest.When
	method, target string
	n              int
}

var whenNames = map[gcptest.When]string{gcptest.Before: "before commit", gcptest.After: "after commit", gcptest.Polling: "while polling"}

func (m killing) String() string {
	target := m.target[strings.LastIndex(m.target, "/")+1:]
	return fmt.Sprintf("%s %s %d %s", m.method, target, m.n, whenNames[m.when])
}

// inEachLife is a target without what differs from one life to the next: the id of
// its disk in the name of a snapshot.
func inEachLife(target string) string {
	name, _, _ := strings.Cut(target, "-before-destroy-")
	return name
}

// at is its trap.
func (m killing) at() func(gcptest.Event) bool {
	var accepted []int // numbers of the calls: one that finds another operation under way is refused, and repeated
	return func(e gcptest.Event) bool {
		call := e.Call
		if e.When == gcptest.Polling {
			call = e.Started
		}
		if call.Method != m.method || inEachLife(call.Target) != m.target {
			return false
		}
		n := len(accepted) + 1
		if i := slices.Index(accepted, call.Number); i >= 0 {
			n = i + 1
		} else if e.When != gcptest.Before {
			accepted = append(accepted, call.Number)
		}
		return e.When == m.when && n == m.n
	}
}

// googleMoments lives the whole life without a kill, and tells the moments of each stage.
func googleMoments(t *testing.T, transport string) map[string][]killing {
	t.Helper()
	l := newGoogleLab(t, transport)
	all := map[string][]killing{}
	for _, stage := range googleStages {
		l.declare(stage)
		l.google.Forget()
		l.stoke(0, bringing(stage)...)
		count := map[string]int{}
		for _, c := range l.accepted() {
			target := inEachLife(c.Target)
			count[c.Method+" "+target]++
			for _, when := range []gcptest.When{gcptest.Before, gcptest.After, gcptest.Polling} {
				all[stage] = append(all[stage], killing{when, c.Method, target, count[c.Method+" "+target]})
			}
		}
		l.settled(stage)
	}
	return all
}

// googleMethods are those of moments.
func googleMethods(all []killing) []string {
	names := map[string]bool{}
	for _, m := range all {
		names[m.method] = true
	}
	return slices.Sorted(maps.Keys(names))
}
