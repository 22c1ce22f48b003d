package kubernetes

import (
	"context"
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

// TestBackOff reads from pods how long their Jobs wait.
func TestBackOff(t *testing.T) {
	made, ended := time.Unix(100, 0), time.Unix(200, 0)
	pod := func(failed, ignored string, code int32) *core.Pod {
		p := &core.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made), Annotations: map[string]string{
			batch.JobCompletionIndexAnnotation: "0", batch.JobIndexFailureCountAnnotation: failed, batch.JobIndexIgnoredFailureCountAnnotation: ignored,
		}}, Status: core.PodStatus{Phase: core.PodFailed}}
		p.Status.ContainerStatuses = []core.ContainerStatus{{State: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(ended)}}}}
		return p
	}
	for _, test := range []struct {
		failed, ignored string
		lasts           time.Duration
	}{
		{"", "", 10 * time.Second}, {"0", "1", 20 * time.Second}, {"1", "1", 40 * time.Second}, {"0", "6", 10 * time.Minute},
		{"0", "2147483647", 10 * time.Minute}, {"-1", "x", 10 * time.Second},
	} {
		from, lasts, ok := backOff(pod(test.failed, test.ignored, int32(spec.EndAsked)))
		if !from.Equal(ended) || lasts != test.lasts || !ok {
			t.Errorf("after %q and %q: %v from %v on, %v", test.failed, test.ignored, lasts, from, ok)
		}
	}
	if _, _, ok := backOff(pod("0", "6", int32(spec.EndError))); ok {
		t.Error("a pod that failed by itself is taken for one that was asked to leave")
	}
	preempted := pod("0", "6", int32(spec.EndError))
	preempted.Status.ContainerStatuses = nil
	preempted.Status.Conditions = []core.PodCondition{{Type: core.DisruptionTarget, Status: core.ConditionTrue}}
	if from, _, ok := backOff(preempted); !ok || !from.Equal(made) {
		t.Errorf("preempted before it ran: %v, %v", from, ok)
	}
	preempted.Status.Phase = core.PodRunning
	if _, _, ok := backOff(preempted); ok {
		t.Error("a pod that runs is taken for one that has ended")
	}
}

// TestIndexIsRenewed: a worker that has made way for others many times would come
// back minutes later. The status says when; who watches has it come back soon.
func TestIndexIsRenewed(t *testing.T) {
	w := newWorld(t, "restricted")
	kubelet := w.AddKubelet(t, "node-"+w.ns)
	l := w.launcher(small())
	id, err := l.Start(t.Context(), "op-1", someRun(2, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	w.onKubelet(id, worker, 2)
	found, err := w.podsOf(t.Context(), id, worker, "1")
	if err != nil || len(found) != 1 {
		t.Fatalf("%d pods, %v", len(found), err)
	}
	w.Kubectl(t, "", "-n", w.ns, "annotate", "--overwrite", "pod", found[0].Name, batch.JobIndexIgnoredFailureCountAnnotation+"=9")
	kubelet.End(t, w.ns, found[0].Name, "trainer", int32(spec.EndAsked), "Error")
	state := w.eventually(l, id, "the worker is delayed", func(s launch.State) bool { return len(s.DelayedRoles) > 0 })
	at := slices.IndexFunc(state.Roles, func(r launch.Role) bool { return r.Name == "worker-1" })
	if !slices.Equal(state.DelayedRoles, []string{"worker-1"}) || at < 0 || !strings.Contains(state.Roles[at].Reason, "its Job brings it back in 9m") && !strings.Contains(state.Roles[at].Reason, "its Job brings it back in 10m") {
		t.Errorf("delayed are %q of %+v", state.DelayedRoles, state.Roles)
	}
	watching, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for s, err := range l.Watch(watching, id) {
		if err != nil {
			t.Fatal(err)
		}
		if len(s.DelayedRoles) == 0 {
			break
		}
	}
	w.Eventually(t, "the worker is back", func(ctx context.Context) (bool, error) {
		now, err := w.podsOf(ctx, id, worker, "1")
		now = slices.DeleteFunc(now, func(p core.Pod) bool { return p.UID == found[0].UID })
		if err != nil || len(now) != 1 {
			return false, fmt.Errorf("%d pods: %w", len(now), err)
		}
		if n := now[0].Annotations[batch.JobIndexIgnoredFailureCountAnnotation]; n != "1" {
			t.Errorf("it is back after %s times", n)
		}
		return true, nil
	})
	if err := l.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}
