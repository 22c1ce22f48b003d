//go:build e2e && linux

package metal_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/metal/lab"
)

// clusterSuite is a configuration of a whole cluster, with the machines and the
// program to carry it out.
type clusterSuite struct {
	*project
	*kubernetesLab
	t        *testing.T
	machines []*lab.Machine // the control plane's first
	before   []lab.Snapshot // of the machines
	last     time.Time      // when the step before ended

	// What tests change of the configuration.
	maxPods  int
	audience string          // of the API server
	away     map[string]bool // machines that are no node
	// hostKeys changes what a machine's metal_host declares, and node has more
	// arguments of a machine's metal_node; nil for nothing.
	hostKeys func(name string, declared []argument) []argument
	node     map[string]string
	cluster  string // more arguments of metal_cluster
}

// newClusterSuite makes machines. With stubs there is no network of pods between
// them, and no DNS.
func newClusterSuite(t *testing.T, stubs bool, names ...string) *clusterSuite {
	t.Helper()
	began := time.Now()
	l := lab.New(t)
	s := &clusterSuite{t: t, last: began, maxPods: 40, audience: "one.example", away: map[string]bool{}, node: map[string]string{}}
	s.kubernetesLab = newKubernetesLab(t, l, stubs)
	s.machines = s.machinesFor(t, names...)
	for _, m := range s.machines {
		s.before = append(s.before, m.Snapshot())
	}
	s.step("machines, packages and images")
	s.project = newProject(t, l)
	s.file("provider.tf", s.provider())
	s.step("stoke is built")
	return s
}

// on is the suite for a test within the test.
func (s *clusterSuite) on(t *testing.T) *clusterSuite {
	within, p := *s, *s.project
	p.t = t
	within.t, within.project, within.last = t, &p, time.Now()
	return &within
}

// step logs how long a step took.
func (s *clusterSuite) step(what string) {
	s.t.Helper()
	s.t.Logf("%5.1f s: %s", time.Since(s.last).Seconds(), what)
	s.last = time.Now()
}

// declare writes the configuration as it is to be now. What this kernel needs, and
// no other machine does, is said here: the provider writes none of it by itself.
func (s *clusterSuite) declare() {
	s.project.t.Helper()
	network := `cni = "external"
  gpu_plugin = "none"`
	if !s.stubs {
		network = fmt.Sprintf(`cni = "flannel"
  gpu_plugin_image = %q`, gpuPluginImage)
	}
	edit := s.hostKeys
	if edit == nil {
		edit = func(_ string, declared []argument) []argument { return declared }
	}
	var b strings.Builder
	b.WriteString(s.hosts(s.machines, edit))
	fmt.Fprintf(&b, `
locals {
  repository = { key_fingerprint = %[1]q }
  # Control groups of version 1, and machines that may be small.
  ignored = ["SystemVerification", "Mem", "NumCPU"]
}
resource "metal_cluster" "lab" {
  control_plane           = [metal_host.%[2]s.ssh]
  version                 = %[3]q
  repository              = local.repository
  ignore_preflight_errors = local.ignored
  deletion_protection     = false
  %[4]s
  api_server_args = { "api-audiences" = "https://kubernetes.default.svc.cluster.local,%[5]s" }
  kubelet_configuration = yamlencode({
    failCgroupV1                = false
    oomScoreAdj                 = 0 # where there is no CAP_SYS_RESOURCE
    maxPods                     = %[6]d
    imageGCHighThresholdPercent = 100
    evictionHard                = { "imagefs.available" = "0%%", "nodefs.available" = "0%%", "nodefs.inodesFree" = "0%%" }
  })
  kube_proxy_configuration = yamlencode({ oomScoreAdj = 0, conntrack = { maxPerCore = 0 } })
  %[9]s
  # The rules let the nodes reach each other and the API server.
  depends_on = [metal_firewall.node]
}
resource "metal_firewall" "node" {
  for_each    = { %[7]s }
  host        = each.value.ssh
  role        = each.value.role
  peers       = [%[8]s]
  pod_network = ["10.244.0.0/16"]
  cni         = "flannel"
}
`, s.kubernetes.Fingerprint, s.machines[0].Name, s.minor(), network, s.audience, s.maxPods,
		s.each("%[1]s = metal_host.%[1]s"), s.each("metal_host.%s.node_address"), s.cluster)
	if more := s.node[s.machines[0].Name]; more != "" {
		fmt.Fprintf(&b, "resource \"metal_node\" %[1]q {\n  host = metal_host.%[1]s.ssh\n  cluster = metal_cluster.lab.join\n%[2]s\n}\n", s.machines[0].Name, more)
	}
	for _, m := range s.machines[1:] {
		if s.away[m.Name] {
			continue
		}
		fmt.Fprintf(&b, `resource "metal_node" %[1]q {
  host                    = metal_host.%[1]s.ssh
  cluster                 = metal_cluster.lab.join
  private_address         = metal_host.%[1]s.node_address
  repository              = local.repository
  ignore_preflight_errors = local.ignored
  labels                  = { "stoke.dev/pool" = %[1]q }
  taints                  = [{ key = "stoke.dev/reluctant", effect = "PreferNoSchedule" }]
  %[2]s
}
`, m.Name, s.node[m.Name])
	}
	s.write("%s", b.String())
}

