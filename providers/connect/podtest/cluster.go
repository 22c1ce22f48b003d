//go:build e2e && linux

package podtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// patience is how long anything may take that a node does; generous, for
// machines that are busy.
const patience = 5 * time.Minute

// Options say what a cluster is made of.
type Options struct {
	// Nodes is how many run pods, 1 where it is 0. They are called node-1 and so
	// on, and are ready when the cluster is.
	Nodes int
	// Others are nodes that run nothing.
	Others []kubetest.Node
}

// Cluster is a control plane with nodes that run pods.
type Cluster struct {
	*kubetest.Cluster
	Nodes []*Node

	dir      string // of all files of nodes
	programs string // containerd's folder
	runc     string // the program
	groups   []string
	hub      *network
}

// Start starts a cluster for one test. It is ready when this returns, and ends
// with the test. Where there cannot be one the test is skipped with the reason.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	runc, why := missing()
	if why != "" {
		if os.Getenv("STOKE_E2E_REQUIRE") == "1" {
			t.Fatalf("no real pods here: %s", why)
		}
		t.Skipf("no real pods here: %s", why)
	}
	c := &Cluster{runc: runc, programs: kubetest.Programs(t, "containerd/install", "containerd", "make e2e-pods")}
	var err error
	if c.dir, err = folder(t, os.TempDir()); err != nil {
		t.Fatal(err)
	}
	if c.groups, err = hierarchies(filepath.Base(c.dir)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeGroups(c.groups); err != nil {
			t.Error(err)
		}
	})
	if err := makeGroups(c.groups); err != nil {
		t.Fatal(err)
	}
	if c.hub, err = newHub(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.hub.close)
	egress, err := c.egress(t)
	if err != nil {
		t.Fatal(err)
	}
	c.Cluster = kubetest.Start(t, kubetest.Options{APIServer: []string{"--egress-selector-config-file=" + egress}, Nodes: options.Others})
	if err := c.announce(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.addNodes(t, max(1, options.Nodes))
	return c
}

// announce publishes the address of the API server: the server does that itself
// only for an address other than loopback.
func (c *Cluster) announce(ctx context.Context) error {
	name, port, protocol, ready := "https", int32(servedPort), core.ProtocolTCP, true
	_, err := c.Client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(ctx, &discovery.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "kubernetes", Labels: map[string]string{discovery.LabelServiceName: "kubernetes"}},
		AddressType: discovery.AddressTypeIPv4,
		Endpoints:   []discovery.Endpoint{{Addresses: []string{servedAddress}, Conditions: discovery.EndpointConditions{Ready: &ready}}},
		Ports:       []discovery.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}, metav1.CreateOptions{})
	return err
}

// missing says what keeps this machine from running pods, "" for nothing, and
// where runc is.
func missing() (runc, why string) {
	if os.Geteuid() != 0 {
		return "", "it needs root"
	}
	for tool, from := range map[string]string{"runc": "runc", "ip": "iproute2", "nft": "nftables", "nsenter": "util-linux", "mount": "util-linux"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			return "", tool + " is not installed (package " + from + "; make e2e-pods brings it where there is apt)"
		}
		if tool == "runc" {
			runc = path
		}
	}
	if _, err := os.Stat("/dev/kmsg"); err != nil {
		return "", "the kubelet needs /dev/kmsg: " + err.Error()
	}
	probe, err := newNetwork()
	if err != nil {
		return "", "namespaces cannot be made: " + err.Error()
	}
	defer probe.close()
	if err := probe.ip("link add probe type bridge"); err != nil {
		return "", "the kernel has no bridges: " + err.Error()
	}
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err == nil && !strings.Contains(string(filesystems), "\toverlay\n") {
		// As a module it is loaded by the first mount, if root may.
		if out, err := exec.Command("modprobe", "overlay").CombinedOutput(); err != nil {
			return "", "the kernel has no overlayfs: " + strings.TrimSpace(string(out))
		}
	}
	return runc, ""
}

// addNodes makes nodes and waits until they are ready, and have the images that
// every node has.
func (c *Cluster) addNodes(t testing.TB, count int) {
	t.Helper()
	for i := range count {
		n, err := c.newNode(t, i+1)
		if err != nil {
			t.Fatal(err)
		}
		c.Nodes = append(c.Nodes, n)
		t.Cleanup(func() { n.end(t) })
		if err := n.boot(); err != nil {
			t.Fatal(err)
		}
	}
	pause := Image{Ref: pauseRef, Files: map[string]string{"/pause": filepath.Join(c.programs, "pause")}, Command: []string{"/pause"}}
	demo := Image{Ref: Demo, Files: map[string]string{"/demo": filepath.Join(c.programs, "demo")}, Command: []string{"/demo"}}
	c.Load(t, Archive(t, pause, demo))
	for _, n := range c.Nodes {
		n.awaitReady(t)
	}
}

// Load gives every node the images of an archive.
func (c *Cluster) Load(t testing.TB, archive string) {
	t.Helper()
	for _, n := range c.Nodes {
		n.Load(t, archive)
	}
}

// Wait waits until a condition, which what says in words, is true, and fails the
// test after five minutes, showing what the nodes said.
func (c *Cluster) Wait(t testing.TB, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.until(ctx, what, condition); err != nil {
		t.Fatal(err)
	}
}

// until asks again until the answer is true. It ends early where a node did
// that is to be running.
func (c *Cluster) until(ctx context.Context, what string, ask func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := ask(ctx)
		if ok {
			return nil
		}
		for _, n := range c.Nodes {
			if n.crashed() {
				return fmt.Errorf("wait until %s: %s ended", what, n.Name)
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("wait until %s: %w", what, ctx.Err()), err)
		case <-ticker.C:
		}
	}
}

// awaitReady waits until pods may be put on the node.
func (n *Node) awaitReady(t testing.TB) {
	t.Helper()
	n.cluster.Wait(t, n.Name+" is ready", func(ctx context.Context) (bool, error) {
		seen, err := n.cluster.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil || len(seen.Spec.Taints) > 0 || seen.Status.NodeInfo.BootID != n.boots() {
			return false, err
		}
		for _, condition := range seen.Status.Conditions {
			if condition.Type == core.NodeReady {
				return condition.Status == core.ConditionTrue, errors.New(condition.Message)
			}
		}
		return false, nil
	})
}

// egress serves the proxy by which the API server reaches nodes and pods, whose
// network it is not in, and writes the configuration that says so.
func (c *Cluster) egress(t testing.TB) (string, error) {
	socket := filepath.Join(c.dir, "egress")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return "", err
	}
	p := newProxy(listener, connect(c.hub))
	t.Cleanup(p.close)
	path := filepath.Join(c.dir, "egress.yaml")
	return path, os.WriteFile(path, fmt.Appendf(nil, egressConfig, socket), 0o600)
}

// egressConfig sends requests to nodes, pods, and Services through a proxy.
const egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %s}}
`
