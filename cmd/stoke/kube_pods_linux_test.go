package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stokehq/stoke/cmd/stoke/terminal/terminaltest"
	"github.com/stokehq/stoke/providers/connect/kubetest"
)

const podsConfiguration = `
terraform {
  required_providers {
    kube = { source = "stokehq/kube" }
  }
}
variable "kubeconfig" {}
provider "kube" {
  config_path = var.kubeconfig
}
resource "kube_manifest" "web" {
  yaml = <<-EOT
    apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: web}
    spec:
      serviceName: web
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec:
          containers:
          - {name: main, image: "nginx:1", ports: [{name: http, containerPort: PORT}]}
          - {name: side, image: "nginx:1"}
  EOT
}
resource "kube_manifest" "slow" {
  wait = false
  yaml = <<-EOT
    apiVersion: v1
    kind: Pod
    metadata: {name: slow, annotations: {kubetest/waiting: ImagePullBackOff}}
    spec: {containers: [{name: main, image: "nothing:1"}]}
  EOT
}
resource "kube_manifest" "settings" {
  yaml = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"
}
`

// podsWorld is a configuration that was applied to a cluster with one node whose
// kubelet the test plays.
type podsWorld struct {
	*testing.T
	kubelet *kubetest.Kubelet
	dir     string
	env     []string
}

func newPodsWorld(t *testing.T, port int) *podsWorld {
	t.Helper()
	c := kubetest.Start(t, kubetest.Options{})
	w := &podsWorld{T: t, kubelet: c.AddKubelet(t, "node"), dir: t.TempDir()}
	w.env = append(os.Environ(), "HOME="+t.TempDir())
	for name, text := range map[string]string{
		"main.tf":          strings.ReplaceAll(podsConfiguration, "PORT", fmt.Sprint(port)),
		"terraform.tfvars": fmt.Sprintf("kubeconfig = %q\n", c.Kubeconfig()),
	} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.stoke(0, "", "apply", "-auto-approve")
	return w
}

func (w *podsWorld) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.Context(), "stoke", append([]string{"-chdir=" + w.dir}, args...)...)
	cmd.Env = w.env
	return cmd
}

// stoke runs a command to its end; want is the exit code.
func (w *podsWorld) stoke(want int, in string, args ...string) (out, errs string) {
	w.Helper()
	var o, e bytes.Buffer
	cmd := w.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &o, &e
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != want {
		w.Fatalf("stoke %v ended with %d, want %d:\n%s%s", args, got, want, &o, &e)
	}
	return o.String(), e.String()
}

// TestKubernetesPods looks into the pods of a configuration by commands.
func TestKubernetesPods(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { io.WriteString(rw, "hello") }))
	defer server.Close()
	port := server.Listener.Addr().(*net.TCPAddr).Port
	w := newPodsWorld(t, port)
	has := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not in\n%s", part, text)
			}
		}
	}

	out, _ := w.stoke(0, "", "status", "kube_manifest.web")
	has(out, "kube_manifest.web: running\n", "run       StatefulSet default/web\n", "progress  2 of 2 pods ready\n", "ROLE   STATE    READY  RESTARTS  SINCE", "web-1  running  2/2    0")
	if strings.Contains(out, "checkpoint") {
		t.Errorf("pods have checkpoints:\n%s", out)
	}
	out, _ = w.stoke(0, "", "status", "-json", "kube_manifest.slow")
	var is struct {
		Address, Phase string
		Wanted, Ready  int
		Roles          []struct{ Name, Phase, Reason, Ready string }
	}
	if err := json.Unmarshal([]byte(out), &is); err != nil || is.Wanted != 1 || is.Ready != 0 || len(is.Roles) != 1 || is.Roles[0].Name != "slow" || !strings.Contains(is.Roles[0].Reason, "image of container main cannot be pulled") {
		t.Errorf("%v: %s", err, out)
	}
	if strings.Contains(out, "epoch") {
		t.Errorf("pods have epochs: %s", out)
	}

	w.kubelet.Say(t, "default", "web-0", "main", "one")
	w.kubelet.Say(t, "default", "web-1", "side", "two\x1b[31m")
	out, _ = w.stoke(0, "", "logs", "kube_manifest.web")
	has(out, "web-0/main  | one\nweb-1/side  | two[31m\n")
	if out, _ = w.stoke(0, "", "logs", "-role=web-1", "kube_manifest.web"); out != "two[31m\n" {
		t.Errorf("the log of web-1 is %q", out)
	}
	out, errs := w.stoke(0, "", "logs", "kube_manifest.slow")
	if has(errs, "slow: starting: image of container main cannot be pulled"); out != "" {
		t.Errorf("what has not begun says %q", out)
	}
	w.kubelet.Restart(t, "default", "web-0", "main", 1, "Error")
	out, _ = w.stoke(0, "", "logs", "-json", "-previous", "-role=web-0/main", "kube_manifest.web")
	has(out, `{"role":"web-0/main","time":"`, `"text":"one"}`)

	const script = `cat; echo "$POD/$CONTAINER" >&2; exit 7`
	out, errs = w.stoke(7, "typed", "exec", "-role=web-1/side", "kube_manifest.web", "--", "sh", "-c", script)
	if out != "typed" || errs != "web-1/side\n" {
		t.Errorf("the command wrote %q and %q", out, errs)
	}
	_, errs = w.stoke(0, "", "exec", "kube_manifest.web", "--", "true")
	has(errs, "; -role names another one.")

	for _, c := range []struct {
		args  []string
		parts []string
	}{
		{[]string{"exec", "kube_manifest.web", "-role=web-9", "--", "true"}, []string{"No such role"}},
		{[]string{"exec", "kube_manifest.slow", "--", "true"}, []string{"Nothing runs there", "Pod slow is starting"}},
		{[]string{"exec", "kube_manifest.web"}, []string{"The command is needed"}},
		{[]string{"exec", "--", "true"}, []string{"The address of a run is needed"}},
		{[]string{"exec", "kube_manifest.web", "--", "no-such-program"}, []string{"The command cannot be run", "no-such-program"}},
		{[]string{"port-forward", "kube_manifest.web"}, []string{"A port is needed"}},
		{[]string{"port-forward", "kube_manifest.web", "https"}, []string{"No such port", "Its ports are http"}},
		{[]string{"port-forward", "kube_manifest.web", "99999"}, []string{"99999 is not a port"}},
		{[]string{"port-forward", "kube_manifest.web", fmt.Sprintf("%d:http", port)}, []string{"Local port cannot be used"}},
		{[]string{"status", "kube_manifest.settings"}, []string{"Not a run", "There are runs at kube_manifest.slow, kube_manifest.web"}},
		{[]string{"logs", "-stream=stderr", "kube_manifest.web"}, []string{"Streams of pods are one"}},
		{[]string{"metrics", "kube_manifest.web"}, []string{"have no metrics"}},
	} {
		_, errs := w.stoke(1, "", c.args...)
		has(errs, c.parts...)
	}
	offered, err := exec.Command("stoke", "__complete", "-chdir="+w.dir, "exec", "").Output()
	if err != nil {
		t.Error(err)
	}
	has(string(offered), "kube_manifest.web\n", "kube_manifest.slow\n")
	w.forwarded(port)
	w.followed()
	w.onTerminal()
	w.interrupted()
	w.stoke(0, "", "destroy", "-auto-approve")
}

