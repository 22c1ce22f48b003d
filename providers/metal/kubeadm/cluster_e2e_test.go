//go:build e2e && linux

package kubeadm_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// TestCluster makes a cluster of two machines with the real kubeadm, kubelet and
// containerd, takes a node out and in again, and everything apart.
func TestCluster(t *testing.T) {
	step := steps(t)
	c := newCluster(t)
	step("machines, containerd and images")
	head, worker := c.machines[0], c.machines[1]
	clean := map[*lab.Machine]lab.Snapshot{}
	for _, m := range c.machines {
		clean[m] = m.Snapshot()
		if is := observe(t, m); is.Role != kubeadm.NoRole || is.Whole || len(is.Left) > 0 || is.Kubelet != "v"+c.cluster.Version {
			t.Fatalf("%s before: %+v", m.Name, is)
		}
	}

	c.begin(t)
	step("kubeadm init")
	c.checkControlPlane(t)
	c.network(t, head)
	c.await(t, map[string]string{"head": "True"})
	step("the control plane is ready")

	is := observe(t, head)
	join := kubeadm.Join{Endpoint: c.cluster.Endpoint, CAHash: is.CAHash}
	c.checkWrongAuthority(t, join)
	c.enter(t, join)
	c.network(t, worker)
	c.await(t, map[string]string{"head": "True", "worker": "True"})
	if is := observe(t, worker); is.Role != kubeadm.Worker || !is.Whole || is.NodeName != "worker" || is.CAHash != join.CAHash || is.Server != "https://"+join.Endpoint {
		t.Errorf("the worker is %+v", is)
	}
	step("a join that is refused, and one")
	c.checkKubelet(t)
	c.changeAPIServer(t)
	step("another argument of the API server")

	c.reset(t, worker, clean[worker])
	c.kubectl(t, "delete", "node", "worker")
	c.enter(t, join)
	c.network(t, worker)
	c.await(t, map[string]string{"head": "True", "worker": "True"})

	step("the worker left and joined")
	for _, m := range []*lab.Machine{worker, head} {
		c.reset(t, m, clean[m])
		c.reset(t, m, clean[m]) // there is nothing to do any more
	}
	step("everything taken apart, twice")
}

// steps logs how long each step of a test took.
func steps(t *testing.T) func(string) {
	last := time.Now()
	return func(what string) {
		t.Logf("%5.1f s: %s", time.Since(last).Seconds(), what)
		last = time.Now()
	}
}

func node(m *lab.Machine) kubeadm.Node {
	return kubeadm.Node{
		Name: m.Name, IP: m.Address, Labels: map[string]string{"stoke.dev/test": m.Name}, PullImages: "Never",
		// This kernel may have control groups of version 1, and the machine that tests
		// run on may be small.
		IgnorePreflight: []string{"SystemVerification", "Mem", "NumCPU"},
	}
}

func observe(t *testing.T, m *lab.Machine) kubeadm.Facts {
	t.Helper()
	is, err := kubeadm.Observe(t.Context(), m.Remote())
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func (c *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return c.machines[0].Exec(append([]string{"kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf"}, args...)...)
}

// network gives a node's pods the range that the cluster gave the node: what CNI
// does, for the node alone.
func (c *cluster) network(t *testing.T, m *lab.Machine) {
	t.Helper()
	var pods string
	c.until(t, m.Name+" has a range for pods", func() bool {
		pods = c.kubectl(t, "get", "node", m.Name, "-o", "jsonpath={.spec.podCIDR}")
		return pods != ""
	})
	m.Script(`mkdir -p /etc/cni/net.d; printf %s "$1" > /etc/cni/net.d/10-pods.conflist`, strings.ReplaceAll(cniConfig, "PODS", pods))
}

// await waits until these are the nodes, with the states of their condition Ready.
func (c *cluster) await(t *testing.T, want map[string]string) {
	t.Helper()
	c.until(t, "the nodes are as wanted", func() bool {
		out := c.kubectl(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
		seen := map[string]string{}
		for line := range strings.Lines(out) {
			name, ready, _ := strings.Cut(strings.TrimSpace(line), " ")
			seen[name] = ready
		}
		for name, ready := range want {
			if seen[name] != ready {
				return false
			}
		}
		return len(seen) == len(want)
	})
}

func (c *cluster) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(4 * time.Minute); !is(); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("wait until %s:\n%s\n%s", what, c.kubectl(t, "get", "nodes,pods", "-A", "-o", "wide"), c.kubectl(t, "get", "events", "-A"))
		}
	}
}

