package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// lostNode adds a node that does not answer.
func (w *world) lostNode(name string) {
	w.t.Helper()
	n := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: core.NodeStatus{
		Conditions: []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionUnknown, Reason: "NodeStatusUnknown"}},
	}}
	if _, err := w.Client.CoreV1().Nodes().Create(w.t.Context(), n, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { w.Kubectl(w.t, "", "delete", "node", name, "--ignore-not-found") })
}

// podsOf are the pods of an index of a run's Job.
func (w *world) podsOf(ctx context.Context, id, role, index string) ([]core.Pod, error) {
	found, err := w.Client.CoreV1().Pods(w.ns).List(ctx, metav1.ListOptions{LabelSelector: runLabel + "=" + id + "," + roleLabel + "=" + role})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found.Items, func(p core.Pod) bool { return p.Annotations[batch.JobCompletionIndexAnnotation] != index }), nil
}

// TestLostNodeHoldsNoPlace: the pod of a node that does not answer is replaced
// while its Node is still there, at no cost for its index, and only once it had
// all the time to end.
func TestLostNodeHoldsNoPlace(t *testing.T) {
	w := newWorld(t, "restricted")
	l := w.launcher(small())
	id, err := l.Start(t.Context(), "op-1", someRun(2, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	w.lostNode("gone-" + w.ns)
	var first core.Pod
	w.Eventually(t, "worker 1 has a pod", func(ctx context.Context) (bool, error) {
		found, err := w.podsOf(ctx, id, worker, "1")
		if err != nil || len(found) != 1 {
			return false, err
		}
		first = found[0]
		return true, nil
	})
	bind := &core.Binding{ObjectMeta: metav1.ObjectMeta{Name: first.Name}, Target: core.ObjectReference{Kind: "Node", Name: "gone-" + w.ns}}
	if err := w.Client.CoreV1().Pods(w.ns).Bind(t.Context(), bind, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.CoreV1().Pods(w.ns).Delete(t.Context(), first.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if found, err := w.podsOf(t.Context(), id, worker, "1"); err != nil || len(found) != 1 || found[0].UID != first.UID || found[0].Status.Phase == core.PodFailed {
		t.Fatalf("it had no time to end: %v, %v", found, err)
	}
	var state launch.State
	w.Eventually(t, "the pod is overdue", func(ctx context.Context) (bool, error) {
		var err error
		state, err = l.Status(ctx, id)
		return len(state.HeldRoles) > 0, err
	})
	if waits := strings.Join(state.Waiting(), "\n"); !slices.Equal(state.HeldRoles, []string{"worker-1"}) || !strings.Contains(waits, "worker-1: its node gone-"+w.ns+" does not answer") {
		t.Errorf("held are %q, waiting is %s", state.HeldRoles, waits)
	}
	watching, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for s, err := range l.Watch(watching, id) { // who watches lets go of it
		if err != nil {
			t.Fatal(err)
		}
		if len(s.HeldRoles) == 0 {
			break
		}
	}
	w.Eventually(t, "another pod takes its place", func(ctx context.Context) (bool, error) {
		found, err := w.podsOf(ctx, id, worker, "1")
		if err != nil || len(found) != 1 || found[0].UID == first.UID {
			return false, errors.Join(err, fmt.Errorf("%d pods", len(found)))
		}
		if n := found[0].Annotations["batch.kubernetes.io/job-index-failure-count"]; n != "" && n != "0" {
			t.Errorf("its index counts %s failures", n)
		}
		return true, nil
	})
	if err := l.Release(t.Context(), id); err != nil { // again, with nothing held
		t.Error(err)
	}
	if err := l.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}

// TestRefusedWorkersAreNamed: a run of which only a part has room in the quota
// says which roles have not, and why.
func TestRefusedWorkersAreNamed(t *testing.T) {
	w := newWorld(t, "restricted")
	w.Kubectl(t, "", "-n", w.ns, "create", "quota", "few", "--hard=pods=2")
	w.Eventually(t, "the quota counts", func(ctx context.Context) (bool, error) {
		q, err := w.Client.CoreV1().ResourceQuotas(w.ns).Get(ctx, "few", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0, err
	})
	l := w.launcher(small())
	id, err := l.Start(t.Context(), "op-1", someRun(3, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	w.Eventually(t, "all five are named", func(ctx context.Context) (bool, error) {
		state, err := l.Status(ctx, id)
		refused := 0
		for _, r := range state.Waiting() {
			if strings.Contains(r, "exceeded quota: few") {
				refused++
			}
		}
		return refused == 3 && len(state.Roles) == 5, errors.Join(err, fmt.Errorf("%q", state.Waiting()))
	})
	if err := l.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}

// TestBrokenRuns: a coordinator that goes on believing is not believed where the
// Jobs that it waits for make no pods any more.
func TestBrokenRuns(t *testing.T) {
	const id = "run-0000000000000001"
	made := func(role string, failed bool) batch.Job {
		j := batch.Job{ObjectMeta: metav1.ObjectMeta{Name: job(id, role), Labels: labels(id, role)}}
		if failed {
			j.Status.Conditions = []batch.JobCondition{{Type: batch.JobFailed, Status: core.ConditionTrue, Reason: batch.JobReasonPodFailurePolicy, Message: "exit code 13"}}
		}
		return j
	}
	ended := core.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels(id, server), Annotations: map[string]string{batch.JobCompletionIndexAnnotation: "0"}}}
	ended.Status.ContainerStatuses = []core.ContainerStatus{{State: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: int32(spec.EndNoCoordinator)}}}}
	for _, tt := range []struct {
		name string
		jobs []batch.Job
		want string // "": it goes on
	}{
		{"whole", []batch.Job{made(server, false), made(worker, false)}, ""},
		{"both priorities", []batch.Job{made(server, false), made(worker, false), made(workerHigh, false)}, ""},
		{"servers failed", []batch.Job{made(server, true), made(worker, false)}, "the Job " + id + "-ps failed: PodFailurePolicy: exit code 13 (ps-0: it had no coordinator for too long)"},
		{"servers are gone", []batch.Job{made(worker, false)}, "the Job " + id + "-ps is gone"},
		{"workers failed", []batch.Job{made(server, false), made(worker, true)}, "the Job " + id + "-worker failed: PodFailurePolicy: exit code 13"},
		{"some workers failed", []batch.Job{made(server, false), made(worker, true), made(workerHigh, false)}, ""},
		{"other workers failed", []batch.Job{made(server, false), made(worker, false), made(workerHigh, true)}, ""},
		{"all workers failed", []batch.Job{made(server, false), made(worker, true), made(workerHigh, true)}, "the Job " + id + "-worker-high failed: PodFailurePolicy: exit code 13"},
		{"high workers alone failed", []batch.Job{made(server, false), made(workerHigh, true)}, "the Job " + id + "-worker-high failed: PodFailurePolicy: exit code 13"},
		{"workers are gone", []batch.Job{made(server, false)}, "the Job " + id + "-worker is gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &sight{jobs: append(tt.jobs, made(coordinator, false)), pods: []core.Pod{ended}}
			s.config.Name = id
			state := launch.State{Status: spec.Status{Phase: spec.Running, Step: 9}, Saved: 5}
			s.judge(&state)
			if tt.want == "" {
				if state.Phase != spec.Running || state.CannotContinue != "" || state.Saved != 5 {
					t.Errorf("it goes on, and is %+v", state)
				}
				return
			}
			if state.Phase != spec.Lost || state.CannotContinue != tt.want || state.Message != tt.want || state.Saved != -1 {
				t.Errorf("%+v, want %q", state, tt.want)
			}
			over := launch.State{Status: spec.Status{Phase: spec.Failed}}
			if s.judge(&over); over.Phase != spec.Failed || over.CannotContinue != "" {
				t.Errorf("its end is what the coordinator says: %+v", over)
			}
		})
	}
}

// TestHeldCoordinator: a coordinator has another pod at once, and is what that is.
func TestHeldCoordinator(t *testing.T) {
	pod := func(name string, age time.Duration) core.Pod {
		return core.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels("run-1", coordinator), CreationTimestamp: metav1.NewTime(time.Now().Add(-age))}, Spec: core.PodSpec{NodeName: "gone"}}
	}
	lost, next := pod("a", time.Hour), pod("b", time.Minute)
	for n, s := range []*sight{{pods: []core.Pod{lost}}, {pods: []core.Pod{next, lost}}} {
		state := launch.State{Roles: s.roles()}
		s.hold(&state, []core.Pod{lost})
		if !slices.Equal(state.HeldRoles, []string{"coordinator-0"}) || len(state.Roles) != 1 || strings.Contains(state.Roles[0].Reason, "does not answer") != (n == 0) {
			t.Errorf("%d other pods: %+v", n, state)
		}
	}
}

// TestRanges reads the notation in which Jobs list indexes.
func TestRanges(t *testing.T) {
	var got []int
	for i := range 12 {
		if inRanges("0,3-5,10", i) {
			got = append(got, i)
		}
	}
	if !slices.Equal(got, []int{0, 3, 4, 5, 10}) || inRanges("", 0) {
		t.Errorf("0,3-5,10 has %v", got)
	}
}