// each is a list with something about every machine, by its name.
func (s *clusterSuite) each(format string) string {
	var all []string
	for _, m := range s.machines {
		all = append(all, fmt.Sprintf(format, m.Name))
	}
	return strings.Join(all, ", ")
}

func (s *clusterSuite) kubectl(args ...string) string {
	s.t.Helper()
	return s.machines[0].Exec(append([]string{"kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf"}, args...)...)
}

// ready fails unless exactly these nodes are there, and ready.
func (s *clusterSuite) ready(names ...string) {
	s.t.Helper()
	out := s.kubectl("get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
	var want []string
	for _, name := range names {
		want = append(want, name+" True")
	}
	have := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		s.t.Fatalf("the nodes are %q, want %q", have, want)
	}
}

// until waits until something is true of the cluster.
func (s *clusterSuite) until(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(3 * time.Minute); !is(); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("wait until %s:\n%s\n%s", what, s.kubectl("get", "nodes,pods", "-A", "-o", "wide"), s.kubectl("get", "events", "-A"))
		}
	}
}

// destroyed destroys everything, and compares the machines with what they were.
func (s *clusterSuite) destroyed() {
	s.t.Helper()
	s.ok("destroy", "-auto-approve")
	s.step("destroy")
	for i, m := range s.machines {
		unchanged(s.t, m, s.before[i], leftOfCluster...)
	}
	// What the same plan says of the machines now: nothing that keeps it from being
	// carried out again.
	s.has(s.ok("plan"), "0 to change, 0 to destroy")
	s.step("the machines are as before")
}

// leftOfCluster is what destroying says that it leaves.
var leftOfCluster = []string{
	"folder /var/lib/containerd/...", "file /var/lib/containerd/...", "content /var/lib/containerd/...", "folder /etc/cni/...",
	"folder /opt/containerd/...",                                                      // which containerd makes when it starts with no configuration; Debian's makes it elsewhere
	"file /etc/cni/net.d/10-pods.conflist", "content /etc/cni/net.d/10-pods.conflist", // the lab's, which goes with the network of pods
	"sysctl *", // of the kernel, changed by the kubelet and kube-proxy
}

// TestClusterShortRealKubeadm: from two machines to a cluster, and back. The
// network of pods ends at their machine, and CoreDNS is a stand-in.
func TestClusterShortRealKubeadm(t *testing.T) {
	s := newClusterSuite(t, true, "head", "worker")
	s.declare()
	s.apply()
	s.step("apply")
	s.ready("head", "worker")
	s.settled()
	s.step("a plan is empty")
	s.destroyed()
}

// TestClusterRealKubeadm: a cluster of three machines with flannel and CoreDNS.
// Each test within it can be run alone, on a cluster that has just been made.
func TestClusterRealKubeadm(t *testing.T) {
	s := newClusterSuite(t, false, "head", "worker1", "worker2")
	s.declare()
	s.apply()
	s.step("apply")
	s.ready("head", "worker1", "worker2")
	s.settled()
	s.step("a plan is empty")
	t.Run("names", func(t *testing.T) { s.on(t).names() })
	t.Run("containerd", func(t *testing.T) { s.on(t).containerd() })
	t.Run("drift", func(t *testing.T) { s.on(t).drift() })
	t.Run("hand", func(t *testing.T) { s.on(t).hand() })
	t.Run("import", func(t *testing.T) { s.on(t).imported() })
	t.Run("change", func(t *testing.T) { s.change(t) })
	t.Run("cutoff", func(t *testing.T) { s.cutOff(t) })
	t.Run("gpus", func(t *testing.T) { s.gpus(t) })
	t.Run("undeclare", func(t *testing.T) { s.undeclare(t) })
	t.Run("rolling", func(t *testing.T) { s.rolling(t) })
	t.Run("off", func(t *testing.T) { s.off(t) })
	t.Run("leave", func(t *testing.T) { s.leave(t) })
	t.Run("reinstall", func(t *testing.T) { s.on(t).reinstall() })
	t.Run("dead", func(t *testing.T) { s.dead(t) })
	t.Run("secrets", func(t *testing.T) { s.on(t).secrets() })
	t.Run("destroy", func(t *testing.T) { s.on(t).destroyed() })
}
