//go:build e2e && linux

package metal_test

import (
	"testing"
	"time"
)

// off: the power of a worker is cut, and out_of_service confirms it: its pods are
// freed. It is refused while the machine answers; once that answers again, the plan
// takes the taint back.
func (s *clusterSuite) off(t *testing.T) {
	here, worker := s.on(t), s.machines[1]
	here.deployed("freed", worker)
	pod := here.podOf("freed")
	taint := func() string {
		return here.field("node/"+worker.Name, `.spec.taints[?(@.key=="node.kubernetes.io/out-of-service")].effect`)
	}
	s.node[worker.Name] = "out_of_service = true"
	defer delete(s.node, worker.Name)
	here.declare()
	out, status := here.run("apply", "-auto-approve")
	here.has(out, "Machine is not off", "It answers by SSH")
	if status == 0 || taint() != "" {
		t.Errorf("a machine that answers is called off: exit status %d, taint %q", status, taint())
	}
	worker.Crash()
	here.until("the cluster takes the node for gone", func() bool {
		return here.field("node/"+worker.Name, `.status.conditions[?(@.type=="Ready")].status`) == "Unknown"
	})
	time.Sleep(15 * time.Second) // the lease is as old then as it has to be
	here.apply()
	if got := taint(); got != "NoExecute" {
		t.Errorf("the node has the taint %q", got)
	}
	here.until("the pod is freed", func() bool { return here.podOf("freed") != pod })
	here.settled()
	here.step("a machine is off, and its pods are freed")

	worker.PowerOn()
	here.until("the node is ready", func() bool {
		return here.field("node/"+worker.Name, `.status.conditions[?(@.type=="Ready")].status`) == "True"
	})
	here.has(here.differs(), "out of service", "the machine answers again")
	here.apply()
	if got := taint(); got != "" {
		t.Errorf("the node of a machine that answers has the taint %q", got)
	}
	here.settled()
	delete(s.node, worker.Name)
	here.declare()
	here.apply()
	here.settled()
	here.kubectl("delete", "--wait", "deployment/freed")
	here.step("it answers again")
}

// dead: a worker whose machine is gone leaves the cluster, and joins again once it
// has an empty disk.
func (s *clusterSuite) dead(t *testing.T) {
	here, worker := s.on(t), s.machines[2]
	s.away[worker.Name] = true
	defer func() { s.away[worker.Name] = false }()
	here.declare()
	worker.Exec("systemctl", "stop", "ssh.socket", "ssh.service")
	out, status := here.run("apply", "-auto-approve")
	if status == 0 || here.field("nodes", ".items[*].metadata.name") != "head worker1 worker2" {
		t.Errorf("a node is removed while the cluster says that its machine is alive: exit status %d\n%s", status, out)
	}
	here.has(out, "cluster says that the machine is alive")
	worker.Crash()
	here.until("the cluster takes the node for gone", func() bool {
		return here.field("node/"+worker.Name, `.status.conditions[?(@.type=="Ready")].status`) == "Unknown"
	})
	out = here.apply()
	here.has(out, "Machine was not reset")
	here.ready("head", "worker1")
	here.step("a machine that is gone leaves")

	s.away[worker.Name] = false
	worker.Reinstall()
	s.debian.AddTo(worker)
	s.before[2] = worker.Snapshot()
	here.declare()
	here.ok("state", "rm", `metal_firewall.node["`+worker.Name+`"]`)
	here.apply()
	here.settled()
	here.ready("head", "worker1", "worker2")
	here.step("and comes back with an empty disk")
}
