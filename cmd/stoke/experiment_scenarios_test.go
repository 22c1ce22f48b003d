//go:build e2e && linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/podtest"
)

// TestExperimentRealPodsScenarios does to the nodes under a run, and to the API
// server, what happens to clusters. It takes ten minutes: make e2e-scenarios.
func TestExperimentRealPodsScenarios(t *testing.T) {
	c := podtest.Start(t, podtest.Options{Nodes: 2})
	trainer := trainerImage(t, c)
	for _, scenario := range []struct {
		name string
		run  func(*podLab)
	}{
		{"preempted", (*podLab).preempted}, {"unattended", (*podLab).unattended}, {"drained", (*podLab).drained},
		{"no API server", (*podLab).noAPI}, {"power cut", (*podLab).powerCut},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			scenario.run(newPodLab(t, c, trainer, strings.ToLower(strings.ReplaceAll(scenario.name, " ", "-"))))
		})
	}
}

// twoOnEach sizes workers so that each node has room for two of them, and gives
// what the smaller node has, in thousandths of a core.
func (l *podLab) twoOnEach() (least int64) {
	l.t.Helper()
	least = 1 << 40
	for _, n := range l.Nodes {
		node, err := l.Client.CoreV1().Nodes().Get(l.t.Context(), n.Name, metav1.GetOptions{})
		if err != nil {
			l.t.Fatal(err)
		}
		least = min(least, node.Status.Allocatable.Cpu().MilliValue())
	}
	l.cpu = fmt.Sprintf("%dm", least*2/5)
	return least
}

// unattended ends a run by its deadline while one of its workers has no room, and
// nobody runs stoke: nothing of it holds a place or waits for one.
func (l *podLab) unattended() {
	l.twoOnEach()
	l.workers, l.wait = 5, "wait = false\n  deadline = \"45s\""
	l.apply()
	l.Wait(l.t, "one worker has no room", func(context.Context) (bool, error) {
		waiting := l.Kubectl(l.t, "", "-n", l.ns, "get", "pods", "-l", "stoke.dev/role=worker", "--field-selector", "status.phase=Pending", "-o", "name")
		running := l.Kubectl(l.t, "", "-n", l.ns, "get", "pods", "-l", "stoke.dev/role=worker", "--field-selector", "status.phase=Running", "-o", "name")
		return strings.Count(waiting, "pod/") == 1 && strings.Count(running, "pod/") == 4, errors.New(waiting + running)
	})
	// A coordinator stays for a while, for whoever collects what it has.
	for _, of := range []string{"stoke.dev/run,stoke.dev/role!=coordinator", "stoke.dev/run"} {
		l.Wait(l.t, "nothing of "+of+" holds a place", func(context.Context) (bool, error) {
			left := l.Kubectl(l.t, "", "-n", l.ns, "get", "pods", "-l", of, "--field-selector", "status.phase!=Succeeded,status.phase!=Failed", "-o", "name")
			return strings.TrimSpace(left) == "", errors.New(left)
		})
	}
	if is := l.status(); is.Phase != "stopped" {
		l.t.Errorf("the run is %s: %s", is.Phase, is.Message)
	}
	l.destroyed()
}

// guestPods returns a deployment of pods of a higher priority than the workers', each with so
// many thousandths of a core.
func guestPods(n int, cpu int64) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: guest, namespace: default}
spec:
  replicas: %d
  selector: {matchLabels: {app: guest}}
  template:
    metadata: {labels: {app: guest}}
    spec:
      priorityClassName: stoke-high
      terminationGracePeriodSeconds: 1
      containers:
      - {name: guest, image: %s, args: [serve, ":8080"], resources: {requests: {cpu: %dm}}}
