package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// benchCase is a configuration that whole commands are timed with.
type benchCase struct {
	name  string
	files map[string]string
	ops   string // what is measured, of both programs
	alone string // what is measured of stoke alone: terraform takes many minutes
}

func counted(n int) map[string]string {
	return map[string]string{"main.tf": fmt.Sprintf(`
resource "terraform_data" "a" {
  count = %d
  input = "value-${count.index}"
}
`, n)}
}

// crossed is two resources of n instances, each of which refers to one
// instance of the other.
func crossed(n int) map[string]string {
	return map[string]string{"main.tf": fmt.Sprintf(`
resource "terraform_data" "a" {
  count = %d
  input = "value-${count.index}"
}
resource "terraform_data" "b" {
  count = %d
  input = terraform_data.a[count.index].output
}
`, n, n)}
}

// manyModules is n modules of 20 variables each.
func manyModules(n int) map[string]string {
	var root, child strings.Builder
	for v := range 20 {
		fmt.Fprintf(&child, "variable \"v%d\" { type = string }\n", v)
	}
	child.WriteString("resource \"terraform_data\" \"x\" {\n  input = [")
	for v := range 20 {
		fmt.Fprintf(&child, "var.v%d, ", v)
	}
	child.WriteString("]\n}\noutput \"x\" { value = terraform_data.x.output }\n")
	for m := range n {
		fmt.Fprintf(&root, "module \"m%d\" {\n  source = \"./child\"\n", m)
		for v := range 20 {
			fmt.Fprintf(&root, "  v%d = \"value-%d\"\n", v, m)
		}
		root.WriteString("}\n")
	}
	return map[string]string{"main.tf": root.String(), "child/main.tf": child.String()}
}

// benchCases returns the configurations that are measured.
func benchCases() []benchCase {
	return []benchCase{
		{name: "small", files: crossed(2), ops: "validate plan show"},
		{name: "count=1000", files: counted(1000), ops: "plan apply noop destroy"},
		{name: "count=5000", files: counted(5000), ops: "plan apply noop", alone: "destroy"},
		{name: "count=10000", files: counted(10000), ops: "plan noop", alone: "apply destroy"},
		{name: "count=100000", files: counted(100000), alone: "plan apply noop destroy"},
		{name: "2x1000", files: crossed(1000), ops: "plan apply noop destroy"},
		{name: "modules=300", files: manyModules(300), ops: "validate plan apply noop"},
	}
}

// BenchmarkCommand times whole commands as a user starts them, ours and, where
// it is installed, terraform's beside it: wall clock, processor time and the
// most memory that was resident. State for the later commands is made by
// stoke, which both read. What terraform reports as x-time and x-memory is how
// many times ours that was.
//
//	go test ./cmd/stoke -run '^$' -bench BenchmarkCommand -benchtime 1x
func BenchmarkCommand(b *testing.B) {
	stoke := filepath.Join(b.TempDir(), "stoke")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", stoke, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	terraform, _ := exec.LookPath("terraform")
	for _, c := range benchCases() {
		for _, op := range strings.Fields(c.ops + " " + c.alone) {
			var ours cost
			b.Run(c.name+"/"+op+"/stoke", func(b *testing.B) { ours = measure(b, c, op, stoke, stoke) })
			if terraform != "" && slices.Contains(strings.Fields(c.ops), op) && ours.seconds > 0 {
				b.Run(c.name+"/"+op+"/terraform", func(b *testing.B) {
					theirs := measure(b, c, op, terraform, stoke)
					b.ReportMetric(theirs.seconds/ours.seconds, "x-time")
					b.ReportMetric(theirs.megabytes/ours.megabytes, "x-memory")
				})
			}
		}
	}
}

// cost is what one run took: wall clock, and the most memory.
type cost struct{ seconds, megabytes float64 }

// measure runs one command of the program b.N times, each on the same files.
func measure(b *testing.B, c benchCase, op, program, stoke string) cost {
	dir := b.TempDir()
	for name, text := range c.files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	started(b, dir, program, "init")
	state := filepath.Join(dir, "terraform.tfstate")
	stored := ""
	args := map[string][]string{
		"validate": {"validate"}, "plan": {"plan"}, "noop": {"plan", "-detailed-exitcode"}, "show": {"show", "-json"},
		"apply": {"apply", "-auto-approve"}, "destroy": {"destroy", "-auto-approve"},
	}[op]
	if op == "noop" || op == "destroy" || op == "show" {
		started(b, dir, stoke, "apply", "-auto-approve")
		stored = filepath.Join(dir, "stored")
		copyFile(b, state, stored)
	}
	var cpu, rss float64
	for b.Loop() {
		b.StopTimer()
		os.Remove(state)
		if stored != "" {
			copyFile(b, stored, state)
		}
		b.StartTimer()
		ended := started(b, dir, program, args...)
		cpu += (ended.UserTime() + ended.SystemTime()).Seconds()
		rss = max(rss, peak(ended))
	}
	b.ReportMetric(cpu/float64(b.N), "cpu-s/op")
	took := cost{seconds: b.Elapsed().Seconds() / float64(b.N), megabytes: rss}
	b.ReportMetric(took.megabytes, "peak-MB")
	b.ReportMetric(took.seconds, "s/op")
	b.ReportMetric(0, "ns/op")
	return took
}

// copyFile keeps no more than a little of the file in memory: what a process
// is said to have had at most counts what its parent had when it began.
func copyFile(b *testing.B, from, to string) {
	in, err := os.Open(from)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		b.Fatal(err)
	}
	if err := out.Close(); err != nil {
		b.Fatal(err)
	}
}

// started runs a command to its end, which must be a good one.
func started(b *testing.B, dir, program string, args ...string) *os.ProcessState {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TF_IN_AUTOMATION=1", "TF_INPUT=0", "NO_COLOR=1", "CHECKPOINT_DISABLE=1")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		b.Fatalf("%s %s: %v\n%s", program, args[0], err, tail(said.Bytes()))
	}
	return cmd.ProcessState
}

// peak is the most memory that the process had resident, in MB.
func peak(p *os.ProcessState) float64 {
	used, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	bytes := float64(used.Maxrss)
	if runtime.GOOS != "darwin" { // which counts bytes, others kilobytes
		bytes *= 1024
	}
	return bytes / 1e6
}
