//go:build e2e && linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/providers/connect/podtest"
)

// torchImage is an image of Python and PyTorch from files of this machine.
const torchImage = `
terraform {
  required_providers {
    train = { source = "stokehq/train" }
  }
}
provider "train" {
  trainer = "TRAINER"
}
resource "train_image" "torch" {
  files   = { "/usr" = "root/usr", "/lib64" = "root/lib64" }
  tarball = "torch.tar"
}
output "reference" {
  value = train_image.torch.reference
}
`

// torchOnPods is examples/pytorch on a cluster.
const torchOnPods = `
resource "train_experiment" "ddp" {
  cluster   = local.lab
  namespace = kube_namespace.lab.name
  image     = "IMAGE"

  program {
    code       = "program"
    command    = ["/usr/bin/python3", "train.py"]
    framework  = "torch"
    processes  = 2
  }
  coordinator {
    memory = "128Mi"
  }
  worker {
    replicas = 2
    memory   = "1536Mi"
  }
}
output "accuracy" {
  value = train_experiment.ddp.metrics["accuracy"]
}
`

// debianRoot copies Python, PyTorch and the libraries that they need to a folder.
func debianRoot(t *testing.T, python, root string) {
	t.Helper()
	const list = `import os, sys, sysconfig, torch, numpy, typing_extensions
for path in (sysconfig.get_paths()["stdlib"], os.path.dirname(torch.__file__), os.path.dirname(numpy.__file__),
             typing_extensions.__file__, os.path.realpath(sys.executable)):
    print(path)`
	out, err := exec.Command(python, "-c", list).Output()
	if err != nil {
		t.Fatal(err)
	}
	paths := strings.Fields(string(out))
	program := paths[len(paths)-1]
	binaries := []string{program}
	for _, path := range paths {
		found, err := exec.Command("find", path, "-name", "*.so*", "-type", "f").Output()
		if err != nil {
			t.Fatal(err)
		}
		binaries = append(binaries, strings.Fields(string(found))...)
	}
	libraries, err := exec.Command("ldd", binaries...).Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)(?:=> |^\t)(/\S+) \(`).FindAllStringSubmatch(string(libraries), -1) {
		seen[m[1]] = true
	}
	for path := range seen {
		to := filepath.Join(root, path)
		if strings.HasPrefix(path, "/lib/") { // Debian's link to /usr/lib
			to = filepath.Join(root, "usr", path)
		}
		copyWhole(t, path, to)
	}
	for _, path := range paths {
		copyWhole(t, path, filepath.Join(root, path))
	}
	copyWhole(t, program, filepath.Join(root, "usr", "bin", "python3"))
}

// copyWhole copies a file or folder, with the files that links lead to. Links to nothing,
// such as to headers that are not installed, are left out.
func copyWhole(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("cp", "-rLT", from, to).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "cannot stat") {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if _, err := os.Stat(to); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestPyTorchRealPods runs examples/pytorch in real pods, in an image that train_image
// has built from Debian's files. Its accuracy is that of torchrun on this machine.
func TestPyTorchRealPods(t *testing.T) {
	python := programtest.Torch(t)
	c := podtest.Start(t, podtest.Options{Nodes: 2})
	trainer := trainerImage(t, c)
	image := newPodLab(t, c, trainer, "torch")
	write(t, filepath.Join(image.dir, "main.tf"), []byte(strings.ReplaceAll(torchImage, "TRAINER", trainer)))
	debianRoot(t, python, filepath.Join(image.dir, "root"))
	image.run(0, "init")
	image.run(0, "apply", "-auto-approve")
	reference := strings.TrimSpace(image.run(0, "output", "-raw", "reference"))
	c.Load(t, filepath.Join(image.dir, "torch.tar"))

	l := newPodLab(t, c, trainer, "torch")
	program := filepath.Join(moduleRoot, "examples", "pytorch", "program")
	copyWhole(t, program, filepath.Join(l.dir, "program"))
	l.declare("privileged", strings.ReplaceAll(torchOnPods, "IMAGE", reference))
	l.run(0, "init")
	t.Log(l.run(0, "apply", "-auto-approve"))
	all := epochs(t, torchrun(t, python, filepath.Join(program, "train.py"), 4))
	want := all[len(all)-1].Accuracy
	got, err := strconv.ParseFloat(strings.TrimSpace(l.run(0, "output", "-raw", "accuracy")), 64)
	if err != nil || got < want-0.005 || got > want+0.005 {
		t.Errorf("the accuracy is %v, torchrun has %v: %v", got, want, err)
	}
	l.run(0, "destroy", "-auto-approve")
	image.run(0, "destroy", "-auto-approve")
}
