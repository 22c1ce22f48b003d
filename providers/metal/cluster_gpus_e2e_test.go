//go:build e2e && linux

package metal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/podtest"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// gpuDevices gives a machine as many devices that look like GPUs, which pods that
// ask for one can open. A device plugin finds them when it starts.
func gpuDevices(m *lab.Machine, count int) {
	m.Script(`rm -f /dev/nvidia[0-9]*; i=0; while [ "$i" -lt "$1" ]; do mknod -m 666 "/dev/nvidia$i" c 1 3; i=$((i + 1)); done`, fmt.Sprint(count))
}

// restartPlugin has the device plugin of a node look for GPUs again.
func (s *clusterSuite) restartPlugin(m *lab.Machine) {
	s.kubectl("--namespace", "kube-system", "delete", "pod", "--wait", "--selector", "name=nvidia-device-plugin-ds", "--field-selector", "spec.nodeName="+m.Name)
}

// field reads one field of something.
func (s *clusterSuite) field(what, path string, more ...string) string {
	s.t.Helper()
	out, _ := s.machines[0].Try(append([]string{"kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "get", what, "-o", "jsonpath={" + path + "}"}, more...)...)
	return strings.TrimSpace(out)
}

// gpuPod is a pod that asks for GPUs, and for nothing else: no toleration either.
func (s *clusterSuite) gpuPod(name, node string, count int) {
	s.t.Helper()
	where := ""
	if node != "" {
		where = fmt.Sprintf("nodeSelector: {kubernetes.io/hostname: %s}, ", node)
	}
	s.machines[0].Script(`printf %s "$1" | kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f - >/dev/null`, fmt.Sprintf(
		`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {%sterminationGracePeriodSeconds: 1, containers: [{name: c, image: %q, args: [say, hello], resources: {limits: {nvidia.com/gpu: %d}}}]}}`,
		name, where, podtest.Demo, count))
	s.until("the pod "+name+" runs", func() bool { return s.field("pod/"+name, ".status.phase") == "Running" })
}

const allocatable = `.status.allocatable.nvidia\.com/gpu`

// gpus: a node that declares two is ready when pods can be given two, and says
// clearly what is missing when it is one; pods try them.
func (s *clusterSuite) gpus(t *testing.T) {
	here, one, two := s.on(t), s.machines[1], s.machines[2]
	gpuDevices(one, 2)
	gpuDevices(two, 1)
	const tried = "gpus = 2\nverify = true\nverify_image = %q\n"
	s.node[one.Name] = fmt.Sprintf(tried, shellImage)
	s.node[two.Name] = "gpus = 2\ntimeouts {\n  update = \"40s\"\n}\n"
	defer func() { delete(s.node, one.Name); delete(s.node, two.Name) }()
	reloads := func() string { return one.Script(`journalctl -q -o cat _PID=1 | grep -c '^Reloading' || :`) }
	before := reloads()
	here.declare()
	out, status := here.run("apply", "-auto-approve")
	if status == 0 {
		t.Fatalf("a node with one GPU of two is ready:\n%s", out)
	}
	here.has(out, "GPUs are not as declared", "node "+two.Name+": too few GPUs (1 of 2)", "Look at nvidia-smi")
	here.has(out, "trying the GPUs of node "+one.Name, "metal_node."+one.Name+": Modifications complete")
	here.step("one of two GPUs is too few")
	if got := here.field("node/"+one.Name, allocatable+`} {.spec.taints[?(@.key=="nvidia.com/gpu")]['value','effect']`); got != "2 present NoSchedule" {
		t.Errorf("node %s has %q", one.Name, got)
	}
	if after := reloads(); after == before {
		t.Errorf("systemd of %s was not reloaded while a pod had its GPUs (%s reloads)", one.Name, strings.TrimSpace(after))
	}
	if left := here.kubectl("get", "pods,priorityclasses", "-A", "-l", "stoke.dev/tries-gpus", "-o", "name"); strings.TrimSpace(left) != "" {
		t.Errorf("what tried the GPUs is there still: %s", left)
	}

	gpuDevices(two, 2)
	here.restartPlugin(two)
	here.apply()
	here.settled()
	here.step("with two it is ready")

	// The admission plugin gives the toleration. Whoever has a GPU is left alone.
	here.gpuPod("trains", two.Name, 1)
	s.node[two.Name] = fmt.Sprintf(tried, shellImage)
	here.declare()
	here.has(here.apply(), "Not all GPUs were tried", "default/trains")
	here.settled()
	here.kubectl("delete", "--wait", "pod/trains")
	here.has(here.differs(), "verification")
	here.apply()
	here.settled()
	here.step("GPUs that pods have are tried later")

	// One that is lost later is told of, and nobody waits for it.
	gpuDevices(two, 1)
	here.restartPlugin(two)
	here.until("a GPU is lost", func() bool { return here.field("node/"+two.Name, allocatable) == "1" })
	lost, status := here.run("plan", "-detailed-exitcode")
	here.has(lost, "too few GPUs (1 of 2)", "does not wait for GPUs that broke")
	if status != 0 {
		t.Errorf("a lost GPU is a change: exit status %d\n%s", status, lost)
	}
	here.step("a lost GPU is told of")

	delete(s.node, one.Name)
	delete(s.node, two.Name)
	here.declare()
	here.apply()
	here.settled()
	if got := here.field("nodes", ".items[*].spec.taints[*].key"); strings.Contains(got, "nvidia.com/gpu") {
		t.Errorf("GPUs that are declared no more leave the taints %q", got)
	}
	gpuDevices(one, 0)
	gpuDevices(two, 0)
	here.step("GPUs are declared no more")
}

// TestClusterAloneRealKubeadm: a cluster of one machine, with a GPU and the taint
// that was asked for.
func TestClusterAloneRealKubeadm(t *testing.T) {
	s := newClusterSuite(t, false, "head")
	head := s.machines[0]
	gpuDevices(head, 1)
	s.cluster = "schedulable = true"
	s.node["head"] = fmt.Sprintf("gpus = 1\ngpu_taint = true\nlabels = { \"stoke.dev/pool\" = \"alone\" }\nverify = true\nverify_image = %q\n", shellImage)
	s.declare()
	s.apply()
	s.step("apply")
	s.ready("head")
	s.settled()
	if got := s.field("node/head", `.spec.taints[*]['key','value','effect']`); got != "nvidia.com/gpu present NoSchedule" {
		t.Errorf("the node has the taints %q", got)
	}
	s.gpuPod("trains", "", 1)
	// CoreDNS comes back where there is no other node.
	s.kubectl("--namespace", "kube-system", "delete", "pod", "--wait", "--selector", "k8s-app=kube-dns")
	s.until("CoreDNS is ready again", func() bool {
		return s.field("deployment/coredns", ".status.readyReplicas", "--namespace=kube-system") == "2"
	})
	s.until("a name is resolved", func() bool {
		out, err := head.Try("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "exec", "trains", "--", "/demo", "lookup", "kubernetes.default.svc.cluster.local")
		return err == nil && strings.TrimSpace(out) == "10.96.0.1"
	})
	s.settled()
	s.step("CoreDNS and a pod with a GPU work")
	s.kubectl("delete", "--wait", "pod/trains")
	gpuDevices(head, 0)
	s.destroyed()
}
