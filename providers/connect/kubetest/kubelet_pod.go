package kubetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// kubeletPod is a pod as its kubelet knows it.
type kubeletPod struct {
	*core.Pod
	containers []*kubeletContainer // the initial ones first
	began      metav1.Time
}

// kubeletContainer is a container with the logs of all of its lives.
type kubeletContainer struct {
	name    string
	initial bool
	waiting *core.ContainerStateWaiting // nil: the last life is the present one
	lives   []*life
}

// life is one life of a container.
type life struct {
	id    string
	began metav1.Time
	lines []logLine
	end   *core.ContainerStateTerminated // nil while it runs
}

// logLine is what a container said, as the runtime's log file has it.
type logLine struct {
	at     time.Time
	stream string
	text   string
}

// newKubeletPod runs all containers of a pod, unless an annotation says that they
// wait; the initial ones have ended.
func newKubeletPod(p *core.Pod) *kubeletPod {
	k := &kubeletPod{Pod: p, began: metav1.Now()}
	reason := p.Annotations["kubetest/waiting"]
	for _, c := range p.Spec.InitContainers {
		one := &kubeletContainer{name: c.Name, initial: true}
		one.start(p)
		one.end(0, "Completed")
		k.containers = append(k.containers, one)
	}
	for _, c := range p.Spec.Containers {
		one := &kubeletContainer{name: c.Name}
		if reason != "" {
			one.waiting = &core.ContainerStateWaiting{Reason: reason, Message: "the test says so"}
		} else {
			one.start(p)
		}
		k.containers = append(k.containers, one)
	}
	return k
}

func (c *kubeletContainer) start(p *core.Pod) {
	id := fmt.Sprintf("containerd://%s-%s-%d", p.UID, c.name, len(c.lives))
	c.waiting = nil
	c.lives = append(c.lives, &life{id: id, began: metav1.Now()})
}

// last is the life that runs or ran last; nil before the first.
func (c *kubeletContainer) last() *life {
	if len(c.lives) == 0 {
		return nil
	}
	return c.lives[len(c.lives)-1]
}

func (c *kubeletContainer) end(code int32, reason string) {
	if l := c.last(); l != nil && l.end == nil {
		l.end = &core.ContainerStateTerminated{ExitCode: code, Reason: reason, StartedAt: l.began, FinishedAt: metav1.Now(), ContainerID: l.id}
	}
}

func (p *kubeletPod) endAll() {
	for _, c := range p.containers {
		c.end(137, "Error")
	}
}

func (p *kubeletPod) container(name string) *kubeletContainer {
	if i := slices.IndexFunc(p.containers, func(c *kubeletContainer) bool { return c.name == name }); i >= 0 {
		return p.containers[i]
	}
	return nil
}

// status is the container's as the kubelet writes it.
func (c *kubeletContainer) status() core.ContainerStatus {
	s := core.ContainerStatus{Name: c.name, Image: "test", ImageID: "test", RestartCount: int32(max(0, len(c.lives)-1))}
	started := false
	l := c.last()
	switch {
	case c.waiting != nil:
		s.State.Waiting = c.waiting
		if l != nil {
			s.LastTerminationState.Terminated = l.end
		}
		s.Started = &started
		return s
	case l.end != nil:
		s.State.Terminated, s.Ready = l.end, c.initial
	default:
		s.State.Running, s.Ready, started = &core.ContainerStateRunning{StartedAt: l.began}, true, true
	}
	s.ContainerID, s.Started = l.id, &started
	if len(c.lives) > 1 {
		s.LastTerminationState.Terminated = c.lives[len(c.lives)-2].end
	}
	return s
}

// status is the pod's.
func (p *kubeletPod) status(of *core.PodStatus) {
	of.ContainerStatuses, of.InitContainerStatuses = nil, nil
	ready, ended, bad := true, true, false
	for _, c := range p.containers {
		s := c.status()
		if c.initial {
			of.InitContainerStatuses = append(of.InitContainerStatuses, s)
			continue
		}
		of.ContainerStatuses = append(of.ContainerStatuses, s)
		ready = ready && s.Ready
		ended = ended && s.State.Terminated != nil
		bad = bad || s.State.Terminated != nil && s.State.Terminated.ExitCode != 0
	}
	of.Phase, of.StartTime, of.HostIP = core.PodRunning, &p.began, "127.0.0.1"
	of.PodIP, of.PodIPs = "10.66.0.1", []core.PodIP{{IP: "10.66.0.1"}}
	switch {
	case ended && p.Spec.RestartPolicy != core.RestartPolicyAlways && bad:
		of.Phase = core.PodFailed
	case ended && p.Spec.RestartPolicy != core.RestartPolicyAlways:
		of.Phase = core.PodSucceeded
	case !slices.ContainsFunc(p.containers, func(c *kubeletContainer) bool { return !c.initial && len(c.lives) > 0 }):
		of.Phase = core.PodPending
	}
	status := core.ConditionTrue
	message := ""
	if !ready {
		status, message = core.ConditionFalse, "containers with unready status"
	}
	kept := slices.DeleteFunc(of.Conditions, func(c core.PodCondition) bool {
		return c.Type != core.PodScheduled && c.Type != core.DisruptionTarget
	})
	for _, kind := range []core.PodConditionType{core.PodReadyToStartContainers, core.PodInitialized} {
		kept = append(kept, core.PodCondition{Type: kind, Status: core.ConditionTrue, LastTransitionTime: p.began})
	}
	for _, kind := range []core.PodConditionType{core.ContainersReady, core.PodReady} {
		kept = append(kept, core.PodCondition{Type: kind, Status: status, Message: message, LastTransitionTime: metav1.Now()})
	}
	of.Conditions = kept
}

