//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/plan/state"
)

// TestBucketWithTerraform has Terraform and stoke take turns on one state in a
// bucket, in one working directory: each finds what the other one did, and
// minds its lock.
func TestBucketWithTerraform(t *testing.T) {
	t.Parallel()
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not installed")
	}
	stoke := thisStoke(t)
	for name, kind := range buckets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newBucketRun(t, kind, stoke, "variable \"x\" { default = \"1\" }\nresource \"terraform_data\" \"a\" { input = var.x }\n")
			in := func(tool string, args ...string) string {
				t.Helper()
				cmd := exec.Command(tool, append([]string{"-chdir=" + r.dir}, args...)...)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", cmd.Args, err, out)
				}
				return string(out)
			}
			in(terraform, "init", "-reconfigure", "-no-color")
			sameArguments(t, name, filepath.Join(r.dir, ".terraform", "terraform.tfstate"))
			in(terraform, "apply", "-auto-approve", "-no-color")
			in(stoke, "plan", "-detailed-exitcode")
			in(stoke, "init")
			in(stoke, "apply", "-auto-approve", "-var=x=2")
			in(terraform, "plan", "-detailed-exitcode", "-var=x=2")
			in(terraform, "workspace", "new", "dev")
			if out := in(stoke, "workspace", "list"); out != "  default\n* dev\n\n" {
				t.Errorf("workspaces: %q", out)
			}

			waiting := exec.Command(stoke, "-chdir="+r.dir, "apply", "-no-color") // for an answer
			answer, err := waiting.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := waiting.Start(); err != nil {
				t.Fatal(err)
			}
			for !strings.Contains(strings.Join(kind.server.Keys(), " "), ".tflock") && t.Context().Err() == nil {
				time.Sleep(5 * time.Millisecond)
			}
			out, err := exec.Command(terraform, "-chdir="+r.dir, "plan", "-no-color").CombinedOutput()
			if err == nil || !bytes.Contains(out, []byte("Error acquiring the state lock")) || !bytes.Contains(out, []byte(state.CurrentUser())) {
				t.Errorf("terraform while stoke is at work: %v\n%s", err, out)
			}
			if _, err := io.WriteString(answer, "no\n"); err != nil {
				t.Error(err)
			}
			_ = waiting.Wait()
			in(terraform, "plan", "-no-color")
		})
	}
}

// sameArguments compares the arguments of a backend with those that Terraform
// has written down.
func sameArguments(t *testing.T, kind, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var saved struct {
		Backend struct{ Config map[string]any }
	}
	if err := json.Unmarshal(text, &saved); err != nil {
		t.Fatal(err)
	}
	var ours []string
	for _, a := range backendKind(kind).Arguments {
		ours = append(ours, a.Name)
	}
	slices.Sort(ours)
	if d := cmp.Diff(slices.Sorted(maps.Keys(saved.Backend.Config)), ours); d != "" {
		t.Errorf("arguments of %s (-terraform's +ours):\n%s", kind, d)
	}
}