// forwarded asks a pod's port on this machine until an interrupt.
func (w *podsWorld) forwarded(port int) {
	w.Helper()
	cmd := w.command("port-forward", "kube_manifest.web", ":http", fmt.Sprintf(":%d", port))
	errs := new(told)
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for range 2 {
		line, err := lines.ReadString('\n')
		if err != nil {
			w.Fatalf("%v\n%s", err, errs)
		}
		local, _, _ := strings.Cut(line, " -> ")
		resp, err := http.Get("http://" + local)
		if err != nil {
			w.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(text) != "hello" {
			w.Errorf("%s answers %q, %v", line, text, err)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		w.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || errs.String() != "" {
		w.Errorf("it ends with %v and says %s", err, errs)
	}
}

// followed follows until an interrupt.
func (w *podsWorld) followed() {
	w.Helper()
	cmd := w.command("logs", "-f", "-role=web-1", "kube_manifest.web")
	out, errs := new(told), new(told)
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	await(w.T, "the first line comes", func() bool { return strings.Contains(out.String(), "two") })
	w.kubelet.Say(w, "default", "web-1", "main", "three")
	await(w.T, "the next line comes", func() bool { return strings.Contains(out.String(), "three\n") })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		w.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		w.Errorf("it ends with %v: %s", err, errs)
	}
}

// interrupted stops exec while its API server says nothing yet: keys are stoke's
// until the command runs.
func (w *podsWorld) interrupted() {
	w.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	defer silent.Close()
	dialled := make(chan struct{}, 100)
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			dialled <- struct{}{}
		}
	}()
	elsewhere := filepath.Join(w.TempDir(), "config")
	write(w.T, elsewhere, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
  clusters: [{name: a, cluster: {server: "https://%s"}}], users: [{name: a, user: {token: x}}]}`, silent.Addr()))
	vars := filepath.Join(w.dir, "elsewhere.auto.tfvars")
	write(w.T, vars, fmt.Appendf(nil, "kubeconfig = %q\n", elsewhere))
	defer os.Remove(vars)

	person, program := terminaltest.Open(w.T)
	out := new(told)
	go func() { _, _ = io.Copy(out, person) }() // it ends with the terminal
	cmd := w.command("exec", "kube_manifest.web", "--", "sh")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	await(w.T, "the API server is dialled", func() bool { return len(dialled) > 0 })
	if state, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS); err != nil || state.Lflag&unix.ISIG == 0 {
		w.Errorf("keys go to a command that does not run yet: %v", err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		w.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || strings.Contains(out.String(), "Error") {
		w.Errorf("it ends with %d: %s", code, out)
	}
}

// onTerminal runs a command on the terminal that stoke has.
func (w *podsWorld) onTerminal() {
	w.Helper()
	person, program := terminaltest.Open(w.T)
	if err := unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 101}); err != nil {
		w.Fatal(err)
	}
	cmd := w.command("exec", "-role=web-1/main", "kube_manifest.web", "--", "sh", "-c", "stty size; read line; echo got $line; exit 4")
	out := new(told)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	go func() { _, _ = io.Copy(out, person) }() // it ends with the terminal
	await(w.T, "the size is told", func() bool { return strings.Contains(out.String(), "33 101") })
	if _, err := person.WriteString("typed\r"); err != nil {
		w.Fatal(err)
	}
	_ = cmd.Wait()
	await(w.T, "the answer is there", func() bool { return strings.Contains(out.String(), "got typed") })
	if code := cmd.ProcessState.ExitCode(); code != 4 {
		w.Errorf("it ends with %d: %s", code, out)
	}
	if state, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS); err != nil || state.Lflag&unix.ECHO == 0 {
		w.Errorf("the terminal was not given back: %v", err)
	}
}
