package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/train/image/imagetest"
)

// onLibrary are the examples that stand on a module of the library, and
// exampleLines is how long they may be.
var onLibrary = []string{"elasticdl-cluster", "mlbench"}

const exampleLines = 60

// onGoogle are those that make clusters on Google Cloud. TestDocs applies them, as
// their pages say, to the double.
var onGoogle = []string{"gke-elastic", "gke-mlbench"}

// onMachines are those that make clusters of machines. TestClusterExample of
// providers/metal plans them on some.
var onMachines = []string{"metal-gpu-cluster"}

// TestExamplesAreShort counts all lines of configuration that somebody reads who
// wants to train on a cluster.
func TestExamplesAreShort(t *testing.T) {
	for _, name := range slices.Concat(onLibrary, onGoogle, onMachines) {
		files, err := filepath.Glob(filepath.Join(moduleRoot, "examples", name, "*.tf"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no configuration: %v", name, err)
		}
		lines, called := 0, false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines += strings.Count(string(text), "\n")
			called = called || strings.Contains(string(text), "\"library//")
		}
		if lines > exampleLines || !called {
			t.Errorf("%s has %d lines, of at most %d; it calls a module of the library: %v", name, lines, exampleLines, called)
		}
	}
}

// TestKubernetesExamples plans the examples of training on a cluster on a real
// control plane, and compares the plans with those in their READMEs. With
// -update it writes them there.
func TestKubernetesExamples(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{Nodes: []kubetest.Node{kubetest.GPUNode("gpu-1", 8)}})
	trainer := releasedTrainer(t)
	for _, name := range onLibrary {
		t.Run(name, func(t *testing.T) {
			p, err := readPage(moduleRoot, "examples/"+name+"/README.md")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(p.lines, "\n"), "to add, 0 to change, 0 to destroy.") {
				t.Error("the README shows no plan")
			}
			r := &reading{T: t, page: p, used: make([]atomic.Bool, len(elsewhere)), trainer: trainer, root: moduleRoot, cluster: c.Kubeconfig()}
			r.run()
		})
	}
}

// TestKubernetesExampleApplied applies examples/elasticdl-cluster to an API
// server: who has which priority, what the pods are made from, and where
// checkpoints lie. Its nodes run nothing, so that nobody waits for the run.
func TestKubernetesExampleApplied(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{})
	registry := imagetest.New(t)
	dir := t.TempDir()
	if err := copyConfiguration(dir, filepath.Join(moduleRoot, "examples", "elasticdl-cluster")); err != nil {
		t.Fatal(err)
	}
	push := registry.Host + "/lab/trainer"
	for name, text := range map[string]string{
		"lab.tf":          fmt.Sprintf("provider \"train\" {\n  trainer = %q\n}\n", filepath.Join(releasedTrainer(t), "stoke-trainer")),
		"lab.auto.tfvars": fmt.Sprintf("kubeconfig = %q\npush = %q\n", c.Kubeconfig(), push+":1"),
		"lab_override.tf": "module \"mnist\" {\n  train_records = 2000\n  test_records = 500\n  wait = false\n" +
			"  volumes = [{ mount_path = \"/scratch\", empty_dir = \"1Gi\" }, { mount_path = \"/settings\", config_map = \"settings\", read_only = true }]\n}\n",
	} {
		write(t, filepath.Join(dir, name), []byte(text))
	}
	run := clusterRun(t, dir)
	run(0, "init")
	run(0, "apply", "-auto-approve")
	get := func(what ...string) string {
		t.Helper()
		return strings.TrimSpace(c.Kubectl(t, "", append([]string{"-n", "elasticdl", "get"}, what...)...))
	}
	jobs := get("jobs", "-o", `jsonpath={range .items[*]}{.metadata.name} {.spec.parallelism} {.spec.template.spec.priorityClassName} {.spec.template.spec.containers[0].image}{"\n"}{end}`)
	found := map[string]string{}
	for line := range strings.Lines(jobs) {
		job := strings.Fields(line)
		if len(job) != 4 || !strings.HasPrefix(job[3], push+"@sha256:") {
			t.Fatalf("a Job without an image of the registry: %q", line)
		}
		name := strings.SplitN(job[0], "-", 3) // run-ID-ROLE
		found[name[len(name)-1]] = job[1] + " " + job[2]
	}
	want := map[string]string{"coordinator": "1 stoke-high", "ps": "2 stoke-high", "worker": "3 stoke-low", "worker-high": "1 stoke-high"}
	if d := cmp.Diff(want, found); d != "" {
		t.Error(d)
	}
	mounts := get("jobs", "-o", "jsonpath={.items[*].spec.template.spec.containers[0].volumeMounts[*].mountPath}")
	for _, path := range []string{"/scratch", "/settings"} {
		if n := strings.Count(" "+mounts+" ", " "+path+" "); n != len(want) {
			t.Errorf("%s is mounted %d times: %s", path, n, mounts)
		}
	}
	list := strings.Fields(run(0, "output", "-raw", "pods"))
	if listed := c.Kubectl(t, "", append(list[1:], "-o", "name")...); strings.Count(listed, "job.batch/") != len(want) {
		t.Errorf("%v lists %s", list, listed)
	}
	if claims := get("persistentvolumeclaims", "-o", "jsonpath={.items[*].spec.resources.requests.storage}"); claims != "1Gi" {
		t.Errorf("the claims are %q", claims)
	}
	run(0, "plan", "-detailed-exitcode")
	run(0, "destroy", "-auto-approve")
	if left := get("jobs,pods,persistentvolumeclaims", "-o", "name"); left != "" {
		t.Errorf("destroy left %s", left)
	}
}
