package drain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/drain/draintest"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// machine is a node's machine: it has the kubelet's files and reaches the API
// server.
type machine struct {
	hosttest.Machine
	boot string

	mu      sync.Mutex
	refuses error // to dial
	conns   []net.Conn
}

// refuse cuts the way to the API server; nil opens it again.
func (m *machine) refuse(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuses = err
	if err != nil {
		for _, conn := range m.conns {
			conn.Close()
		}
		m.conns = nil
	}
}

const bootA = "11111111-2222-3333-4444-555555555555"

func newMachine(files map[string][]byte) *machine {
	m := &machine{boot: bootA}
	m.Files = map[string]ssh.File{}
	for name, content := range files {
		m.Files[name] = ssh.File{Path: name, Content: content}
	}
	m.Answer = func(cmd host.Command) (hosttest.Answer, bool) {
		switch {
		case len(cmd.Args) < 3:
			return hosttest.Answer{}, false
		case cmd.Args[2] == filesScript:
			var out strings.Builder
			for _, name := range cmd.Args[4:] {
				if f, ok := m.Files[name]; ok {
					fmt.Fprintf(&out, "%d\n%s", len(f.Content), f.Content)
				} else {
					out.WriteString("missing\n")
				}
			}
			return hosttest.Answer{Stdout: out.String()}, true
		case strings.Contains(cmd.Args[2], "boot_id"):
			return hosttest.Answer{Stdout: m.boot + "\n5\nrunning\n"}, true
		}
		return hosttest.Answer{}, false
	}
	return m
}

func (m *machine) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuses != nil {
		return nil, m.refuses
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err == nil {
		m.conns = append(m.conns, conn)
	}
	return conn, err
}

var quick = Limits{Pause: time.Millisecond}

func look(t *testing.T, m host.Machine) *Node {
	t.Helper()
	n, err := Look(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLook(t *testing.T) {
	c := draintest.New(t, nil)
	c.AddNode("gpu-1", func(n *core.Node) {
		n.Labels["node-role.kubernetes.io/control-plane"] = ""
		n.Status.NodeInfo.BootID = bootA
	})
	c.AddNode("gpu-2")
	c.AddPod("gpu-1", "ml/bert", draintest.GPUs(2))
	c.AddPod("gpu-1", "ml/mine", func(p *core.Pod) { p.Labels = map[string]string{"app.kubernetes.io/managed-by": "stoke"} })
	c.AddPod("gpu-1", "ml/claims", func(p *core.Pod) { p.Spec.ResourceClaims = []core.PodResourceClaim{{Name: "gpu"}} })
	c.AddPod("gpu-1", "web/shop", draintest.Owner("apps/v1", "ReplicaSet"))
	c.AddPod("gpu-1", "web/bare", draintest.Owner("", ""), func(p *core.Pod) {
		p.Spec.Volumes = []core.Volume{{VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}}}
	})
	c.AddPod("gpu-1", "web/shm", func(p *core.Pod) {
		p.Spec.Volumes = []core.Volume{{VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{Medium: core.StorageMediumMemory}}}}
	})
	c.AddPod("gpu-1", "kube-system/proxy", draintest.Owner("apps/v1", "DaemonSet"), draintest.GPUs(1))
	c.AddPod("gpu-1", "kube-system/etcd", draintest.Owner("v1", "Node"), func(p *core.Pod) {
		p.Annotations = map[string]string{core.MirrorPodAnnotationKey: "x"}
	})
	c.AddPod("gpu-1", "ml/done", draintest.GPUs(8), func(p *core.Pod) { p.Status.Phase = core.PodSucceeded })
	c.AddPod("gpu-2", "ml/elsewhere", draintest.GPUs(8))

	m := newMachine(c.Files("gpu-1"))
	n := look(t, m)
	got := map[string]string{}
	for _, p := range n.Pods {
		got[p.String()] = fmt.Sprint(p.Kind, " ", p.GPUs, " ", p.Owner, " ", p.Data)
	}
	want := map[string]string{
		"ml/bert": "3 2 Job bert false", "ml/mine": "3 0 Job mine false", "ml/claims": "3 1 Job claims false",
		"web/shop": "2 0 ReplicaSet shop false", "web/bare": "2 0  true", "web/shm": "2 0 Job shm false",
		"kube-system/proxy": "0 1 DaemonSet proxy false", "kube-system/etcd": "0 0 Node etcd false", "ml/done": "1 8 Job done false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n.Name != "gpu-1" || !n.Ready || n.Cordoned || !n.ControlPlane || n.BootID != bootA || n.Endpoint != c.URL || n.Leftover() != nil {
		t.Errorf("%+v", n)
	}
	if other := look(t, newMachine(c.Files("gpu-2"))); other.Cluster != n.Cluster || n.Cluster == "" {
		t.Errorf("nodes of one cluster: %q and %q", n.Cluster, other.Cluster)
	}
	another := draintest.New(t, nil)
	another.AddNode("gpu-1")
	if other := look(t, newMachine(another.Files("gpu-1"))); other.Cluster == n.Cluster {
		t.Error("two clusters are one")
	}
	for _, ran := range m.Ran {
		if strings.Contains(ran, "PRIVATE") {
			t.Errorf("ran %q", ran)
		}
	}
}

