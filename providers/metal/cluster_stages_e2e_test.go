//go:build e2e && linux

package metal_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/podtest"
)

// names: a pod of one worker reaches one of the other by its name.
func (s *clusterSuite) names() {
	s.t.Helper()
	manifest := fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {nodeName: %[2]s, terminationGracePeriodSeconds: 1, containers: [{name: web, image: %[1]q, args: [serve, ":8080"]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: asks}
spec: {nodeName: %[3]s, terminationGracePeriodSeconds: 1, containers: [{name: asks, image: %[1]q, args: [say, hello]}]}
`, podtest.Demo, s.machines[1].Name, s.machines[2].Name)
	head := s.machines[0]
	head.Script(`printf %s "$1" | kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f - >/dev/null`, manifest)
	var answer string
	s.until("one pod reaches the other by its name", func() bool {
		out, err := head.Try("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "exec", "asks", "--", "/demo", "get", "http://web.default.svc.cluster.local:8080")
		answer = out
		return err == nil
	})
	if strings.TrimSpace(answer) != "web" {
		s.t.Errorf("the pod web answers %q", answer)
	}
	s.kubectl("delete", "--wait", "pod/web", "pod/asks", "service/web")
	s.step("a pod reaches another by its name")
}

// drift: what somebody changes by hand is shown, and repaired.
func (s *clusterSuite) drift() {
	s.t.Helper()
	one, two := s.machines[1], s.machines[2]
	s.kubectl("label", "node", one.Name, "stoke.dev/pool=hand", "--overwrite")
	s.kubectl("taint", "node", one.Name, "stoke.dev/reluctant-")
	two.Script(`sed -i 's/^maxPods: .*/maxPods: 7/' /var/lib/kubelet/config.yaml; grep -q '^maxPods: 7$' /var/lib/kubelet/config.yaml; systemctl stop kubelet`)
	plan := s.differs()
	s.has(plan, `"hand" -> "`+one.Name+`"`, "stoke.dev/reluctant", "maxPods", "kubelet")
	s.step("what was changed by hand is shown")
	s.apply()
	s.settled()
	got := s.kubectl("get", "node", one.Name, "-o", `jsonpath={.metadata.labels.stoke\.dev/pool} {.spec.taints[*].key}`)
	if got != one.Name+" stoke.dev/reluctant" {
		s.t.Errorf("after the repair node %s has %q", one.Name, got)
	}
	two.Exec("systemctl", "is-active", "kubelet")
	s.pods(s.maxPods)
	s.step("and repaired")
}

// containerd: it prints back what is written for it, and passes over no key.
func (s *clusterSuite) containerd() {
	s.t.Helper()
	for _, m := range s.machines {
		dump := m.Script("containerd config dump 2>&1")
		if strings.Contains(dump, "Ignoring unknown key") {
			s.t.Errorf("%s: containerd ignores a key:\n%s", m.Name, dump)
		}
		for _, want := range []string{"sandbox = '" + s.pause + "'", "SystemdCgroup = true", "config_path = '/etc/containerd/certs.d'", "bin_dirs = ['/opt/cni/bin']", "default_runtime_name = 'runc'"} {
			if !strings.Contains(dump, want) {
				s.t.Errorf("%s: containerd has nothing of %q", m.Name, want)
			}
		}
	}
	s.step("containerd takes its configuration")
}

// hand: what somebody does to the control plane by hand is shown, and repaired:
// the operators lose their rights, and nodes are given another configuration.
func (s *clusterSuite) hand() {
	s.t.Helper()
	const rights = "rights of the group stoke:operators"
	s.kubectl("delete", "clusterrolebinding", "stoke:operators")
	s.has(s.differs(), rights)
	s.apply()
	s.settled()
	s.step("the operators have their rights again")
	s.machines[0].Script(`export KUBECONFIG=/etc/kubernetes/admin.conf
kubectl -n kube-system get configmap kubelet-config -o yaml | sed 's/maxPods: [0-9]*/maxPods: 9/' | kubectl replace -f - >/dev/null
kubectl -n kube-system get configmap kube-proxy -o yaml | sed 's/mode: nftables/mode: iptables/' | kubectl replace -f - >/dev/null`)
	s.has(s.differs(), "the ConfigMap kubelet-config", "the ConfigMap kube-proxy")
	s.apply()
	s.settled()
	s.pods(s.maxPods)
	if mode := s.kubectl("-n", "kube-system", "get", "configmap", "kube-proxy", "-o", "yaml"); !strings.Contains(mode, "mode: nftables") {
		s.t.Errorf("kube-proxy is configured so:\n%s", mode)
	}
	s.step("nodes have the declared configuration")
}

// imported: a cluster that the state has lost is taken over as it is.
func (s *clusterSuite) imported() {
	s.t.Helper()
	head := s.machines[0]
	s.ok("state", "rm", "metal_cluster.lab")
	s.ok("import", "metal_cluster.lab", head.Address+" "+head.HostKey)
	s.settled()
	s.step("the cluster is imported")
}

// pods fails unless every kubelet runs with so many pods at most.
func (s *clusterSuite) pods(want int) {
	s.t.Helper()
	for _, m := range s.machines {
		var answer struct {
			Config struct {
				MaxPods int `json:"maxPods"`
			} `json:"kubeletconfig"`
		}
		s.until("the kubelet of "+m.Name+" answers", func() bool {
			out, err := s.machines[0].Try("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "get", "--raw", "/api/v1/nodes/"+m.Name+"/proxy/configz")
			return err == nil && json.Unmarshal([]byte(out), &answer) == nil
		})
		if answer.Config.MaxPods != want {
			s.t.Errorf("the kubelet of %s takes %d pods, want %d", m.Name, answer.Config.MaxPods, want)
		}
	}
}

// change: an argument of the API server and the configuration of all kubelets
// change in place.
func (s *clusterSuite) change(t *testing.T) {
	s.maxPods, s.audience = 50, "two.example"
	here := s.on(t)
	here.declare()
	began := map[string]string{}
	for _, m := range s.machines {
		began[m.Name] = m.Exec("cat", "/proc/sys/kernel/random/boot_id")
	}
	plan := here.differs()
	here.has(plan, "two.example", "makes the API unavailable", "restarts the kubelet")
	here.has(plan, "0 to add", "0 to destroy")
	here.apply()
	here.step("the API server and kubelets change")
	here.settled()
	here.pods(50)
	if arguments := s.machines[0].Script(`tr '\0' '\n' </proc/$(pgrep -x kube-apiserver || pgrep -f '^kube-apiserver ')/cmdline`); !strings.Contains(arguments, "two.example") {
		t.Errorf("the API server runs with\n%s", arguments)
	}
	here.ready("head", "worker1", "worker2")
	here.step("in place")
}

// leave: a worker leaves the cluster, and comes back.
func (s *clusterSuite) leave(t *testing.T) {
	here, worker := s.on(t), s.machines[2]
	s.away[worker.Name] = true
	here.declare()
	here.has(here.differs(), "metal_node."+worker.Name+" will be destroyed")
	here.apply()
	here.settled()
	here.ready("head", "worker1")
	if left, err := worker.Try("sh", "-c", "ls /etc/kubernetes/kubelet.conf /var/lib/kubelet/config.yaml"); err == nil {
		t.Errorf("a machine that left has still\n%s", left)
	}
	here.step("a worker leaves")
	s.away[worker.Name] = false
	here.declare()
	here.apply()
	here.settled()
	here.ready("head", "worker1", "worker2")
	here.step("and comes back")
}

// reinstall: a worker that has an empty disk joins the cluster again.
func (s *clusterSuite) reinstall() {
	worker := s.machines[1]
	worker.Reinstall()
	s.debian.AddTo(worker)
	s.before[1] = worker.Snapshot()
	s.declare() // the machine has another host key
	// That of a firewall makes it another one, and the one before cannot be reached.
	s.ok("state", "rm", `metal_firewall.node["`+worker.Name+`"]`)
	s.step("a worker is reinstalled")
	s.apply()
	s.settled()
	s.ready("head", "worker1", "worker2")
	s.step("and joins again")
}

// keys prints a line from the middle of each private key that a machine has for
// its cluster, as it stands in files and in kubeconfigs.
const keys = `{ find /etc/kubernetes /var/lib/kubelet/pki -name '*.key' -o -name '*.pem' 2>/dev/null | while read -r f; do sed -n '/PRIVATE KEY/{n;p;q}' "$f"; done
sed -n 's/.*client-key-data: *//p' /etc/kubernetes/*.conf 2>/dev/null | base64 -d 2>/dev/null | sed -n '/BEGIN.*PRIVATE KEY/{n;p}'; } | grep . | sort -u`

// secrets: a worker leaves and joins while stoke logs all that it can, and none of
// the secrets that are about is anywhere.
func (s *clusterSuite) secrets() {
	s.t.Helper()
	worker := s.machines[2].Name
	s.env = []string{"TF_LOG=trace", "TF_LOG_PATH=" + filepath.Join(s.dir, "trace.log")}
	for _, away := range []bool{true, false} {
		s.away[worker] = away
		s.declare()
		s.apply()
	}
	s.env = nil
	if found := s.found("kubeadm join"); len(found) == 0 {
		s.t.Error("nothing is logged")
	}
	s.noSecrets()
}

// noSecrets fails where a private key of the cluster has left its machine, or one of
// them, or a token for joins, is in what is stored, printed or logged.
func (s *clusterSuite) noSecrets() {
	s.t.Helper()
	const token = `\b[a-z0-9]{6}\.[a-z0-9]{16}\b`
	if found := s.foundLike(regexp.MustCompile(token)); len(found) > 0 {
		s.t.Errorf("a token is in %v", found)
	}
	count := 0
	for _, m := range s.machines {
		for key := range strings.Lines(m.Script(keys)) {
			count++
			if found := s.found(strings.TrimSpace(key)); len(found) > 0 {
				s.t.Errorf("a private key of %s is in %v", m.Name, found)
			}
			for _, other := range s.machines {
				if out, err := other.Try("sh", "-c", `journalctl -q -o cat | grep -F -e "$1"; grep -rlF -e "$1" /var/log /run/stoke* /var/lib/stoke 2>/dev/null`, "sh", strings.TrimSpace(key)); out != "" {
					s.t.Errorf("a private key of %s is in logs of %s (%v)", m.Name, other.Name, err)
				}
			}
		}
		if out, _ := m.Try("sh", "-c", `journalctl -q -o cat | grep -E -e "$1" | head -3; grep -rlE -e "$1" /var/log /run/stoke* /var/lib/stoke 2>/dev/null`, "sh", token); out != "" {
			s.t.Errorf("a token is in logs of %s:\n%s", m.Name, out)
		}
	}
	if count < 8 { // of authorities, the API server, etcd, service accounts, kubelets
		s.t.Errorf("only %d private keys were looked for", count)
	}
	s.step("no secret is found")
}

// found are the files of the project that have a text.
func (s *clusterSuite) found(text string) []string {
	s.t.Helper()
	return s.foundLike(regexp.MustCompile(regexp.QuoteMeta(text)))
}

func (s *clusterSuite) foundLike(text *regexp.Regexp) (all []string) {
	s.t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Type()&fs.ModeType != 0 {
			return err
		}
		content, err := os.ReadFile(path)
		if text.Match(content) {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}
