package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bucketConfig makes files of both replacement orders. A new generation
// replaces all of them.
const bucketConfig = `
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

// bucketRun is a working directory whose state is in a bucket.
type bucketRun struct {
	t          *testing.T
	dir, stoke string
	objects    int
}

func (r *bucketRun) command(name string, generation int) *exec.Cmd {
	cmd := exec.Command(r.stoke, "-chdir="+r.dir, name, "-auto-approve", "-no-color", "-input=false",
		fmt.Sprintf("-var=generation=%d", generation), fmt.Sprintf("-var=objects=%d", r.objects))
	cmd.Env = append(os.Environ(), "TF_IN_AUTOMATION=1")
	return cmd
}

// finish runs the command to its end, which must be a good one.
func (r *bucketRun) finish(name string, generation int) {
	if out, err := r.command(name, generation).CombinedOutput(); err != nil {
		r.t.Fatalf("%s of generation %d: %v\n%s", name, generation, err, tail(out))
	}
}

// check compares what there is with what the state and the log say.
func (r *bucketRun) check(name string, generation int) {
	var files []string
	entries, err := os.ReadDir(filepath.Join(r.dir, "out"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "creates.log" {
			files = append(files, e.Name())
		}
	}
	want := r.objects
	if name == "destroy" {
		want = 0
	}
	if len(files) != want {
		r.t.Errorf("%d files, want %d", len(files), want)
	}
	r.same("the state", files, r.stored())
	r.same("the provider's log", files, r.logged())
}

func (r *bucketRun) same(what string, files, others []string) {
	slices.Sort(files)
	slices.Sort(others)
	if !slices.Equal(files, others) {
		r.t.Errorf("the folder has %d files, %s has %d others or not the same", len(files), what, len(others))
	}
}

// stored lists the names of the files that the state knows, deposed ones too.
func (r *bucketRun) stored() []string {
	b, err := exec.Command(r.stoke, "-chdir="+r.dir, "state", "pull").Output()
	if err != nil {
		r.t.Fatal(err)
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
		r.t.Fatal(err)
	}
	if s.Version != 4 {
		r.t.Errorf("the state has version %d, the journal was not folded", s.Version)
	}
	var names []string
	for _, found := range s.Resources {
		for _, i := range found.Instances {
			names = append(names, i.Attributes.Name)
		}
	}
	return names
}

// logged replays the provider's log of creates and deletes.
func (r *bucketRun) logged() []string {
	b, err := os.ReadFile(filepath.Join(r.dir, "out", "creates.log"))
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		r.t.Fatal(err)
	}
	there := map[string]bool{}
	for _, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		fields := strings.Fields(string(line))
		if len(fields) != 3 {
			r.t.Errorf("the provider's log has a line %q", line)
			continue
		}
		name := filepath.Base(fields[2])
		switch fields[0] {
		case "create":
			if there[name] {
				r.t.Errorf("%s was made twice", name)
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
