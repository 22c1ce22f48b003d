package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// BenchmarkKubernetes measures whole commands against a control plane on the
// same machine: 500 objects that are resources of their own, and 10,000 in ten
// manifests. It counts what a plan with nothing to do asks the API server for.
func BenchmarkKubernetes(b *testing.B) {
	c := kubetest.Start(b, kubetest.Options{APIOnly: true})
	stoke := filepath.Join(b.TempDir(), "stoke")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", stoke, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	provider := fmt.Sprintf("provider \"kube\" {\n  config_path = %q\n}\n", c.Kubeconfig())
	for _, of := range []struct {
		objects int
		config  string
	}{
		{500, `
resource "kube_config_map" "many" {
  count = 500
  name  = "single-${count.index}"
  data  = { number = count.index }
}
`},
		{10_000, `
resource "kube_manifest" "many" {
  count = 10
  path  = "objects-${count.index}.yaml"
}
`},
	} {
		dir := b.TempDir()
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		write("main.tf", provider+strings.ReplaceAll(of.config, `"objects-`, `"`+dir+`/objects-`))
		for i := range 10 {
			var text strings.Builder
			for j := range of.objects / 10 {
				fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: many-%d-%d}\ndata: {number: \"%[2]d\"}\n", i, j)
			}
			write(fmt.Sprintf("objects-%d.yaml", i), text.String())
		}
		// timed runs a command, and says how long it took and how many requests
		// reached the API server meanwhile.
		timed := func(args ...string) {
			b.Helper()
			b.Run(fmt.Sprintf("%d/%s", of.objects, strings.Join(args, "")), func(b *testing.B) {
				before := c.Requests(b)
				began := time.Now()
				cmd := exec.Command(stoke, append([]string{"-chdir=" + dir}, args...)...)
				cmd.Env = append(os.Environ(), "HOME="+b.TempDir())
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("stoke %v: %v\n%s", args, err, out[max(0, len(out)-2000):])
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(time.Since(began).Seconds(), "s")
				asked := c.Requests(b).Since(before)
				b.ReportMetric(float64(asked.Of("", "configmaps")), "requests")
				b.ReportMetric(float64(asked.Of("LIST", "configmaps")), "lists")
			})
		}
		timed("plan")
		timed("apply", "-auto-approve")
		timed("plan", "-detailed-exitcode")
		timed("destroy", "-auto-approve")
	}
}
