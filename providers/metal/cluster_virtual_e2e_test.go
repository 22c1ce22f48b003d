//go:build e2e && e2evm && linux

package metal_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// TestVirtualClusterRealKubeadm: on a machine with a kernel of its own, control groups of
// version 2 and swap, kubeadm init ignores nothing, and nothing is declared that
// another machine would not need. The cluster of one machine outlives a power cut,
// and goes again.
func TestVirtualClusterRealKubeadm(t *testing.T) {
	began := time.Now()
	step := func(what string) { t.Helper(); t.Logf("%5.0f s: %s", time.Since(began).Seconds(), what) }
	l := lab.New(t)
	k := newKubernetesLab(t, l, false)
	m := l.VM("head", append(k.options(), lab.Memory(3072), lab.Folder(k.unpacked(t), "/var/lib/containerd"))...)
	k.debian.AddTo(m)
	m.Script("fallocate -l 64M /swapfile; chmod 600 /swapfile; mkswap -q /swapfile; echo '/swapfile none swap sw 0 0' >> /etc/fstab; systemctl daemon-reload; swapon -a; grep -q /swapfile /proc/swaps")
	step("a virtual machine, packages and images")
	p := newProject(t, l)
	p.file("provider.tf", k.provider())
	p.write(`resource "metal_host" "head" {
  address            = %q
  host_key           = %q
  hostname           = "head"
  cluster            = "lab"
  role               = "control-plane"
  swap               = "off"
  kernel_modules     = ["overlay", "br_netfilter"]
  sysctl             = { "net.ipv4.ip_forward" = 1, "net.bridge.bridge-nf-call-iptables" = 1 }
  containerd_package = { version = "*", source = "distribution" }
  containerd         = { sandbox_image = %q }
}
resource "metal_cluster" "lab" {
  control_plane       = [metal_host.head.ssh]
  version             = %q
  repository          = { key_fingerprint = %q }
  schedulable         = true
  gpu_plugin          = "none"
  deletion_protection = false
}`, m.Address, m.HostKey, k.pause, k.minor(), k.kubernetes.Fingerprint)
	p.apply()
	step("apply")
	p.settled()
	kubectl := func(args ...string) (string, error) {
		return m.Try(append([]string{"kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "--request-timeout=20s"}, args...)...)
	}
	ready := func() {
		t.Helper()
		out := ""
		for end := time.Now().Add(15 * time.Minute); ; time.Sleep(5 * time.Second) {
			var err error
			out, err = kubectl("get", "nodes,pods", "-A", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}`)
			if err == nil && allReady(out) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("node and pods are not ready: %s, %v", out, err)
			}
		}
	}
	ready()
	for what, script := range map[string]string{
		"control groups":               `[ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]`,
		"the kubelet's control groups": `grep -q '^cgroupDriver: systemd$' /var/lib/kubelet/config.yaml && ! grep -qi failCgroupV1 /var/lib/kubelet/config.yaml`,
		"swap":                         "! grep -q /swapfile /proc/swaps",
		"containerd's configuration":   "! containerd config dump 2>&1 | grep -i ignoring",
	} {
		if out, err := m.Try("sh", "-c", script); err != nil {
			t.Errorf("%s: %s, %v", what, out, err)
		}
	}
	step("a plan is empty, node and pods are ready")
	m.Crash()
	m.PowerOn()
	ready()
	p.settled()
	step("and after a power cut")
	p.ok("destroy", "-auto-approve")
	if left, err := m.Try("sh", "-c", "ls -d /etc/kubernetes/*.conf /var/lib/etcd/member /var/lib/kubelet/config.yaml"); err == nil {
		t.Errorf("after destroying there is\n%s", left)
	}
	step("destroy")
}

// unpacked is a folder of containerd's that has the images: a machine that is emulated
// takes a quarter of an hour to load them, and this one seconds.
func (k *kubernetesLab) unpacked(t *testing.T) string {
	t.Helper()
	programs, dir := kubetest.Programs(t, "containerd/install", "containerd", buildCluster), t.TempDir()
	socket, config := filepath.Join(dir, "sock"), filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, []byte("version = 3\ndisabled_plugins = ['io.containerd.grpc.v1.cri', 'io.containerd.cri.v1.runtime', 'io.containerd.cri.v1.images']\n[plugins.'io.containerd.internal.v1.opt']\n  path = '"+dir+"/opt'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	daemon := exec.Command(filepath.Join(programs, "containerd"), "--config", config, "--root", filepath.Join(dir, "root"), "--state", filepath.Join(dir, "state"), "--address", socket)
	daemon.Stdout, daemon.Stderr = &said, &said
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
	}
	out, err := exec.Command(filepath.Join(programs, "ctr"), "--address", socket, "-n", "k8s.io", "images", "import", k.images).CombinedOutput()
	err = errors.Join(err, daemon.Process.Signal(syscall.SIGTERM), daemon.Wait(), os.WriteFile(filepath.Join(dir, "root", "images-loaded"), nil, 0o644))
	if err != nil {
		t.Fatalf("load images: %v: %s\n%s", err, out, said.String())
	}
	return filepath.Join(dir, "root")
}

// allReady tells of "NAME=STATUS NAME=STATUS" whether each is True, and whether the
// node and the pods of a control plane are among them.
func allReady(said string) bool {
	all := strings.Fields(said)
	return len(all) >= 8 && !slices.ContainsFunc(all, func(one string) bool { return !strings.HasSuffix(one, "=True") })
}
