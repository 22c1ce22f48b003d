package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

const kubeConfiguration = `
terraform {
  required_providers {
    kube = { source = "stokehq/kube" }
  }
}
provider "kube" {
  config_path = "KUBECONFIG"
}
variable "password" {
  type      = string
  sensitive = true
}
variable "told" {
  type      = string
  sensitive = true
}
resource "kube_namespace" "lab" {
  name = "lab"
}
resource "kube_secret" "login" {
  name      = "login"
  namespace = kube_namespace.lab.name
  data      = { password = var.password }
}
resource "kube_manifest" "told" {
  yaml = yamlencode({
    apiVersion = "v1", kind = "ConfigMap", data = { password = var.told }
    metadata   = { name = "told", namespace = kube_namespace.lab.name }
  })
}
resource "kube_manifest" "web" {
  path      = "web.yaml"
  namespace = kube_namespace.lab.name
}
`

const kubeManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:1"}
---
apiVersion: v1
kind: Secret
metadata: {name: inner}
stringData: {token: canary-of-the-manifest}
`

// clusterRun calls stoke in a folder, with secrets in variables that nothing
// may show. want is the exit code.
func clusterRun(t *testing.T, dir string) func(want int, args ...string) string {
	home := t.TempDir()
	return func(want int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "stoke", append([]string{"-chdir=" + dir}, args...)...)
		cmd.Env = append(os.Environ(), "TF_VAR_password=canary-of-the-variable", "TF_VAR_told=sesame", "HOME="+home)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Fatalf("stoke %v ended with %d, want %d:\n%s", args, got, want, out)
		}
		if strings.Contains(string(out), "canary") || strings.Contains(string(out), "sesame") {
			t.Errorf("stoke %v shows a secret:\n%s", args, out)
		}
		return string(out)
	}
}

// TestKubernetes lives a configuration's life in a real cluster, by commands:
// plan, apply, nothing to do, drift, repair, destroy.
func TestKubernetes(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{Nodes: []kubetest.Node{kubetest.GPUNode("gpu-1", 8)}})
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("main.tf", strings.ReplaceAll(kubeConfiguration, "KUBECONFIG", c.Kubeconfig()))
	write("web.yaml", kubeManifest)
	run := clusterRun(t, dir)
	if out := run(2, "plan", "-detailed-exitcode"); !strings.Contains(out, "4 to add") || !strings.Contains(out, "apps/Deployment/lab/web") {
		t.Errorf("the plan does not tell what is made:\n%s", out)
	}
	run(0, "apply", "-auto-approve")
	run(0, "plan", "-detailed-exitcode")
	c.Kubectl(t, "", "-n", "lab", "scale", "deployment", "web", "--replicas=1")
	if out := run(2, "plan", "-detailed-exitcode"); !strings.Contains(out, "replicas: 1") || !strings.Contains(out, "replicas: 2") {
		t.Errorf("the plan does not tell the drift:\n%s", out)
	}
	run(0, "apply", "-auto-approve")
	if got := c.Kubectl(t, "", "-n", "lab", "get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"); got != "2" {
		t.Errorf("%s replicas after the repair", got)
	}
	// What is made in place of another resource, by order or because it is tainted.
	uid := func() string {
		return c.Kubectl(t, "", "-n", "lab", "get", "deployment", "web", "-o", "jsonpath={.metadata.uid}")
	}
	first := uid()
	run(0, "apply", "-auto-approve", "-replace=kube_manifest.web")
	second := uid()
	run(0, "taint", "kube_manifest.web")
	run(0, "apply", "-auto-approve")
	if third := uid(); first == second || second == third {
		t.Errorf("the deployment was %s, %s, %s", first, second, third)
	}
	run(0, "plan", "-detailed-exitcode")
	// An object moves to a resource that is applied later, by a plan in a file, and
	// to another address, as it is.
	moved := func() string {
		return c.Kubectl(t, "", "-n", "lab", "get", "configmap", "moving", "-o", "jsonpath={.metadata.uid}")
	}
	whole := strings.ReplaceAll(kubeConfiguration, "KUBECONFIG", c.Kubeconfig())
	manifest := func(name, more string, objects ...string) string {
		text := "resource \"kube_manifest\" \"" + name + "\" {\n" + more + "\nyaml = <<-EOT\n"
		for _, o := range objects {
			text += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + o + ", namespace: lab}\n"
		}
		return text + "EOT\n}\n"
	}
	write("main.tf", whole+manifest("a", "", "moving", "one")+manifest("b", "", "two"))
	run(0, "apply", "-auto-approve")
	was := moved()
	write("main.tf", whole+manifest("a", "", "one")+manifest("b", "depends_on = [kube_manifest.a]", "moving", "two"))
	if out := run(0, "plan", "-out="+filepath.Join(dir, "p")); !strings.Contains(unwrap(out), "ConfigMap lab/moving is handed over to kube_manifest.b as it is") {
		t.Errorf("the plan does not tell the move:\n%s", out)
	}
	run(0, "apply", filepath.Join(dir, "p"))
	write("main.tf", whole+manifest("a", "", "one")+manifest("c", "depends_on = [kube_manifest.a]", "moving", "two"))
	run(0, "apply", "-auto-approve")
	if now := moved(); now != was {
		t.Errorf("what moves was %s and is %s", was, now)
	}
	run(0, "plan", "-detailed-exitcode")
	// Another cluster is refused before anything is read.
	other := kubetest.Start(t, kubetest.Options{APIOnly: true})
	write("main.tf", strings.ReplaceAll(kubeConfiguration, "KUBECONFIG", other.Kubeconfig()))
	if out := run(1, "plan"); !strings.Contains(out, "This is another cluster") {
		t.Errorf("another cluster is read:\n%s", out)
	}
	write("main.tf", whole)
	run(0, "destroy", "-auto-approve")
	if got := c.Kubectl(t, "", "get", "namespace", "lab", "--ignore-not-found", "-o", "name"); got != "" {
		t.Errorf("destroy left %s", got)
	}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(name) == "web.yaml" {
			return err
		}
		text, err := os.ReadFile(name)
		if strings.Contains(string(text), "canary") {
			t.Errorf("%s has a secret", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestKubernetesCreateFirst: what cannot be made beside the old one fails before
// anything is touched, and the old one stays in the state.
func TestKubernetesCreateFirst(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{})
	dir := t.TempDir()
	write := func(path string) {
		text := `
provider "kube" {
  config_path = "` + c.Kubeconfig() + `"
}
resource "kube_volume_claim" "data" {
  name   = "data"
  size   = "1Gi"
  volume = { nfs = { server = "10.0.0.5", path = "` + path + `" } }
  lifecycle {
    create_before_destroy = true
  }
}
`
		if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := clusterRun(t, dir)
	write("/a")
	run(0, "apply", "-auto-approve")
	write("/b")
	if out := run(1, "apply", "-auto-approve"); !strings.Contains(out, "create_before_destroy out") {
		t.Errorf("the error says not what to do:\n%s", out)
	}
	if got := c.Kubectl(t, "", "get", "pv", "default-data", "-o", "jsonpath={.metadata.deletionTimestamp}{.status.phase}"); got != "Bound" {
		t.Errorf("the volume is %q", got)
	}
	write("/a")
	run(0, "plan", "-detailed-exitcode")
	run(0, "destroy", "-auto-approve")
	if got := c.Kubectl(t, "", "get", "pv,pvc", "-o", "name"); strings.TrimSpace(got) != "" {
		t.Errorf("destroy left %s", got)
	}
}
