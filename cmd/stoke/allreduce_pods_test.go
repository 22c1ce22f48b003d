//go:build e2e && linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/connect/podtest"
)

// TestAllReduceRealPods trains by all-reduce in real pods: pods are deleted, another
// one killed, and the run rescaled to two workers and back, while it goes on.
func TestAllReduceRealPods(t *testing.T) {
	c := podtest.Start(t, podtest.Options{Nodes: 2})
	l := newPodLab(t, c, trainerImage(t, c), "reduce")
	l.strategy, l.workers = `strategy = "all_reduce"`, 4
	l.apply()
	is := l.goesOn(4, 0)
	id := l.id()
	if jobs := c.Kubectl(t, "", "-n", l.ns, "get", "jobs", "-o", "name"); strings.Contains(jobs, id+"-ps") || strings.Count(jobs, "job.batch/") != 2 {
		t.Errorf("the Jobs are %s", jobs)
	}
	for _, index := range []int{0, 2} {
		c.Kubectl(t, "", "-n", l.ns, "delete", "pod", "-l", "stoke.dev/role=worker,batch.kubernetes.io/job-completion-index="+strconv.Itoa(index), "--wait=true")
		is = l.goesOn(4, is.Step)
	}
	l.kill("worker", "HOSTNAME="+id+"-worker-1")
	is = l.goesOn(4, is.Step)
	for _, l.workers = range []int{2, 4} {
		l.apply()
		is = l.goesOn(l.workers, is.Step)
	}
	l.kill("coordinator", "--run="+id)
	is = l.goesOn(4, is.Step)
	if again := l.id(); again != id {
		t.Errorf("it is another run by now: %s, %s", id, again)
	}
	for line := range strings.Lines(l.run(0, "metrics", "train_experiment.digits")) {
		if strings.HasPrefix(line, "restore ") && !strings.Contains(strings.TrimSpace(line)+" ", "step 0 ") && !strings.Contains(line, "attached to ") {
			t.Errorf("the run went back: %s", line)
		}
	}
	before := c.Kubectl(t, "", "-n", l.ns, "get", "jobs,pods,configmaps,secrets,services", "-o", "name")
	if out := l.run(0, "bench", "allreduce", "-workers=2", "-provider=train_experiment.digits"); strings.Count(out, "/s\n") != 6 {
		t.Errorf("the benchmark printed %s", out)
	}
	if after := c.Kubectl(t, "", "-n", l.ns, "get", "jobs,pods,configmaps,secrets,services", "-o", "name"); after != before {
		t.Errorf("the benchmark left %s, before it there were %s", after, before)
	}
	l.destroyed()
}

// ownEpochs are the epochs of a run that lasts for longer than what is done to it: some
// minutes with the cores that its workers may use.
const ownEpochs = 800

// TestAllReduceRealPodsPreempted trains by all-reduce in real pods to the end, and takes
// the accuracy from the state: a pod of a higher priority takes the place of one worker,
// another worker is deleted, and the run is rescaled to two workers and back.
func TestAllReduceRealPodsPreempted(t *testing.T) {
	c := podtest.Start(t, podtest.Options{Nodes: 2})
	l := newPodLab(t, c, trainerImage(t, c), "preempted")
	least := l.twoOnEach()
	l.strategy, l.workers, l.priority, l.epochs = `strategy = "all_reduce"`, 4, "low", ownEpochs
	began := time.Now()
	l.apply()
	is := l.goesOn(4, 0)
	id := l.id()
	c.Kubectl(t, guestPods(1, least/2), "create", "-f", "-") // the room of one worker
	taken := l.awaitPreempted()
	is = l.goesOn(3, is.Step)
	c.Kubectl(t, "", "delete", "deployment", "guest", "--wait=true")
	is = l.goesOn(4, is.Step)
	c.Kubectl(t, "", "-n", l.ns, "delete", "pod", "--wait=true",
		"-l", fmt.Sprintf("stoke.dev/role=worker,batch.kubernetes.io/job-completion-index=%d", (taken+1)%4))
	is = l.goesOn(4, is.Step)
	for _, l.workers = range []int{2, 4} {
		l.apply()
		is = l.goesOn(l.workers, is.Step)
	}
	t.Logf("worker %d was preempted; after %v the run is at step %d of %d", taken, time.Since(began).Round(time.Second), is.Step, is.Steps)
	l.wait = ""
	l.apply() // waits for the end
	accuracy, err := strconv.ParseFloat(strings.TrimSpace(l.run(0, "output", "-raw", "accuracy")), 64)
	if err != nil || accuracy < 0.5 || accuracy > 1 {
		t.Errorf("accuracy %v, %v", accuracy, err)
	}
	if is := l.status(); is.Phase != "succeeded" || is.Trains && is.Step != is.Steps {
		t.Errorf("status %+v", is)
	}
	if again := l.id(); again != id {
		t.Errorf("it is another run by now: %s, %s", id, again)
	}
	t.Logf("accuracy %v after %v", accuracy, time.Since(began).Round(time.Second))
	l.run(0, "plan", "-detailed-exitcode")
	l.destroyed()
}

// awaitPreempted waits until the scheduler preempts a worker, and returns its index.
func (l *podLab) awaitPreempted() (index int) {
	l.t.Helper()
	l.Wait(l.t, "a worker is preempted", func(ctx context.Context) (bool, error) {
		pods, err := l.Client.CoreV1().Pods(l.ns).List(ctx, metav1.ListOptions{LabelSelector: "stoke.dev/role=worker"})
		if err != nil {
			return false, err
		}
		for _, p := range pods.Items {
			for _, is := range p.Status.Conditions {
				if is.Type == core.DisruptionTarget && is.Status == core.ConditionTrue && is.Reason == core.PodReasonPreemptionByScheduler {
					index, err = strconv.Atoi(p.Labels["batch.kubernetes.io/job-completion-index"])
					return err == nil, err
				}
			}
		}
		return false, errors.New("no pod of a worker is a target of the scheduler")
	})
	return index
}
