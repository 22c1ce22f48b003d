//go:build e2e && linux

package metal_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/podtest"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// leavesFirst is how a plan says that pods leave a node.
const leavesFirst = "which leave it first"

// deployed has so many pods run, each on a node of its own among some.
func (s *clusterSuite) deployed(name string, nodes ...*lab.Machine) {
	s.t.Helper()
	var on []string
	for _, m := range nodes {
		on = append(on, m.Name)
	}
	s.machines[0].Script(`printf %s "$1" | kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f - >/dev/null`, fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: %[2]q, args: [say, hello]}]
      affinity:
        nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%[4]s]}]}]}}
        podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {app: %[1]s}}, topologyKey: kubernetes.io/hostname}]}
`, name, podtest.Demo, len(nodes), strings.Join(on, ", ")))
	s.rolledOut(name)
}

func (s *clusterSuite) rolledOut(name string) {
	s.t.Helper()
	s.until(name+" runs", func() bool {
		return s.field("deployment/"+name, ".status.readyReplicas") == s.field("deployment/"+name, ".spec.replicas")
	})
}

// podOf is what tells a pod from all others, and how often it began.
func (s *clusterSuite) podOf(name string) string {
	s.t.Helper()
	return s.field("pods", ".items[*].metadata.uid} {.items[*].status.containerStatuses[*].restartCount", "--selector", "app="+name)
}

// withoutFields has a machine declare all but one argument, with more of them.
func withoutFields(machines []*lab.Machine, key string, more ...argument) func(string, []argument) []argument {
	return func(name string, declared []argument) []argument {
		if !slices.ContainsFunc(machines, func(m *lab.Machine) bool { return m.Name == name }) {
			return declared
		}
		return slices.DeleteFunc(slices.Concat(declared, more), func(a argument) bool { return a.name == key })
	}
}

// undeclare: what metal_host declares of a node with a pod is declared no more, key
// by key. What happens to the pod is what the plan said.
func (s *clusterSuite) undeclare(t *testing.T) {
	here, worker := s.on(t), s.machines[2]
	r := s.Repository(lab.DemoPackage("1.0-1"))
	more := []argument{
		{"apt_repositories", fmt.Sprintf("{ demo = { uris = [%q], suites = [\"/\"], key_url = %q, key_fingerprints = [%q] } }", r.URL, r.KeyURL, r.Fingerprint)},
		{"packages", `{ stoke-demo = {} }`},
		{"absent_packages", `["telnet"]`},
		{"files", `{ "/etc/stoke-lab.conf" = { content = "one\n" } }`},
		{"timezone", `"UTC"`},
	}
	drains := append(slices.Clone(more), argument{"disruption", `"drain"`})
	all := func() {
		here.hostKeys = withoutFields(s.machines[2:], "", drains...)
		here.declare()
		here.apply()
		here.settled()
		here.rolledOut("stays")
	}
	here.deployed("stays", worker)
	all()
	outcomes := map[string]string{}
	for _, key := range []string{"packages", "apt_repositories", "absent_packages", "files", "timezone", "hostname", "swap", "kernel_modules", "sysctl", "containerd", "containerd_package"} {
		pod := here.podOf("stays")
		here.has(pod, "-") // a UID
		here.hostKeys = withoutFields(s.machines[2:], key, more...)
		here.declare()
		plan, status := here.run("plan", "-detailed-exitcode")
		outcome := "goes on"
		if status == 1 {
			outcome = "refused"
			if !strings.Contains(plan, "Running pods would be hurt") && !(key == "containerd_package" && strings.Contains(plan, "containerd's package would be removed")) {
				t.Errorf("%s: it is refused for another reason:\n%s", key, plan)
			}
			if out, status := here.run("apply", "-auto-approve"); status == 0 {
				t.Errorf("%s: the plan is refused, and carried out:\n%s", key, out)
			}
			if now := here.podOf("stays"); now != pod {
				t.Errorf("%s: refused, and the pod %s is %s", key, pod, now)
			}
			here.hostKeys = withoutFields(s.machines[2:], key, drains...)
			here.declare()
			if plan, status = here.run("plan", "-detailed-exitcode"); status == 1 {
				outcomes[key] = "refused always"
				all()
				continue
			}
			outcome += ", then drained"
		}
		out, status := here.run("apply", "-auto-approve")
		if status != 0 {
			t.Errorf("%s: what was planned is not carried out:\n%s\n%s", key, plan, out)
		}
		here.rolledOut("stays")
		if now := here.podOf("stays"); now != pod != strings.Contains(plan, leavesFirst) {
			t.Errorf("%s: the pod %s is %s, and the plan says\n%s", key, pod, now, plan)
		}
		here.ready("head", "worker1", "worker2")
		if cordoned := here.field("node/"+worker.Name, ".spec.unschedulable"); cordoned != "" {
			t.Errorf("%s: the node stays cordoned", key)
		}
		outcomes[key] = outcome
		if key == "sysctl" { // the plugin of CNI has switched it on for the new pod
			worker.Exec("sysctl", "-qw", "net.ipv4.ip_forward=0")
		}
		all()
	}
	here.kubectl("delete", "--wait", "deployment/stays")
	here.hostKeys = nil
	here.declare()
	here.apply()
	for _, key := range slices.Sorted(maps.Keys(outcomes)) {
		t.Logf("%s declared no more: %s", key, outcomes[key])
	}
	if !slices.Contains(slices.Collect(maps.Values(outcomes)), "refused, then drained") || !slices.Contains(slices.Collect(maps.Values(outcomes)), "goes on") {
		t.Error("not both of what can happen has happened")
	}
	here.step("keys of metal_host are declared no more, one by one")
}

// rolling: all workers change at once in a way that drains them, and whoever watches
// the API never sees more of them cordoned than may be.
func (s *clusterSuite) rolling(t *testing.T) {
	here, head, workers := s.on(t), s.machines[0], s.machines[1:]
	here.deployed("rolls", workers...)
	pods := here.podOf("rolls")
	head.Script(`setsid kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes --watch -o 'jsonpath={.metadata.name} {.spec.unschedulable}{"\n"}' >/run/watched 2>&1 </dev/null & echo $! >/run/watching`)
	here.until("the watch has begun", func() bool { return strings.Contains(head.Exec("cat", "/run/watched"), workers[0].Name) })
	here.hostKeys = withoutFields(workers, "sysctl", argument{"disruption", `"drain"`})
	here.declare()
	here.has(here.differs(), leavesFirst)
	here.apply()
	here.rolledOut("rolls")
	head.Script(`kill "$(cat /run/watching)"`)
	seen, cordoned, most := map[string]bool{}, map[string]bool{}, 0
	for line := range strings.Lines(head.Exec("cat", "/run/watched")) {
		name, is, _ := strings.Cut(strings.TrimSpace(line), " ")
		if cordoned[name] = is == "true"; cordoned[name] {
			seen[name] = true
		}
		now := 0
		for _, is := range cordoned {
			if is {
				now++
			}
		}
		most = max(most, now)
	}
	if most > 1 || len(seen) != len(workers) {
		t.Errorf("at most %d nodes were cordoned at a time, in all %v:\n%s", most, seen, head.Exec("cat", "/run/watched"))
	}
	if now := here.podOf("rolls"); now == pods {
		t.Error("no pod was evicted")
	}
	here.kubectl("delete", "--wait", "deployment/rolls")
	here.hostKeys = nil
	here.declare()
	here.apply()
	here.settled()
	here.step("all workers change, one after another")
}
