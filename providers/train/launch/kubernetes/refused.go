package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stokehq/stoke/providers/train/launch"
)

// refusedRoles are the roles that have no pod because the API server refuses it, by a
// quota, a Pod Security level or a webhook, long after it took the Job: only an
// event tells. Events that cannot be read are none.
func (c *cluster) refusedRoles(ctx context.Context, s *sight) []launch.Role {
	bare := make(map[string][]string) // roles without a pod by their Jobs' names
	for _, j := range s.jobs {
		if names := s.bare(&j); len(names) > 0 {
			bare[j.Name] = names
		}
	}
	if len(bare) == 0 {
		return nil
	}
	page, err := c.client(events).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,reason=FailedCreate", Limit: 500})
	if err != nil {
		return nil
	}
	newest := make(map[string]core.Event)
	for _, u := range page.Items {
		var e core.Event
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &e) != nil {
			continue
		}
		of := e.InvolvedObject.Name
		if at := lastSeen(&e); bare[of] != nil && !at.Before(s.lastPod(of)) && !at.Before(lastSeen(new(newest[of]))) {
			newest[of] = e
		}
	}
	var all []launch.Role
	for of, e := range newest {
		for _, name := range bare[of] {
			all = append(all, launch.Role{Name: name, Phase: launch.Waiting, Reason: strings.TrimPrefix(e.Message, "Error creating: "), Since: e.FirstTimestamp.Time})
		}
	}
	return inOrder(all)
}

// whyClaimsWait adds to what the scheduler says of a pod that waits for a claim why the
// claim waits: that is known to the claim's events alone. Events that cannot be
// read are none.
func (c *cluster) whyClaimsWait(ctx context.Context, s *sight) {
	waits := func(of core.PodCondition) bool {
		return of.Type == core.PodScheduled && of.Status == core.ConditionFalse && strings.Contains(strings.ToLower(of.Message), "persistentvolumeclaim")
	}
	if !slices.ContainsFunc(s.pods, func(p core.Pod) bool { return slices.ContainsFunc(p.Status.Conditions, waits) }) {
		return
	}
	page, err := c.client(events).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=PersistentVolumeClaim", Limit: 500})
	if err != nil {
		return
	}
	newest := make(map[string]core.Event)
	for _, u := range page.Items {
		var e core.Event
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &e) != nil || e.Type != core.EventTypeWarning && e.Reason != "FailedBinding" { // which is what a claim without a class says
			continue
		}
		if !lastSeen(&e).Before(lastSeen(new(newest[e.InvolvedObject.Name]))) {
			newest[e.InvolvedObject.Name] = e
		}
	}
	for i := range s.pods {
		p := &s.pods[i]
		at := slices.IndexFunc(p.Status.Conditions, waits)
		if at < 0 {
			continue
		}
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim == nil {
				continue
			}
			if e, known := newest[v.PersistentVolumeClaim.ClaimName]; known {
				p.Status.Conditions[at].Message += fmt.Sprintf("; claim %s: %s", e.InvolvedObject.Name, strings.TrimSuffix(e.Message, "."))
			}
		}
	}
}

// whatCompleted learns from events which Jobs of a run were completed before
// somebody deleted them, or their time to live did. Clusters keep events for an
// hour or so.
func (c *cluster) whatCompleted(ctx context.Context, s *sight) {
	if s.job(coordinator) != nil {
		return // which reports its own status
	}
	page, err := c.client(events).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,reason=Completed", Limit: 500})
	if err != nil {
		return
	}
	s.completed = make(map[string]bool)
	for _, u := range page.Items {
		if name, _, _ := unstructured.NestedString(u.Object, "involvedObject", "name"); name != "" {
			s.completed[name] = true
		}
	}
}

func lastSeen(e *core.Event) time.Time {
	if e.LastTimestamp.IsZero() {
		return e.EventTime.Time
	}
	return e.LastTimestamp.Time
}

// lastPod is when the newest pod of a Job was made: what was refused before that
// is refused no longer.
func (s *sight) lastPod(of string) (at time.Time) {
	for _, p := range s.pods {
		if job(s.config.Name, p.Labels[roleLabel]) == of && p.CreationTimestamp.After(at) {
			at = p.CreationTimestamp.Time
		}
	}
	return at
}

// bare names the roles of a Job that have no pod and are to have one.
func (s *sight) bare(j *batch.Job) (names []string) {
	if condition(j, batch.JobComplete) != nil || condition(j, batch.JobFailed) != nil {
		return nil
	}
	made := make(map[string]bool)
	for _, p := range s.pods {
		if p.Status.Phase != core.PodFailed {
			made[roleName(&p)] = true
		}
	}
	n := int32(1)
	if j.Spec.Completions != nil {
		n = *j.Spec.Completions
	}
	done := j.Status.CompletedIndexes
	if failed := j.Status.FailedIndexes; failed != nil {
		done += "," + *failed
	}
	for i := range int(n) {
		pod := core.Pod{Spec: j.Spec.Template.Spec}
		pod.Labels, pod.Annotations = j.Labels, map[string]string{batch.JobCompletionIndexAnnotation: strconv.Itoa(i)}
		if name := roleName(&pod); !made[name] && !inRanges(done, i) {
			names = append(names, name)
		}
	}
	return names
}

// inRanges tells whether ranges in the notation of Jobs, such as 0,3-5, have a
// number.
func inRanges(ranges string, i int) bool {
	for part := range strings.SplitSeq(ranges, ",") {
		var from, to int
		switch n, _ := fmt.Sscanf(part, "%d-%d", &from, &to); {
		case n == 1 && i == from, n == 2 && from <= i && i <= to:
			return true
		}
	}
	return false
}
