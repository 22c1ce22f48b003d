package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// TestKubernetesKeepsObjects: no plan deletes an object of a resource with prevent_destroy:
// neither a Job whose template changes, beside other objects and alone, nor an object that
// is no longer declared. The plan after it, of the old declaration, is empty.
func TestKubernetesKeepsObjects(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{Nodes: []kubetest.Node{kubetest.GPUNode("gpu-1", 8)}})
	ns, dir := c.Namespace(t), t.TempDir()
	run := clusterRun(t, dir)
	const beside = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\ndata: {a: \"1\"}\n"
	job := func(image string) string {
		return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: %q}]}}}\n", image)
	}
	declare := func(kept, yaml string) {
		t.Helper()
		text := fmt.Sprintf("provider \"kube\" {\n  config_path = %q\n}\nresource \"kube_manifest\" \"work\" {\n  namespace = %q\n  yaml      = <<-EOT\n%s\nEOT\n  lifecycle { prevent_destroy = %s }\n}\n", c.Kubeconfig(), ns, yaml, kept)
		if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	uid := func() string { return c.Kubectl(t, "", "-n", ns, "get", "job", "j", "-o", "jsonpath={.metadata.uid}") }
	for _, more := range []string{beside, ""} {
		declare("true", job("x:1")+more)
		run(0, "init")
		run(0, "apply", "-auto-approve")
		first := uid()
		declare("true", job("x:2")+more)
		if out := run(1, "plan"); !strings.Contains(out, "prevent_destroy") {
			t.Errorf("the plan says %s", out)
		}
		run(1, "apply", "-auto-approve")
		if more != "" {
			declare("true", more)
			if out := run(1, "plan"); !strings.Contains(unwrap(out), "Job "+ns+"/j is deleted: it is no longer declared") {
				t.Errorf("the plan says %s", out)
			}
		}
		declare("true", job("x:1")+more)
		run(0, "plan", "-detailed-exitcode")
		if got := uid(); got != first {
			t.Errorf("the Job is another one")
		}
		declare("false", job("x:2")+more)
		if out := run(2, "plan", "-detailed-exitcode"); !strings.Contains(out, "1 to destroy") {
			t.Errorf("the plan says %s", out)
		}
		run(0, "apply", "-auto-approve")
		run(0, "plan", "-detailed-exitcode")
		if got := uid(); got == first {
			t.Errorf("the Job is the same one")
		}
		run(0, "destroy", "-auto-approve")
	}
}