func TestLookAtNoNode(t *testing.T) {
	if n := look(t, newMachine(nil)); n != nil {
		t.Errorf("%+v", n)
	}
}

func TestLookFails(t *testing.T) {
	c := draintest.New(t, nil)
	c.AddNode("gpu-1")
	const conf, pem = kubeletConf, "/var/lib/kubelet/pki/kubelet-client-current.pem"
	replace := func(old, new string) func(map[string][]byte) {
		return func(f map[string][]byte) { f[conf] = []byte(strings.ReplaceAll(string(f[conf]), old, new)) }
	}
	tests := map[string]struct {
		node   string
		end    time.Time
		change func(files map[string][]byte)
		dial   error
		want   string
	}{
		"no yaml":            {change: func(f map[string][]byte) { f[conf] = []byte("{secret") }, want: "it is no kubeconfig"},
		"huge":               {change: func(f map[string][]byte) { f[conf] = make([]byte, maxConf+1) }, want: "more than"},
		"empty":              {change: func(f map[string][]byte) { f[conf] = nil }, want: "no context"},
		"no context":         {change: replace("current-context: default-context", "current-context: x"), want: `no context "x"`},
		"no user":            {change: replace("user: default-auth", "user: x"), want: "names a cluster or a user that is not there"},
		"unsafe":             {change: replace("    server:", "    insecure-skip-tls-verify: true\n    server:"), want: "does not check who the API server is"},
		"no https":           {change: replace("https://", "http://"), want: "not an https:// address"},
		"token":              {change: replace("client-certificate: "+pem, "token: x"), want: "something else than a client certificate"},
		"file missing":       {change: func(f map[string][]byte) { delete(f, pem) }, want: pem + ", which is not there"},
		"not a key":          {change: func(f map[string][]byte) { f[pem] = []byte("secret") }, want: "do not belong together"},
		"nobody":             {node: "..", want: "which is not a node"},
		"expired":            {end: time.Now().Add(-time.Minute), want: "certificate ended at"},
		"not in the cluster": {node: "gpu-9", want: `nodes "gpu-9" not found`},
		"no way there":       {dial: ssh.Permanent{Err: errors.New("AllowTcpForwarding")}, want: "AllowTcpForwarding"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node := test.node
			if node == "" {
				node = "gpu-1"
			}
			files := c.FilesUntil(node, test.end)
			if test.change != nil {
				test.change(files)
			}
			m := newMachine(files)
			m.refuse(test.dial)
			_, err := Look(t.Context(), m)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	t.Run("the machine says too much", func(t *testing.T) {
		m := newMachine(c.Files("gpu-1"))
		answer := m.Answer
		m.Answer = func(cmd host.Command) (hosttest.Answer, bool) {
			a, ok := answer(cmd)
			if len(cmd.Args) > 2 && cmd.Args[2] == filesScript {
				return hosttest.Answer{Stdout: a.Stdout, Stderr: "PRIVATE KEY", Status: 1}, true
			}
			return a, ok
		}
		if _, err := Look(t.Context(), m); err == nil || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%v", err)
		}
	})
}

func FuzzFiles(f *testing.F) {
	f.Add([]byte("3\nabc"))
	f.Add([]byte("missing\n"))
	f.Add([]byte("-1\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		content, rest, err := nextFile("a", out)
		if err == nil && len(content)+len(rest) > len(out) {
			t.Errorf("%q %q", content, rest)
		}
	})
}

func FuzzConf(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: 'https://a'}}]\nusers: [{name: a, user: {client-certificate: a}}]"))
	f.Fuzz(func(t *testing.T, conf []byte) {
		if cluster, user, err := parseConf(conf); err == nil && (cluster == nil || user == nil) {
			t.Error("nothing, and no error")
		}
	})
}

