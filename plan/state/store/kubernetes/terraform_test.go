//go:build e2e

package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan/state"
)

// TestTerraform lets Terraform and stoke work on one state in turns, a small
// one and one of many Secrets, and keep each other out.
func TestTerraform(t *testing.T) {
	path, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not installed")
	}
	cluster := newCluster()
	arguments := serve(t, cluster)
	config := kubeconfig(t, arguments, "good")
	dir := t.TempDir()
	main := fmt.Sprintf(`
terraform {
  backend "kubernetes" {
    secret_suffix = "team.a"
    config_path   = %q
    labels        = { team = "x" }
  }
}
variable "n" {}
resource "terraform_data" "x" {
  count = var.n
  input = join("", [for i in range(1000) : sha256("${count.index}-${i}")])
}
output "n" { value = var.n }
`, config)
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	terraform := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE=/dev/null", "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
		var out, complaint bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaint
		if err := cmd.Run(); err != nil {
			return complaint.String(), err
		}
		return out.String(), nil
	}
	must := func(text string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return text
	}
	must(terraform("init", "-no-color"))
	for _, n := range []int{1, 60, 25, 2} {
		must(terraform("apply", "-auto-approve", "-no-color", fmt.Sprintf("-var=n=%d", n)))
		f, err := state.Open(t.Context(), process(t, arguments))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(f.State().Instances()); got != n {
			t.Fatalf("stoke reads %d objects of %d that Terraform made", got, n)
		}
		// Stoke writes it anew, larger by an output.
		j, err := f.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		outputs := map[string]state.Output{"by": {Value: cty.StringVal(fmt.Sprintf("stoke %d %s", n, noise(3, n<<15)))}}
		if err := j.Result(t.Context(), state.Result{Outputs: outputs, Durable: true}); err != nil {
			t.Fatal(err)
		}
		if text, err := terraform("state", "pull"); err == nil {
			t.Errorf("Terraform took a state with an open journal: %.200s", text)
		}
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text := must(terraform("state", "pull")); !strings.Contains(text, fmt.Sprintf("stoke %d ", n)) || strings.Count(text, `"index_key"`) != n {
			t.Fatalf("Terraform reads %d bytes", len(text))
		}
		t.Logf("%d objects: %d Secrets", n, len(cluster.Secrets()))
	}

	s := process(t, arguments)
	l, err := s.Lock(t.Context(), state.LockInfo{Operation: "OperationTypeApply", Who: "ann@desk"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := terraform("apply", "-auto-approve", "-no-color", "-var=n=1")
	if err == nil || !strings.Contains(text, "ann@desk") {
		t.Errorf("Terraform does not know who holds the lock:\n%s", text)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	must(terraform("apply", "-auto-approve", "-no-color", "-var=n=1"))
}
