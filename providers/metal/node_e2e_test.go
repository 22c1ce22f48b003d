//go:build e2e && linux

package metal_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers/metal/drain"
	"github.com/stokehq/stoke/providers/metal/drain/draintest"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// cluster is an API server's double that the lab's machines reach, and of which
// they are the nodes.
func cluster(t *testing.T, machines ...*lab.Machine) *draintest.Cluster {
	t.Helper()
	gateway := strings.Fields(machines[0].Exec("ip", "route", "show", "default"))[2]
	listener, err := net.Listen("tcp", net.JoinHostPort(gateway, "0"))
	if err != nil {
		t.Fatal(err)
	}
	c := draintest.New(t, listener)
	for _, m := range machines {
		name := strings.TrimSpace(m.Exec("hostname"))
		c.AddNode(name, func(n *core.Node) {
			n.Status.NodeInfo.BootID = strings.TrimSpace(m.Exec("cat", "/proc/sys/kernel/random/boot_id"))
		})
		for path, content := range c.Files(name) {
			m.Script(`umask 077; mkdir -p "${1%/*}"; printf %s "$2" >"$1"`, path, string(content))
		}
	}
	return c
}

// TestNodeDrains: pods that a change would hurt are asked first, over SSH and by
// the node's own identity.
func TestNodeDrains(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("node-1", lab.NoMirror())
	r := l.Repository(lab.Package{Name: "nvidia-fabricmanager-demo", Version: "1.0-1"})
	c := cluster(t, m)
	c.Linger = 1
	c.AddPod("node-1", "ml/bert", draintest.GPUs(1))
	c.AddPod("node-1", "kube-system/proxy", draintest.Owner("apps/v1", "DaemonSet"))
	p := newProject(t, l)
	config := func(more string) {
		p.write(`resource "metal_host" "a" {
  address  = %q
  host_key = %q
  apt_repositories = {
    demo = { uris = [%q], suites = ["/"], key_url = %q, key_fingerprints = [%q] }
  }
  packages = { nvidia-fabricmanager-demo = {} }
  %s
}`, m.Address, m.HostKey, r.URL, r.KeyURL, r.Fingerprint, more)
	}
	config("")
	out, status := p.run("plan")
	if status == 0 {
		t.Errorf("a plan that would hurt a pod is made:\n%s", out)
	}
	p.has(out, "Running pods would be hurt", "ml/bert", `disruption = "drain"`)

	config(`disruption = "drain"`)
	p.has(p.differs(), "reloads systemd (package nvidia-fabricmanager-demo)", "which leave it first")
	if !slices.Contains(c.Pods("node-1"), "ml/bert") || c.Node("node-1").Spec.Unschedulable {
		t.Error("planning has changed the node")
	}
	p.apply()
	if n := c.Node("node-1"); n.Spec.Unschedulable || len(n.Annotations) > 0 || !slices.Equal(c.Pods("node-1"), []string{"kube-system/proxy"}) {
		t.Errorf("after apply: %+v, %q", n, c.Pods("node-1"))
	}
	if v := m.Exec("dpkg-query", "-W", "-f", "${Version}", "nvidia-fabricmanager-demo"); v != "1.0-1" {
		t.Errorf("installed is %q", v)
	}
	p.settled()

	// A run that was cut off left the node cordoned: the next one lets pods back.
	c.ChangeNode("node-1", func(n *core.Node) {
		n.Spec.Unschedulable = true
		n.Annotations = map[string]string{drain.Annotation: `{"by":"alice@laptop"}`}
	})
	p.has(p.apply(), "cordoned_by", "alice@laptop")
	if n := c.Node("node-1"); n.Spec.Unschedulable || len(n.Annotations) > 0 {
		t.Errorf("after the second apply: %+v", n)
	}
	// Somebody else's cordon is nobody's business.
	c.ChangeNode("node-1", func(n *core.Node) { n.Spec.Unschedulable = true })
	p.settled()
	config("")
	p.apply()
	c.AddPod("node-1", "ml/gpt", draintest.GPUs(1))
	out, status = p.run("destroy", "-auto-approve")
	if status == 0 {
		t.Errorf("a node with pods is undone:\n%s", out)
	}
	p.has(out, "1 pod in training (ml/gpt)")
	config(`disruption = "drain"`)
	p.apply()
	p.ok("destroy", "-auto-approve")
	if len(c.Pods("node-1")) != 1 {
		t.Errorf("pods afterwards: %q", c.Pods("node-1"))
	}
}

// TestTwoOperators: a second stoke waits for the first, and one that was killed
// is in nobody's way.
func TestTwoOperators(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("node-1", lab.NoMirror())
	// A package whose installation takes until it is told to end.
	slow := "#!/bin/sh\nset -e\n[ -e /run/slow ] || exit 0\ntouch /run/begun\nwhile [ -e /run/slow ]; do sleep 0.1; done\n"
	r := l.Repository(lab.Package{Name: "stoke-slow", Version: "1", Scripts: map[string]string{"postinst": slow}})
	one, two := newProject(t, l), newProject(t, l)
	one.write(`resource "metal_host" "a" {
  address  = %q
  host_key = %q
  apt_repositories = {
    demo = { uris = [%q], suites = ["/"], key_url = %q, key_fingerprints = [%q] }
  }
  packages = { stoke-slow = {} }
}`, m.Address, m.HostKey, r.URL, r.KeyURL, r.Fingerprint)
	m.Exec("touch", "/run/slow")
	first := one.command("apply", "-auto-approve")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { _, err := m.Try("test", "-e", "/run/begun"); return err == nil })
	two.write(`resource "metal_host" "b" {
  address  = %q
  host_key = %q
}`, m.Address, m.HostKey)
	output, err := os.Create(filepath.Join(two.dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	said := func() string {
		text, err := os.ReadFile(output.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	second := two.command("apply", "-auto-approve")
	second.Stdout, second.Stderr = output, output
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return strings.Contains(said(), "waiting for ") })
	if err := second.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the second one did not wait: %v", err)
	}
	first.Process.Kill()
	first.Wait() //nolint:errcheck // it was killed
	m.Exec("rm", "/run/slow")
	err = second.Wait()
	if _, failed := err.(*exec.ExitError); !failed || !strings.Contains(said(), "managed by stoke already") {
		t.Errorf("the second one: %v\n%s", err, said())
	}
	if text := said(); !strings.Contains(text, "stoke apply") {
		t.Errorf("the second one does not say for whom it waits:\n%s", text)
	}
	one.apply()
	one.settled()
	one.ok("destroy", "-auto-approve")
}

func await(t *testing.T, yes func() bool) {
	t.Helper()
	for range 1200 {
		if yes() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("it does not happen")
}