func change(d host.Disruption) []host.Change {
	return []host.Change{{Fact: "fact", Have: "a", Want: "b", Disruption: d}}
}

// TestDo drains a node, works, and lets pods back.
func TestDo(t *testing.T) {
	c := draintest.New(t, nil)
	c.Linger = 2
	c.AddNode("gpu-1", func(n *core.Node) { n.Status.NodeInfo.BootID = bootA })
	for i := range 5 {
		c.AddPod("gpu-1", fmt.Sprintf("ml/bert-%d", i), draintest.GPUs(1))
	}
	c.AddPod("gpu-1", "kube-system/proxy", draintest.Owner("apps/v1", "DaemonSet"))
	m := newMachine(c.Files("gpu-1"))
	node := look(t, m)
	var steps []string
	ctx := providers.WithCall(t.Context(), &providers.Call{Progress: func(p providers.Progress) { steps = append(steps, p.Step) }})
	worked := false
	r := &Roll{By: "alice@laptop"}
	conflicts := 0
	c.BeforePatch = func(name string) {
		if conflicts++; conflicts%2 == 1 { // the kubelet reports its status all the time
			c.ChangeNode(name, func(n *core.Node) { n.Status.Images = nil })
		}
	}
	err := r.Do(ctx, m, node, change(host.Reboots), Policy{Drain: true, Limits: quick}, func(context.Context) error {
		worked = true
		n := c.Node("gpu-1")
		if !n.Spec.Unschedulable || !strings.Contains(n.Annotations[Annotation], "alice@laptop") {
			t.Errorf("while working: %+v", n)
		}
		if left := c.Pods("gpu-1"); !slices.Equal(left, []string{"kube-system/proxy"}) {
			t.Errorf("while working: %q", left)
		}
		return nil
	})
	if err != nil || !worked {
		t.Fatalf("%v, worked %v", err, worked)
	}
	n := c.Node("gpu-1")
	if n.Spec.Unschedulable || n.Annotations[Annotation] != "" {
		t.Errorf("afterwards: %+v", n)
	}
	if text := strings.Join(steps, "\n"); !strings.Contains(text, "draining gpu-1: 5 pods left (ml/bert-0, ml/bert-1, ml/bert-2 and 2 more)") || !strings.Contains(text, "waiting for node gpu-1") {
		t.Error(text)
	}
}

