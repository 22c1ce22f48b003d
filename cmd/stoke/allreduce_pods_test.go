//go:build e2e && linux

package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/podtest"
)

// TestAllReduceRealPods trains by all-reduce in real pods: a pod is deleted, another
// one killed, and the run rescaled to two workers and back, while it goes on. It
// trains to its end, and its accuracy is an output.
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

	l = newPodLab(t, c, l.trainer, "reduced")
	l.strategy, l.workers, l.wait, l.epochs = `strategy = "all_reduce"`, 3, "", 3
	l.apply()
	accuracy, err := strconv.ParseFloat(strings.TrimSpace(l.run(0, "output", "-raw", "accuracy")), 64)
	if err != nil || accuracy < 0.5 || accuracy > 1 {
		t.Errorf("accuracy %v, %v", accuracy, err)
	}
	if is := l.status(); is.Phase != "succeeded" || is.Trains && is.Step != is.Steps {
		t.Errorf("status %+v", is)
	}
	l.run(0, "plan", "-detailed-exitcode")
	l.destroyed()
}
