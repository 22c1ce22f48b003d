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

// ofKubernetes are the configurations of BenchmarkKubernetes: %[1]s is what tells
// the objects of one program from those of another, %[2]s the folder of manifests.
var ofKubernetes = []struct {
	objects int
	config  string
}{
	{500, `
resource "kube_config_map" "many" {
  count = 500
  name  = "%[1]s-single-${count.index}"
  data  = { number = count.index }
}
`},
	{10_000, `
resource "kube_manifest" "many" {
  count = 10
  path  = "%[2]s/objects-${count.index}.yaml"
}
`},
}

// BenchmarkKubernetes measures whole commands against a control plane on the
// same machine: 500 objects that are resources of their own, and 10,000 in ten
// manifests. It counts what a plan with nothing to do asks the API server for.
// With STOKE_BEFORE, the path of an older stoke, each command is run by both in turns,
// three times each, and the ratio of their least CPU times is reported, too.
func BenchmarkKubernetes(b *testing.B) {
	c := kubetest.Start(b, kubetest.Options{APIOnly: true})
	stoke := filepath.Join(b.TempDir(), "stoke")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", stoke, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	programs := []benched{{name: "new", program: stoke}}
	rounds := 1
	if before := os.Getenv("STOKE_BEFORE"); before != "" {
		programs, rounds = append(programs, benched{name: "old", program: before}), 3
	}
	for _, of := range ofKubernetes {
		for i := range programs {
			programs[i].write(b, c.Kubeconfig(), of.objects, of.config)
		}
		commands := [][]string{{"plan"}, {"apply", "-auto-approve"}, {"plan", "-detailed-exitcode"}, {"destroy", "-auto-approve"}}
		for _, args := range commands {
			b.Run(fmt.Sprintf("%d/%s", of.objects, strings.Join(args, "")), func(b *testing.B) {
				for i := range programs {
					programs[i].clear()
				}
				for range rounds {
					for i := range programs {
						programs[i].run(b, c, args)
						if undo := map[string]string{"apply": "destroy", "destroy": "apply"}[args[0]]; undo != "" && rounds > 1 {
							programs[i].start(b, undo, "-auto-approve")
						}
					}
				}
				if args[0] != "plan" && rounds > 1 {
					for i := range programs {
						programs[i].start(b, args...)
					}
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(programs[0].least.Seconds(), "CPU-s")
				b.ReportMetric(float64(programs[0].requests), "requests")
				b.ReportMetric(float64(programs[0].lists), "lists")
				if len(programs) > 1 {
					b.ReportMetric(programs[0].least.Seconds()/programs[1].least.Seconds(), "of-before")
					b.ReportMetric(float64(programs[1].requests), "requests-before")
				}
			})
		}
	}
}

// benched is a stoke whose commands BenchmarkKubernetes measures: the least CPU time
// of a command, the requests about ConfigMaps that its last run made, and the lists among them.
type benched struct {
	name, program, dir string
	least              time.Duration
	requests, lists    int
}

func (p *benched) write(b *testing.B, kubeconfig string, objects int, config string) {
	b.Helper()
	p.dir = b.TempDir()
	files := map[string]string{
		"main.tf": fmt.Sprintf("provider \"kube\" {\n  config_path = %q\n}\n", kubeconfig) + fmt.Sprintf(config+"%.0[1]s%.0[2]s", p.name, p.dir),
	}
	for i := range 10 {
		var text strings.Builder
		for j := range objects / 10 {
			fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-many-%d-%d}\ndata: {number: \"%[3]d\"}\n", p.name, i, j)
		}
		files[fmt.Sprintf("objects-%d.yaml", i)] = text.String()
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

func (p *benched) clear() { p.least, p.requests, p.lists = 0, 0, 0 }

func (p *benched) start(b *testing.B, args ...string) *exec.Cmd {
	b.Helper()
	cmd := exec.Command(p.program, append([]string{"-chdir=" + p.dir}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+p.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("stoke %v: %v\n%s", args, err, out[max(0, len(out)-2000):])
	}
	return cmd
}

// run runs a command, and keeps its CPU time where it is the least.
func (p *benched) run(b *testing.B, c *kubetest.Cluster, args []string) {
	b.Helper()
	before := c.Requests(b)
	state := p.start(b, args...).ProcessState
	asked := c.Requests(b).Since(before)
	p.requests, p.lists = asked.Of("", "configmaps"), asked.Of("LIST", "configmaps")
	if took := state.UserTime() + state.SystemTime(); p.least == 0 || took < p.least {
		p.least = took
	}
}
