package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// watchedTraining goes on until it is destroyed.
const watchedTraining = `
provider "train" {
  runs_dir     = "runs"
  datasets_dir = "datasets"
}
resource "train_dataset" "digits" {
  format = "synthetic-digits"
  train  = 2000
  test   = 500
}
resource "train_experiment" "digits" {
  model           = "mlp"
  dataset         = train_dataset.digits.uri
  wait            = false
  hyperparameters = { learning_rate = 0.05, batch_size = 64, epochs = 1000000 }
  worker { replicas = 2 }
  evaluation { every_steps = 20 }
}
`

// watchedPods are pods in a cluster.
const watchedPods = `
terraform {
  required_providers { kube = { source = "stokehq/kube" } }
}
provider "kube" {
  config_path = "KUBECONFIG"
}
resource "kube_manifest" "web" {
  wait = false
  yaml = <<-EOT
    apiVersion: v1
    kind: Pod
    metadata: {name: web, namespace: default}
    spec:
      nodeName: "here"
      containers: [{name: web, image: "nginx:1"}]
    EOT
}
`

// pane is a real window of tmux, in which a program runs.
type pane struct {
	*testing.T
	socket string
}

func openPane(t *testing.T, dir, command string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	p := &pane{t, filepath.Join(t.TempDir(), "tmux")}
	t.Cleanup(func() { p.tmux("kill-server") })
	p.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", dir, command+"; echo ended with $?; sleep 100000")
	return p
}

func (p *pane) tmux(args ...string) string {
	p.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", p.socket}, args...)...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// screen returns the lines of the window. A line that tmux had to wrap is one line.
func (p *pane) screen() string { return p.tmux("capture-pane", "-p", "-J") }

// until waits until the window has a text.
func (p *pane) until(texts ...string) (screen string) {
	p.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		screen = p.screen()
		missing := ""
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				missing = text
			}
		}
		if missing == "" {
			return screen
		}
		if time.Now().After(deadline) {
			p.Fatalf("the window never has %q:\n%s", missing, screen)
		}
	}
}

// resize changes the window and checks the next pictures of it: they have its size.
func (p *pane) resize(columns, rows int) {
	p.Helper()
	p.tmux("resize-window", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows))
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		lines := strings.Split(strings.TrimRight(p.screen(), "\n"), "\n")
		if len(lines) == rows && strings.HasPrefix(lines[rows-1], "q quit") {
			break
		}
		if time.Now().After(deadline) {
			p.Fatalf("the window of %d rows never has its last line:\n%s", rows, p.screen())
		}
	}
	widest := 0
	for range 10 {
		for line := range strings.Lines(p.screen()) {
			n := len([]rune(strings.TrimRight(line, "\n ")))
			widest = max(widest, n)
			if n > columns {
				p.Errorf("a line has %d of %d columns: %s", n, columns, line)
			}
		}
		time.Sleep(300 * time.Millisecond) // while it is live
	}
	if widest < columns*9/10 {
		p.Errorf("the widest line has %d of %d columns", widest, columns)
	}
}

// TestKubernetesWatchInTmux watches a run of this machine in a real window that changes
// its size, until the run has ended. (The suite of the cluster's commands has it.)
func TestKubernetesWatchInTmux(t *testing.T) {
	dir := t.TempDir()
	config := "provider \"train\" {\n  trainer = " + strconv.Quote(filepath.Join(releasedTrainer(t), "stoke-trainer"))
	write(t, filepath.Join(dir, "main.tf"), []byte(strings.Replace(watchedTraining, `provider "train" {`, config, 1)))
	run := clusterRun(t, dir)
	run(0, "apply", "-auto-approve")
	isLive := true
	t.Cleanup(func() {
		if isLive {
			run(0, "destroy", "-auto-approve")
		}
	})
	p := openPane(t, dir, "stoke watch train_experiment.digits")
	p.until("worker-1", "accuracy", "logs of all roles")
	p.resize(80, 24)
	p.resize(200, 60)
	pid := strings.TrimSpace(p.tmux("display-message", "-p", "#{pane_pid}"))
	began, before := time.Now(), childTicks(t, pid)
	p.resize(80, 24)
	p.resize(33, 10)
	p.resize(200, 60)
	time.Sleep(10 * time.Second)
	share := float64(childTicks(t, pid)-before) / time.Since(began).Seconds() // 100 ticks are a second
	t.Logf("it takes %.1f %% of a processor", share)
	if share > 15 { // 1 to 2 on a quiet machine
		t.Errorf("it takes %.0f %% of a processor", share)
	}
	run(0, "destroy", "-auto-approve")
	isLive = false
	p.until("ended with ")
	for line := range strings.Lines(p.screen()) {
		if len([]rune(line)) > 201 {
			t.Errorf("a line of the end is too long: %s", line)
		}
	}
}

// childTicks returns the processor time of the children of a process, in ticks.
func childTicks(t *testing.T, pid string) (sum int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%s/task/%s/children", pid, pid))
	if err != nil {
		t.Skip("the system does not list children")
	}
	for _, child := range strings.Fields(string(text)) {
		stat, err := os.ReadFile("/proc/" + child + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
		for _, f := range fields[12:14] {
			n, _ := strconv.ParseInt(f, 10, 64)
			sum += n
		}
	}
	return sum
}

// TestKubernetesWatchThroughOutage watches pods of a real control plane in a real window.
// Its API server is killed and comes back.
func TestKubernetesWatchThroughOutage(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	c := kubetest.Start(t, kubetest.Options{})
	k := c.AddKubelet(t, "here")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.tf"), []byte(strings.ReplaceAll(watchedPods, "KUBECONFIG", c.Kubeconfig())))
	run := clusterRun(t, dir)
	c.Eventually(t, "the service account", func(context.Context) (bool, error) {
		_, err := c.TryKubectl(t, c.Kubeconfig(), "", "-n", "default", "get", "serviceaccount", "default")
		return err == nil, err
	})
	run(0, "apply", "-auto-approve")
	k.Run(t, "default", "web", "web")
	k.Say(t, "default", "web", "web", "first "+strings.Repeat("long ", 100)+"line")
	p := openPane(t, dir, "stoke watch kube_manifest.web")
	p.until("running", "first long")
	p.resize(80, 24)
	c.KillAPI(t)
	p.until("lost")
	p.resize(200, 60)
	c.StartAPI(t)
	p.until("connected again after")
	k.Say(t, "default", "web", "web", "the last line")
	p.until("the last line")
	p.resize(80, 24)
	p.tmux("send-keys", "q")
	p.until("ended with 0")
}