// begin runs kubeadm init, which waits for nobody, and tells what it does.
func (c *cluster) begin(t *testing.T) {
	t.Helper()
	head := c.machines[0]
	config, err := c.cluster.Init(node(head), kubeadm.NewToken())
	if err != nil {
		t.Fatal(err)
	}
	other := head.Script(`flock /run/stoke-kubeadm.lock sleep 1000 </dev/null >/dev/null 2>&1 & echo $!; sleep 1`)
	if err := kubeadm.Begin(t.Context(), head.Remote(), config); !errors.Is(err, kubeadm.ErrBusy) {
		t.Fatalf("kubeadm init beside another: %v", err)
	}
	if is := observe(t, head); !is.Running || is.Role != kubeadm.NoRole {
		t.Errorf("while another kubeadm runs: %+v", is)
	}
	head.Script(`pkill -P "$1"`, other)
	if err := kubeadm.Await(t.Context(), head.Remote()); err != nil {
		t.Fatal(err)
	}

	var mu sync.Mutex
	var told []string
	ctx := providers.WithCall(t.Context(), &providers.Call{Progress: func(p providers.Progress) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, p.Step)
	}})
	if err := kubeadm.Begin(ctx, head.Remote(), config); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"kubeadm init", "kubeadm init: certs"} { // which come long before its end
		if !slices.Contains(told, want) {
			t.Errorf("people are told %q, and not %q", told, want)
		}
	}
	if said := head.Exec("cat", "/run/stoke-kubeadm.log"); !strings.Contains(said, "(token)") || regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`).MatchString(said) {
		t.Errorf("the log has a token, or none was taken out:\n%s", said)
	}
}

// checkControlPlane looks at what kubeadm init made, and ends its token.
func (c *cluster) checkControlPlane(t *testing.T) {
	t.Helper()
	head := c.machines[0]
	is := observe(t, head)
	if is.Role != kubeadm.ControlPlane || !is.Whole || is.Running || is.NodeName != "head" || is.Version != "v"+c.cluster.Version || !is.KubeletActive || !is.Etcd || !is.SuperAdmin {
		t.Fatalf("after init: %+v", is)
	}
	if got := is.APIServer["profiling"]; !slices.Equal(got, []string{"false"}) {
		t.Errorf("the API server has profiling=%v", got)
	}
	if got := is.Certificates["/etc/kubernetes/pki/apiserver.crt"]; !slices.Contains(got.Names, "api.lab.example") || !slices.Contains(got.Names, head.Address) || time.Until(got.Expires) < 300*24*time.Hour {
		t.Errorf("the API server's certificate has %v", got)
	}
	if got := is.Certificates["/etc/kubernetes/admin.conf"]; got.Expires.IsZero() {
		t.Error("admin.conf has no certificate that expires")
	}
	if ids := tokens(t, head); len(ids) != 1 {
		t.Errorf("tokens %v after init", ids)
	}
	if err := kubeadm.RevokeInit(t.Context(), head.Remote()); err != nil {
		t.Fatal(err)
	}
	if ids := tokens(t, head); len(ids) != 0 {
		t.Errorf("tokens %v are alive", ids)
	}
}

func tokens(t *testing.T, head *lab.Machine) []string {
	t.Helper()
	ids, err := kubeadm.Tokens(t.Context(), head.Remote())
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// enter has the worker join, with a token of its own that ends then.
func (c *cluster) enter(t *testing.T, join kubeadm.Join) {
	t.Helper()
	if err := c.tryEnter(t, join); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) tryEnter(t *testing.T, join kubeadm.Join) error {
	t.Helper()
	head, worker := c.machines[0].Remote(), c.machines[1]
	forgotten := kubeadm.NewToken() // of a run that was killed
	join.Token = kubeadm.NewToken()
	for _, token := range []kubeadm.Token{forgotten, join.Token} {
		if err := kubeadm.Grant(t.Context(), head, token, worker.Name, 5*time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if ids := tokens(t, c.machines[0]); !slices.Equal(ids, []string{join.Token.ID()}) {
		t.Errorf("tokens %v are alive, want %s alone", ids, join.Token.ID())
	}
	config, err := join.Configuration(node(worker))
	if err != nil {
		t.Fatal(err)
	}
	entered := kubeadm.Enter(t.Context(), worker.Remote(), config)
	for range 2 {
		if err := kubeadm.Revoke(t.Context(), head, join.Token); err != nil {
			t.Fatal(err)
		}
	}
	if ids := tokens(t, c.machines[0]); len(ids) != 0 {
		t.Errorf("tokens %v are alive after a join", ids)
	}
	return entered
}

// checkWrongAuthority: a machine does not join whoever answers.
func (c *cluster) checkWrongAuthority(t *testing.T, join kubeadm.Join) {
	t.Helper()
	join.CAHash = "sha256:" + strings.Repeat("0", 64)
	var failed *kubeadm.Error
	if err := c.tryEnter(t, join); !errors.As(err, &failed) {
		t.Fatalf("a join with the hash of another authority: %v", err)
	}
	if said := strings.Join(failed.Lines, "\n"); !strings.Contains(said, "pinned") {
		t.Errorf("a join with the hash of another authority fails otherwise:\n%s", said)
	}
	if is := observe(t, c.machines[1]); is.Role != kubeadm.NoRole || is.Whole {
		t.Errorf("the worker after a join that was refused: %+v", is)
	}
	c.await(t, map[string]string{"head": "True"})
}

// changeAPIServer: an argument changes in place, and the cluster goes on.
func (c *cluster) changeAPIServer(t *testing.T) {
	t.Helper()
	head := c.machines[0]
	container := func() string {
		out, _ := head.Try("sh", "-c", "pgrep -x kube-apiserver || pgrep -f '^kube-apiserver '")
		return out
	}
	before := container()
	c.cluster.APIServer = map[string]string{"profiling": "true"}
	config, err := c.cluster.Init(node(head), kubeadm.NewToken())
	if err != nil {
		t.Fatal(err)
	}
	if err := kubeadm.Phase(t.Context(), head.Remote(), config, "control-plane", "apiserver"); err != nil {
		t.Fatal(err)
	}
	if got := observe(t, head).APIServer["profiling"]; !slices.Equal(got, []string{"true"}) {
		t.Errorf("the API server has profiling=%v", got)
	}
	c.until(t, "another API server answers", func() bool {
		now := container()
		_, err := head.Try("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "get", "--raw", "/readyz")
		return err == nil && now != "" && now != before
	})
	c.await(t, map[string]string{"head": "True", "worker": "True"})
	if ids := tokens(t, head); len(ids) != 0 {
		t.Errorf("tokens %v are alive", ids)
	}
}

// checkKubelet: nodes have the configuration that the cluster's hash is of, and
// what was declared for the node.
func (c *cluster) checkKubelet(t *testing.T) {
	t.Helper()
	for _, m := range c.machines {
		is := observe(t, m)
		for key, want := range map[string]any{"maxPods": 40.0, "cgroupDriver": "systemd", "clusterDomain": "cluster.local", "failCgroupV1": false} {
			if is.KubeletConfig[key] != want {
				t.Errorf("%s: the kubelet has %s = %v, want %v", m.Name, key, is.KubeletConfig[key], want)
			}
		}
		if !strings.Contains(is.KubeletArgs, "--node-ip="+m.Address) {
			t.Errorf("%s: the kubelet has the arguments %s", m.Name, is.KubeletArgs)
		}
		got := c.kubectl(t, "get", "node", m.Name, "-o", `jsonpath={.metadata.labels.stoke\.dev/test} {.status.addresses[?(@.type=="InternalIP")].address} {.spec.taints[*].key}`)
		want := m.Name + " " + m.Address + map[string]string{"head": " node-role.kubernetes.io/control-plane"}[m.Name]
		if strings.TrimSpace(got) != want {
			t.Errorf("node %s has %q, want %q", m.Name, got, want)
		}
	}
}

// reset takes a machine out of the cluster; nothing of it is left there.
func (c *cluster) reset(t *testing.T, m *lab.Machine, clean lab.Snapshot) {
	t.Helper()
	if err := kubeadm.Reset(t.Context(), m.Remote(), ""); err != nil {
		t.Fatal(err)
	}
	if is := observe(t, m); is.Role != kubeadm.NoRole || is.Whole || len(is.Left) > 0 || is.KubeletActive || is.NodeName != "" {
		t.Errorf("%s after a reset: %+v", m.Name, is)
	}
	if diff := lab.Diff(clean, m.Snapshot(), left...); len(diff) > 0 {
		t.Errorf("%s after a reset:\n%s", m.Name, strings.Join(diff, "\n"))
	}
	if running := m.Exec("ctr", "-n", "k8s.io", "containers", "list", "-q"); running != "" {
		t.Errorf("%s has containers after a reset:\n%s", m.Name, running)
	}
}

// left is what a reset leaves: settings of the kernel that the kubelet, kube-proxy
// and CNI change.
var left = []string{"sysctl *", "active kubelet.service"}
