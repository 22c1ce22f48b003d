package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// crashConfig makes files of both replacement orders. A new generation
// replaces all of them.
const crashConfig = `
variable "generation" {}
variable "objects" { type = number }
resource "test_file" "one" {
  count     = var.objects / 2
  directory = "${path.root}/out"
  name      = "one-${count.index}-${var.generation}"
  content   = "generation ${var.generation}"
}
resource "test_file" "two" {
  count     = var.objects / 2
  directory = "${path.root}/out"
  name      = "two-${count.index}-${var.generation}"
  content   = "generation ${var.generation} after ${length(test_file.one)}"
  lifecycle { create_before_destroy = true }
}
`

// TestKilledCommand kills apply, replacement and destroy with SIGKILL at
// random moments. After the next run files, state and the provider's own log
// agree one to one.
func TestKilledCommand(t *testing.T) {
	dir := t.TempDir()
	stoke := filepath.Join(dir, "stoke")
	if out, err := exec.Command("go", "build", "-o", stoke, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(crashConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	c := &crash{t: t, dir: dir, stoke: stoke}
	c.finish("apply", 0) // warm-up: the time a whole run takes
	took := map[string]time.Duration{"apply": c.took, "destroy": c.took}
	killed := 0
	for generation := 1; killed < crashMoments; generation++ {
		command := "apply"
		if generation%3 == 0 {
			command = "destroy"
		}
		delay := time.Duration(rand.Int64N(int64(took[command])))
		if c.kill(command, generation, delay) {
			killed++
		} else {
			took[command] = took[command] * 3 / 4 // it ended first: aim earlier
		}
		c.finish(command, generation)
		took[command] = max(took[command], c.took)
		c.check(command, generation)
		if t.Failed() {
			t.Fatalf("after %s of generation %d, killed after %s", command, generation, delay)
		}
	}
	t.Logf("killed %d runs of %d objects", killed, crashObjects)
}

type crash struct {
	t          *testing.T
	dir, stoke string
	took       time.Duration
}

func (c *crash) command(name string, generation int) *exec.Cmd {
	cmd := exec.Command(c.stoke, "-chdir="+c.dir, name, "-auto-approve", "-no-color", "-input=false",
		fmt.Sprintf("-var=generation=%d", generation), fmt.Sprintf("-var=objects=%d", crashObjects))
	cmd.Env = append(os.Environ(), "TF_IN_AUTOMATION=1")
	return cmd
}

// kill starts a run and kills it after the delay; false when it ended before.
func (c *crash) kill(name string, generation int, delay time.Duration) bool {
	cmd := c.command(name, generation)
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	time.Sleep(delay)
	cmd.Process.Kill()
	cmd.Wait()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// finish runs the command to its end, which must be a good one.
func (c *crash) finish(name string, generation int) {
	began := time.Now()
	if out, err := c.command(name, generation).CombinedOutput(); err != nil {
		c.t.Fatalf("%s of generation %d: %v\n%s", name, generation, err, tail(out))
	}
	c.took = time.Since(began)
}

func tail(b []byte) []byte { return b[max(0, len(b)-4000):] }

// check compares what there is with what the state and the log say.
func (c *crash) check(name string, generation int) {
	var files []string
	entries, err := os.ReadDir(filepath.Join(c.dir, "out"))
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "creates.log" {
			files = append(files, e.Name())
		}
	}
	want := crashObjects
	if name == "destroy" {
		want = 0
	}
	if len(files) != want {
		c.t.Errorf("%d files, want %d", len(files), want)
	}
	c.same("the state", files, c.stored())
	c.same("the provider's log", files, c.logged())
}

func (c *crash) same(what string, files, others []string) {
	slices.Sort(files)
	slices.Sort(others)
	if !slices.Equal(files, others) {
		c.t.Errorf("the folder has %d files, %s has %d others or not the same", len(files), what, len(others))
	}
}

// stored lists the names of the files that the state knows, deposed ones too.
func (c *crash) stored() []string {
	b, err := os.ReadFile(filepath.Join(c.dir, "terraform.tfstate"))
	if err != nil {
		c.t.Fatal(err)
	}
	var s struct {
		Version   int
		Resources []struct {
			Instances []struct {
				Attributes struct{ Name string }
			}
		}
	}
	if err := json.Unmarshal(b, &s); err != nil {
		c.t.Fatal(err)
	}
	if s.Version != 4 {
		c.t.Errorf("the state has version %d, the journal was not folded", s.Version)
	}
	var names []string
	for _, r := range s.Resources {
		for _, i := range r.Instances {
			names = append(names, i.Attributes.Name)
		}
	}
	return names
}

// logged replays the provider's log of creates and deletes.
func (c *crash) logged() []string {
	b, err := os.ReadFile(filepath.Join(c.dir, "out", "creates.log"))
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		c.t.Fatal(err)
	}
	there := map[string]bool{}
	for _, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		fields := strings.Fields(string(line))
		if len(fields) != 3 {
			c.t.Errorf("the provider's log has a line %q", line)
			continue
		}
		name := filepath.Base(fields[2])
		switch fields[0] {
		case "create":
			if there[name] {
				c.t.Errorf("%s was made twice", name)
			}
			there[name] = true
		case "delete":
			delete(there, name)
		}
	}
	names := make([]string, 0, len(there))
	for name := range there {
		names = append(names, name)
	}
	return names
}