// report writes the status of a pod.
func (k *Kubelet) report(ctx context.Context, p *kubeletPod) error {
	pods := k.c.Client.CoreV1().Pods(p.Namespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		seen, err := pods.Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil || seen.UID != p.UID {
			return err
		}
		k.mu.Lock()
		p.status(&seen.Status)
		k.mu.Unlock()
		_, err = pods.UpdateStatus(ctx, seen, metav1.UpdateOptions{})
		return err
	})
}

// with changes a container of a pod that the kubelet has by now, or will have.
func (k *Kubelet) with(t testing.TB, namespace, pod, container string, change func(*kubeletPod, *kubeletContainer)) {
	t.Helper()
	var p *kubeletPod
	k.c.Eventually(t, "the kubelet has the pod "+pod, func(context.Context) (bool, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		p = k.pod(namespace, pod)
		return p != nil, nil
	})
	k.mu.Lock()
	c := p.container(container)
	if c != nil {
		change(p, c)
		k.tell()
	}
	k.mu.Unlock()
	if c == nil {
		t.Fatalf("pod %s has no container %s", pod, container)
	}
	if err := k.report(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// pod is the one of a name, nil for none; k.mu is held.
func (k *Kubelet) pod(namespace, name string) *kubeletPod {
	for _, p := range k.pods {
		if p.Namespace == namespace && p.Name == name {
			return p
		}
	}
	return nil
}

// Say lets a container write lines to its standard output, all at the same
// nanosecond.
func (k *Kubelet) Say(t testing.TB, namespace, pod, container string, lines ...string) {
	t.Helper()
	k.with(t, namespace, pod, container, func(p *kubeletPod, c *kubeletContainer) {
		l := c.last()
		if l == nil || l.end != nil {
			t.Errorf("container %s of %s does not run and says nothing", container, pod)
			return
		}
		now := time.Now()
		if n := len(l.lines); n > 0 && !now.After(l.lines[n-1].at) {
			now = l.lines[n-1].at.Add(1)
		}
		for _, text := range lines {
			l.lines = append(l.lines, logLine{now, "stdout", text})
		}
	})
}

// End ends a container with an exit code, for a reason such as "Error" or
// "OOMKilled". It is not started again.
func (k *Kubelet) End(t testing.TB, namespace, pod, container string, code int32, reason string) {
	t.Helper()
	k.with(t, namespace, pod, container, func(_ *kubeletPod, c *kubeletContainer) { c.end(code, reason) })
}

// Restart ends a container and starts it again.
func (k *Kubelet) Restart(t testing.TB, namespace, pod, container string, code int32, reason string) {
	t.Helper()
	k.with(t, namespace, pod, container, func(p *kubeletPod, c *kubeletContainer) {
		c.end(code, reason)
		c.start(p.Pod)
	})
}

// Wait ends a container, if it runs, and makes it wait for a reason such as
// "CrashLoopBackOff".
func (k *Kubelet) Wait(t testing.TB, namespace, pod, container, reason, message string) {
	t.Helper()
	k.with(t, namespace, pod, container, func(_ *kubeletPod, c *kubeletContainer) {
		c.end(1, "Error")
		c.waiting = &core.ContainerStateWaiting{Reason: reason, Message: message}
	})
}

// Run starts a container that waits.
func (k *Kubelet) Run(t testing.TB, namespace, pod, container string) {
	t.Helper()
	k.with(t, namespace, pod, container, func(p *kubeletPod, c *kubeletContainer) {
		if c.waiting != nil {
			c.start(p.Pod)
		}
	})
}

// stamp is the time that a line begins with, as containerd writes it.
func (l logLine) stamp() string { return l.at.Format(time.RFC3339Nano) }

// flag reads a query's truth value as the kubelet does.
func flag(text string) (bool, error) {
	if text == "" {
		return false, nil
	}
	return strconv.ParseBool(text)
}
