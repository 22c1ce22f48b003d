package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/modules/library"
)

// libraryCalls are configurations that use the modules of the library, each
// with an output "status".
var libraryCalls = map[string]string{
	"local-training": `
provider "train" {
  runs_dir     = "${path.cwd}/runs"
  datasets_dir = "${path.cwd}/datasets"
}
module "digits" {
  source           = "library//local-training"
  format           = "synthetic-digits"
  model            = "softmax"
  train_records    = 2000
  test_records     = 200
  workers          = 2
  minimum_accuracy = 0.1
  hyperparameters  = { learning_rate = 0.1, epochs = 1 }
}
output "status" { value = module.digits.status }
output "accuracy" { value = module.digits.metrics["accuracy"] }
`,
}

// exampleCalls are the modules of the library that examples call, and the
// examples: those have tests of their own.
var exampleCalls = map[string]string{"cluster-training": "mlbench", "gke-benchmark": "gke-mlbench", "gke-elastic": "gke-elastic", "metal-gpu-cluster": "metal-gpu-cluster"}

// TestLibrary makes and removes what each module of the library describes, but
// for those that need a cluster.
func TestLibrary(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("the program that it runs is built without the race detector")
	}
	for _, name := range library.Names() {
		if clusterCalls[name] != "" {
			continue // TestKubernetesLibrary has it
		}
		if example := exampleCalls[name]; example != "" {
			if !slices.Contains(slices.Concat(onLibrary, onGoogle, onMachines), example) {
				t.Errorf("no test applies the example %s, which calls %s", example, name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &training{t: t, dir: t.TempDir(), stoke: programtest.Path(t, "stoke")}
			if libraryCalls[name] == "" {
				t.Fatal("no test uses it")
			}
			if err := os.WriteFile(filepath.Join(c.dir, "main.tf"), []byte(libraryCalls[name]), 0o600); err != nil {
				t.Fatal(err)
			}
			c.run("init")
			c.run("apply", "-auto-approve")
			c.run("plan", "-detailed-exitcode")
			text, err := exec.Command(c.stoke, "-chdir="+c.dir, "output", "-json").Output()
			if err != nil {
				t.Fatal(err)
			}
			var outputs map[string]struct{ Value any }
			if err := json.Unmarshal(text, &outputs); err != nil || outputs["status"].Value != "succeeded" {
				t.Errorf("the outputs are %s, %v", text, err)
			}
			c.run("destroy", "-auto-approve")
			c.empty()
		})
	}
}

// TestLibraryRefuses gives cluster-training arguments that make no sense: each is
// an error that names it, before anything is looked at.
func TestLibraryRefuses(t *testing.T) {
	t.Parallel()
	const call = `
module "run" {
  source    = "library//cluster-training"
  cluster   = { credential = { kubeconfig = { path = "nowhere" } } }
  namespace = "training"
  format    = "synthetic-digits"
  model     = "mlp"
  push      = "registry.example.com/lab/trainer:1"
}
`
	for argument, want := range map[string]string{
		`namespace = "No_Namespace"`:                            "A namespace has at most 63",
		`push = null`:                                           "Pods need an image: give push",
		`coordinator = { storage_class = "fast" }`:              "give storage, too",
		`parameter_server = { replicas = 0 }`:                   "parameter_server.replicas is at least 1",
		`worker = { gpus = 1 }`:                                 "Workers with GPUs need libraries: give base",
		`worker = { replicas = 0 }`:                             "1 <= worker.min_replicas <= worker.replicas",
		`worker = { replicas = 2, min_replicas = 3 }`:           "1 <= worker.min_replicas <= worker.replicas",
		`worker = { replicas = 2, high_priority_replicas = 3 }`: "how many of worker.replicas",
		`worker = { replicas = "many" }`:                        "worker",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "main.tf"), []byte(call))
		write(t, filepath.Join(dir, "bad_override.tf"), []byte("module \"run\" {\n  "+argument+"\n}\n"))
		run := clusterRun(t, dir)
		run(0, "init")
		if out := strings.Join(strings.Fields(run(1, "plan", "-no-color")), " "); !strings.Contains(out, want) {
			t.Errorf("%s: no %q in what is said:\n%s", argument, want, out)
		}
	}
}
