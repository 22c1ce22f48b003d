package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOrder changes and destroys random graphs of files, and reads from the
// provider's own log that everything was done in an order that the rules allow.
func TestOrder(t *testing.T) {
	t.Parallel()
	stoke, err := exec.LookPath("stoke") // this binary: see TestMain
	if err != nil {
		t.Fatal(err)
	}
	graphs := orderGraphs(t)
	if testing.Short() {
		graphs = 8
	}
	for seed := range graphs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newOrderWalk(t, uint64(seed), orderSize, orderTool{path: stoke})
			w.failing = seed%2 == 0
			w.begin()
			w.end()
		})
	}
}

// orderTool is stoke or terraform.
type orderTool struct {
	path      string
	env       []string
	anyUpdate bool // see orderRules
}

// run runs a command in a folder and returns what it said, and whether it
// succeeded.
func (o orderTool) run(dir string, args ...string) (string, bool) {
	cmd := exec.Command(o.path, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CHECKPOINT_DISABLE=1", "TF_CLI_ARGS=-no-color", "GORACE=" + os.Getenv("GORACE")}, o.env...)
	said, err := cmd.CombinedOutput()
	return string(said), err == nil
}

// orderWalk takes one random world through its life with one tool.
type orderWalk struct {
	*orderWorld
	t       *testing.T
	tool    orderTool
	dir     string
	failing bool
	logged  int
	done    [][]string // what was done in each step, in order of the alphabet
}

func newOrderWalk(t *testing.T, seed uint64, size int, tool orderTool) *orderWalk {
	return &orderWalk{orderWorld: newOrderWorld(seed, size), t: t, tool: tool, dir: t.TempDir()}
}

// begin makes the files and changes them, where some updates may fail at first.
func (w *orderWalk) begin() {
	w.declare(w.now)
	w.step(orderRules{now: w.now}, "apply")
	w.change()
	w.remove(w.lose(4))
	retried := w.failing && w.fail(5)
	if retried {
		w.declare(w.now)
		if said, ok := w.tool.run(w.dir, "apply", "-auto-approve"); ok || !strings.Contains(said, "Update failed as asked") {
			w.t.Fatalf("no update failed: %s", said)
		}
		for _, n := range w.now {
			n.fails = false
		}
	}
	w.declare(w.now)
	w.step(orderRules{old: w.old, now: w.now, first: w.first(), lost: w.lost, retried: retried}, "apply")
	w.old = w.now
	clear(w.lost)
}

// end destroys the files in one of several ways, some of them lost before.
func (w *orderWalk) end() {
	way := w.rng.IntN(5)
	if way == 1 {
		w.forget()
	}
	w.remove(w.lose(8))
	if way == 2 {
		w.run("apply", "-refresh-only")
	}
	w.destroy(way > 2)
}

// destroy destroys all files, with the configuration or without it.
func (w *orderWalk) destroy(declared bool) {
	if !declared {
		w.declare(nil)
		w.step(orderRules{old: w.old}, "apply")
	} else {
		w.step(orderRules{old: w.old}, "destroy")
	}
}

// forget takes some files out of the state.
func (w *orderWalk) forget() {
	args := []string{"state", "rm"}
	for _, i := range w.old.nodes() {
		n := w.old[i]
		if !n.data && !n.forgets && n.count != 0 && w.chance(8) {
			w.rm[i] = true
			args = append(args, fmt.Sprintf("test_file.o%d", i))
		}
	}
	if len(args) > 2 {
		w.must(w.tool.run(w.dir, args...))
	}
}

func (w *orderWalk) remove(names []string) {
	for _, name := range names {
		if err := os.Remove(filepath.Join(w.dir, "files", name)); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *orderWalk) declare(v orderVersion) {
	write(w.t, filepath.Join(w.dir, "main.tf"), []byte(v.config(filepath.Join(w.dir, "files"))))
}

func (w *orderWalk) must(said string, ok bool) {
	w.t.Helper()
	if !ok && w.tool.anyUpdate && strings.Contains(said, "Error: Cycle:") {
		w.t.Skip("terraform finds no order")
	}
	if !ok {
		w.t.Fatal(said)
	}
}

func (w *orderWalk) run(args ...string) {
	w.t.Helper()
	said, ok := w.tool.run(w.dir, append(args, "-auto-approve", fmt.Sprintf("-parallelism=%d", 1+w.rng.IntN(20)))...)
	w.must(said, ok)
}

// step runs a command and holds what it did against the rules.
func (w *orderWalk) step(r orderRules, args ...string) {
	w.t.Helper()
	w.run(args...)
	log, err := os.ReadFile(filepath.Join(w.dir, "files", "creates.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	events, err := orderEvents(string(log[w.logged:]))
	if err != nil {
		w.t.Fatal(err)
	}
	w.logged = len(log)
	// That a file is not there any more is logged by whoever notices.
	events = slices.DeleteFunc(events, func(e orderEvent) bool { return e.what == "delete" && w.lost[e.node] })
	var done []string
	for _, e := range events {
		done = append(done, e.String())
	}
	w.done = append(w.done, slices.Sorted(slices.Values(done)))
	r.anyUpdate = w.tool.anyUpdate
	if broken := r.broken(events); len(broken) > 0 {
		w.t.Errorf("%s %s, of %d events:\n  %s", filepath.Base(w.tool.path), strings.Join(args, " "), len(events), strings.Join(broken[:min(len(broken), 10)], "\n  "))
	}
}

// account is what was done, without the order within a step.
func (w *orderWalk) account() string {
	var b strings.Builder
	for i, done := range w.done {
		fmt.Fprintf(&b, "step %d\n%s\n", i+1, strings.Join(done, "\n"))
	}
	return b.String()
}
