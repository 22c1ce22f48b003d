package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/modules/library"
	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// clusterCalls are calls of the library's modules that put something into a
// cluster, by module.
var clusterCalls = map[string]string{
	"nvidia-device-plugin": `
module "gpus" {
  source        = "library//nvidia-device-plugin"
  runtime_class = "nvidia"
  node_selector = { "nvidia.com/gpu.present" = "true" }
}`,
	"metrics-server": `
module "metrics" {
  source               = "library//metrics-server"
  kubelet_insecure_tls = true
}`,
	"headlamp": `
module "dashboard" {
  source = "library//headlamp"
}`,
	"local-path": `
module "disks" {
  source  = "library//local-path"
  default = true
}`,
	"nfs": `
module "shared" {
  source = "library//nfs"
  server = "10.0.0.5"
  share  = "/exports/training"
}
resource "kube_manifest" "claim" {
  wait = false # there is no such server
  yaml = <<-EOT
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data}
    spec: {accessModes: [ReadWriteMany], storageClassName: ${module.shared.class}, resources: {requests: {storage: 1Gi}}}
  EOT
}`,
	"nfs-share": `
module "data" {
  source    = "library//nfs-share"
  name      = "shared-data"
  namespace = "default"
  size      = "20Gi"
  gce_disk  = "projects/lab/zones/europe-west4-a/disks/data"
}`,
}

// TestKubernetesLibrary makes and removes what the library's modules for
// clusters describe, in a real cluster: what each pod is made of is accepted,
// under the Pod Security level that it claims too.
func TestKubernetesLibrary(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{Nodes: []kubetest.Node{gpuNodeInZone()}})
	var text strings.Builder
	text.WriteString("provider \"kube\" {\n  config_path = \"" + c.Kubeconfig() + "\"\n}\n")
	for _, name := range library.Names() {
		if libraryCalls[name] == "" && clusterCalls[name] == "" && exampleCalls[name] == "" {
			t.Errorf("no test uses %s", name)
		}
		text.WriteString(clusterCalls[name])
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	run := clusterRun(t, dir)
	run(0, "init")
	before := c.Kubectl(t, "", "get", "all,storageclasses,csidrivers,runtimeclasses,apiservices,namespaces,clusterroles,clusterrolebindings", "-A", "-o", "name")
	if out := run(0, "apply", "-auto-approve"); strings.Contains(out, "Warning") {
		t.Errorf("apply warns:\n%s", out)
	}
	for object, want := range map[string]string{
		"-n kube-system daemonset nvidia-device-plugin": "1", "-n kube-system daemonset csi-nfs-node": "1",
	} {
		args := append(append([]string{"get"}, strings.Fields(object)...), "-o", "jsonpath={.status.numberReady}")
		if got := c.Kubectl(t, "", args...); got != want {
			t.Errorf("%s has %q ready pods", object, got)
		}
	}
	if got := c.Kubectl(t, "", "get", "pvc", "shared-data", "-o", "jsonpath={.status.phase} {.spec.accessModes[0]}"); got != "Bound ReadWriteMany" {
		t.Errorf("the shared claim is %q", got)
	}
	// The API service of metrics-server does not answer here, so that discovery
	// is never complete: nothing else may suffer from that.
	run(0, "plan", "-detailed-exitcode")
	// A change of the NFS server is none of the claim that pods use.
	changed := strings.Replace(text.String(), "size      = \"20Gi\"", "size      = \"20Gi\"\n  image     = \"example.com/nfs:2\"", 1)
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, "", "set", "image", "deployment/shared-data-nfs", "*=drifted")
	c.Kubectl(t, "", "label", "service", "shared-data-nfs", "stoke.dev/managed-")
	if out := run(2, "plan", "-detailed-exitcode"); !strings.Contains(out, "0 to destroy") {
		t.Errorf("more than the server changes:\n%s", out)
	}
	run(0, "apply", "-auto-approve")
	run(0, "plan", "-detailed-exitcode")
	run(0, "destroy", "-auto-approve")
	c.Kubectl(t, "", "wait", "--for=delete", "namespace/headlamp", "--timeout=120s")
	after := c.Kubectl(t, "", "get", "all,storageclasses,csidrivers,runtimeclasses,apiservices,namespaces,clusterroles,clusterrolebindings", "-A", "-o", "name")
	for _, name := range strings.Fields(after) {
		if !strings.Contains(before, name) && !strings.HasPrefix(name, "pod/") {
			t.Errorf("destroy left %s", name)
		}
	}
}

// gpuNodeInZone is a node where a disk of that zone can be attached.
func gpuNodeInZone() kubetest.Node {
	n := kubetest.GPUNode("gpu-1", 8)
	n.Labels["topology.gke.io/zone"] = "europe-west4-a"
	return n
}