`, n, podtest.Demo, cpu)
}

// preempted has pods of a higher priority take the place of half of the workers, three
// times: the others train alone, and all do once those pods are gone.
func (l *podLab) preempted() {
	least := l.twoOnEach()
	l.workers, l.priority = 4, "low"
	l.apply()
	is := l.goesOn(4, 0)
	id := l.id()
	l.Kubectl(l.t, guestPods(2, least/2), "create", "-f", "-") // each needs the room of one worker
	is = l.goesOn(2, is.Step)
	l.Wait(l.t, "the guests run", func(context.Context) (bool, error) {
		ready := l.Kubectl(l.t, "", "get", "deployment", "guest", "-o", "jsonpath={.status.readyReplicas}")
		return ready == "2", errors.New(ready)
	})
	is = l.until("status says what the others wait for", func(is providers.RunStatus) bool {
		waiting := 0
		for _, r := range is.Roles {
			if strings.HasPrefix(r.Name, "worker-") && strings.Contains(r.Reason, "Insufficient cpu") {
				waiting++
			}
		}
		return waiting == 2
	})
	is = l.goesOn(2, is.Step)
	for range 2 {
		l.Kubectl(l.t, "", "scale", "deployment", "guest", "--replicas=0")
		is = l.goesOn(4, is.Step)
		l.Kubectl(l.t, "", "scale", "deployment", "guest", "--replicas=2")
		is = l.goesOn(2, is.Step)
	}
	l.Kubectl(l.t, "", "delete", "deployment", "guest", "--wait=true")
	l.goesOn(4, is.Step)
	if again := l.id(); again != id {
		l.t.Errorf("it is another run by now: %s, %s", id, again)
	}
	l.destroyed()
}

// onFirst launches the run on the first node alone, with its log on a volume that
// both nodes have, and opens the second node.
func (l *podLab) onFirst() (id string) {
	l.t.Helper()
	folder := filepath.Join(l.t.TempDir(), "shared")
	if err := errors.Join(os.Mkdir(folder, 0o777), os.Chmod(folder, 0o777)); err != nil {
		l.t.Fatal(err)
	}
	l.Kubectl(l.t, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %s}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: %s}}
`, l.ns, folder), "create", "-f", "-")
	l.storage = `storage = "1Gi"`
	l.Kubectl(l.t, "", "cordon", l.Nodes[1].Name)
	l.apply()
	l.goesOn(2, 0)
	l.until("there is a checkpoint", func(is providers.RunStatus) bool { return is.Checkpoint > 0 })
	l.Kubectl(l.t, "", "uncordon", l.Nodes[1].Name)
	return l.id()
}

// moved waits until all of the run is on the second node and trains on.
func (l *podLab) moved(id string, step int64) {
	l.t.Helper()
	l.until("it trains on the other node", func(is providers.RunStatus) bool {
		for _, r := range is.Roles {
			if r.Node != l.Nodes[1].Name {
				return false
			}
		}
		return is.Phase == "running" && is.Workers == 2 && is.Step > step
	})
	if again := l.id(); again != id {
		l.t.Errorf("it is another run by now: %s, %s", id, again)
	}
}

// drained drains the node that all of a run is on.
func (l *podLab) drained() {
	id := l.onFirst()
	is := l.status()
	l.Kubectl(l.t, "", "drain", l.Nodes[0].Name, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=4m")
	l.moved(id, is.Step)
	l.Kubectl(l.t, "", "uncordon", l.Nodes[0].Name)
	l.destroyed()
}

// noAPI takes the API server away for 30 seconds while stoke waits for a run, and
// again while it looks at one.
func (l *podLab) noAPI() {
	l.wait, l.epochs = "", 40
	l.write()
	cmd, said := l.command("apply", "-auto-approve"), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.Wait(l.t, "the run was let go", func(ctx context.Context) (bool, error) {
		found, err := l.Client.BatchV1().Jobs(l.ns).List(ctx, metav1.ListOptions{LabelSelector: "stoke.dev/role=coordinator"})
		return err == nil && len(found.Items) == 1, err
	})
	back := l.Outage(l.t, 30*time.Second)
	back()
	if err := cmd.Wait(); err != nil {
		l.t.Fatalf("apply ends with %v:\n%s", err, said)
	}
	l.t.Logf("%s", said)
	if is := l.status(); is.Phase != "succeeded" {
		l.t.Errorf("the run is %s: %s", is.Phase, is.Message)
	}
	back = l.Outage(l.t, 30*time.Second)
	l.run(0, "plan", "-detailed-exitcode")
	back()
	l.destroyed()
}

// powerCut cuts the power of the node that all of a run is on, while stoke waits
// for the run. Nobody deletes the Node.
func (l *podLab) powerCut() {
	id := l.onFirst()
	l.wait = ""
	l.write()
	cmd, said := l.command("apply", "-auto-approve"), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	is := l.status()
	l.Nodes[0].Stop(l.t)
	l.moved(id, is.Step)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		l.t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() > 1 {
		l.t.Errorf("apply ends with %v:\n%s", err, said)
	}
	l.Nodes[0].Start(l.t)
	l.destroyed()
}
