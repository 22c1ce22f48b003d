package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// The Job controller replaces a pod of an index after 10 seconds, and after twice as
// long each time, up to 10 minutes, whatever the pods ended by: also where they made
// way for others and did all that was asked of them. How often that was is in
// annotations of the pod that ended last. An index that would come back minutes
// after it could is renewed: what was only asked of it no longer counts.
const (
	firstBackOff   = 10 * time.Second // as in pkg/controller/job/job_controller.go of Kubernetes 1.37
	longestBackOff = 10 * time.Minute
	longBackOff    = time.Minute // from here on it is renewed
)

// backOff is how long the Job controller waits before it replaces a pod that ended,
// and from when on; false for a pod that has not ended because it was asked to.
func backOff(p *core.Pod) (from time.Time, lasts time.Duration, ok bool) {
	if p.Status.Phase != core.PodFailed || p.Annotations[batch.JobCompletionIndexAnnotation] == "" {
		return from, 0, false
	}
	from = p.CreationTimestamp.Time
	asked := slices.ContainsFunc(p.Status.Conditions, func(c core.PodCondition) bool {
		return c.Type == core.DisruptionTarget && c.Status == core.ConditionTrue
	})
	for _, c := range p.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil {
			asked = asked || spec.End(end.ExitCode) == spec.EndAsked
			from = end.FinishedAt.Time
		}
	}
	lasts = firstBackOff
	for range endedPods(p, batch.JobIndexFailureCountAnnotation) + endedPods(p, batch.JobIndexIgnoredFailureCountAnnotation) {
		lasts = min(2*lasts, longestBackOff)
	}
	return from, lasts, asked
}

// endedPods is how many pods of its index had ended before a pod was made.
func endedPods(p *core.Pod, annotation string) int {
	n, err := strconv.Atoi(p.Annotations[annotation])
	if err != nil {
		return 0
	}
	return min(max(n, 0), 10) // more makes no difference
}

// delayed are the pods that ended last of indices that come back minutes after they
// could, and only because they were asked to leave.
func (s *sight) delayed() (all []core.Pod) {
	newest := make(map[string]core.Pod)
	for _, p := range byAge(s.pods) {
		newest[roleName(&p)] = p
	}
	for _, p := range newest {
		j := s.job(p.Labels[roleLabel])
		if j == nil || condition(j, batch.JobFailed) != nil || condition(j, batch.JobComplete) != nil {
			continue
		}
		if _, lasts, ok := backOff(&p); ok && lasts > longBackOff && endedPods(&p, batch.JobIndexIgnoredFailureCountAnnotation) > 0 {
			all = append(all, p)
		}
	}
	return all
}

// delay says of roles when they come back, and which of them are renewed.
func (s *sight) delay(state *launch.State) {
	for _, p := range s.delayed() {
		name := roleName(&p)
		from, lasts, _ := backOff(&p)
		state.DelayedRoles = append(state.DelayedRoles, name)
		for i, r := range state.Roles {
			if left := time.Until(from.Add(lasts)); r.Name == name && left > 0 {
				state.Roles[i].Reason = fmt.Sprintf("%s; its Job brings it back in %s", r.Reason, left.Round(time.Second))
			}
		}
	}
	slices.Sort(state.DelayedRoles)
}

// renew takes back what a pod's index was only asked for: its Job replaces the pod
// after the first back-off. It needs the right to write the status of pods alone.
func (c *cluster) renew(ctx context.Context, p *core.Pod) error {
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": p.UID, "annotations": map[string]string{batch.JobIndexIgnoredFailureCountAnnotation: "0"},
	}})
	if err != nil {
		return err
	}
	_, err = c.client(pods).Patch(ctx, p.Name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: manager}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it has been replaced
	}
	return err
}