// TestDoRefuses hurts nobody, and leaves no trace.
func TestDoRefuses(t *testing.T) {
	data := func(p *core.Pod) {
		p.Spec.Volumes = []core.Volume{{VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}}}
	}
	tests := map[string]struct {
		setUp   func(c *draintest.Cluster)
		policy  Policy
		changes []host.Change
		want    string
	}{
		"by policy": {func(c *draintest.Cluster) { c.AddPod("gpu-1", "ml/bert", draintest.GPUs(1)) }, Policy{}, change(host.Reboots),
			"reboots the machine (fact); node gpu-1 runs 1 pod in training (ml/bert)"},
		"files":  {func(c *draintest.Cluster) { c.AddPod("gpu-1", "ml/bert", data) }, Policy{Drain: true}, change(host.Drains), "would delete files (emptyDir) of ml/bert"},
		"nobody": {func(c *draintest.Cluster) { c.AddPod("gpu-1", "ml/bert", draintest.Owner("", "")) }, Policy{Drain: true}, change(host.Drains), "no controller would recreate ml/bert"},
		"cordoning is forbidden": {func(c *draintest.Cluster) {
			c.Forbid = func(r string) string {
				if strings.HasPrefix(r, "PATCH nodes") {
					return "policy says no"
				}
				return ""
			}
		}, Policy{Drain: true}, change(host.Reboots), "kubectl drain gpu-1"},
		"evicting is forbidden": {func(c *draintest.Cluster) {
			c.AddPod("gpu-1", "ml/bert")
			c.Forbid = func(r string) string {
				if strings.Contains(r, "eviction") {
					return "policy says no"
				}
				return ""
			}
		}, Policy{Drain: true}, change(host.Reboots), "does not let node gpu-1 evict ml/bert: drain it by hand"},
		"two budgets": {func(c *draintest.Cluster) {
			c.AddPod("gpu-1", "ml/bert", draintest.Label("bert"))
			c.SetBudget("ml", "a", "bert", 1)
			c.SetBudget("ml", "b", "bert", 1)
		}, Policy{Drain: true}, change(host.Reboots), "more than one PodDisruptionBudget"},
		"a budget that stays full": {func(c *draintest.Cluster) {
			c.AddPod("gpu-1", "ml/bert", draintest.Label("bert"), func(p *core.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(-120)) })
			c.SetBudget("ml", "keep-bert", "bert", 0)
		}, Policy{Drain: true, Limits: Limits{Drain: time.Millisecond}}, change(host.Reboots), "disruption budget keep-bert needs 1 healthy pods and has 1 currently"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := draintest.New(t, nil)
			c.AddNode("gpu-1")
			test.setUp(c)
			before := c.Node("gpu-1")
			pods := c.Pods("gpu-1")
			m := newMachine(c.Files("gpu-1"))
			node := look(t, m)
			test.policy.Limits.Pause = time.Millisecond
			err := new(Roll).Do(t.Context(), m, node, test.changes, test.policy, func(context.Context) error {
				t.Error("it works all the same")
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			after := c.Node("gpu-1")
			if before.Spec.Unschedulable != after.Spec.Unschedulable || !cmp.Equal(before.Annotations, after.Annotations) && len(after.Annotations) > 0 || !slices.Equal(pods, c.Pods("gpu-1")) {
				t.Errorf("it left %+v and %q", after, c.Pods("gpu-1"))
			}
		})
	}
}

// TestBudgetFreesUp waits for a budget that is full.
func TestBudgetFreesUp(t *testing.T) {
	c := draintest.New(t, nil)
	c.AddNode("gpu-1")
	c.AddPod("gpu-1", "ml/a", draintest.Label("bert"))
	c.AddPod("gpu-1", "ml/b", draintest.Label("bert"))
	c.SetBudget("ml", "keep-bert", "bert", 1)
	tries := 0
	c.OnEvict = func(string) {
		if tries++; tries == 5 {
			c.SetBudget("ml", "keep-bert", "bert", 1)
		}
	}
	m := newMachine(c.Files("gpu-1"))
	var mu sync.Mutex
	var steps []string
	ctx := providers.WithCall(t.Context(), &providers.Call{Progress: func(p providers.Progress) { mu.Lock(); steps = append(steps, p.Step); mu.Unlock() }})
	node := look(t, m)
	node.BootID = ""
	m.boot = ""
	if err := new(Roll).Do(ctx, m, node, change(host.Drains), Policy{Drain: true, Limits: quick}, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(steps, "\n"); !strings.Contains(text, "1 pod left (ml/b): disruption budget keep-bert needs") {
		t.Error(text)
	}
}
