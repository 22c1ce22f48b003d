package kubernetes

import (
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// How often a role may end before nobody starts it again. Of servers and workers,
// each index counts its crashes, and nothing else: see rules. Of the coordinator
// everything counts, the restarts of its container as well as pods that went with
// their node: Kubernetes has no such rules for pods whose containers restart.
const (
	coordinatorRetries = 20
	serverRetries      = 20
	workerRetries      = 5
)

// jobs returns the run's Jobs in order of creation. The coordinator's is last:
// it releases the run.
func (l *layout) jobs() []*batch.Job {
	var all []*batch.Job
	if n := l.spec.ParameterServer.Replicas; n > 0 {
		all = append(all, l.indexed(server, n, serverRetries))
	}
	low, high := l.spec.Worker.Replicas-l.high(), l.high()
	if high > 0 {
		all = append(all, l.indexed(workerHigh, high, workerRetries))
	}
	if low > 0 || l.HighPriority == 0 {
		all = append(all, l.indexed(worker, low, workerRetries))
	}
	return append(all, l.single())
}

// single is the coordinator's Job. Files that a container leaves in the pod's
// volume are there for the next container, so that a crash restarts it in its
// place.
func (l *layout) single() *batch.Job {
	return l.job(coordinator, batch.JobSpec{BackoffLimit: new(int32(coordinatorRetries))})
}

// indexed is the Job of a role that has several pods, each with an index.
func (l *layout) indexed(role string, replicas, retries int) *batch.Job {
	s := batch.JobSpec{
		CompletionMode:       new(batch.IndexedCompletion),
		Completions:          new(int32(replicas)),
		Parallelism:          new(int32(replicas)),
		BackoffLimitPerIndex: new(int32(retries)),
		PodFailurePolicy:     &batch.PodFailurePolicy{Rules: rules(role)},
	}
	if role != server {
		// A worker ends well only where the run has: those that never got room
		// must not keep it from ending.
		s.SuccessPolicy = &batch.SuccessPolicy{Rules: []batch.SuccessPolicyRule{{SucceededCount: new(int32(1))}}}
	}
	return l.job(role, s)
}

func (l *layout) job(role string, s batch.JobSpec) *batch.Job {
	s.Template = l.template(role)
	return &batch.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: job(l.id, role), Namespace: l.Namespace, Labels: labels(l.id, role)},
		Spec:       s,
	}
}

// rules say by the runtime's table of ends what becomes of a pod: the first that
// fits decides. What no rule names is an error or a crash, and counts against the
// index.
//
// Who has had no coordinator for so long that it gave up is not started again by
// its Job, which would hold the room of a run that is over for ever, and cannot
// know whether one is: an apply does it where the run is still wanted. Nor is who
// was started wrongly. Without one of its servers a run does not go on, so that
// a server takes its Job along.
func rules(role string) []batch.PodFailurePolicyRule {
	on := func(action batch.PodFailurePolicyAction, ends ...spec.End) batch.PodFailurePolicyRule {
		r := batch.PodFailurePolicyOnExitCodesRequirement{Operator: batch.PodFailurePolicyOnExitCodesOpIn}
		for _, e := range ends {
			r.Values = append(r.Values, int32(e))
		}
		return batch.PodFailurePolicyRule{Action: action, OnExitCodes: &r}
	}
	all := []batch.PodFailurePolicyRule{{
		Action:          batch.PodFailurePolicyActionIgnore, // preempted, drained, or its node is gone
		OnPodConditions: []batch.PodFailurePolicyOnPodConditionsPattern{{Type: core.DisruptionTarget, Status: core.ConditionTrue}},
	}, on(batch.PodFailurePolicyActionIgnore, spec.EndAsked)}
	if role == server {
		return append(all, on(batch.PodFailurePolicyActionFailJob, spec.EndOtherwise, spec.EndNoCoordinator, spec.EndUsage))
	}
	return append(all, on(batch.PodFailurePolicyActionFailJob, spec.EndOtherwise),
		on(batch.PodFailurePolicyActionFailIndex, spec.EndGivenUp, spec.EndNoCoordinator, spec.EndUsage))
}

// Pods is a group of equal pods of a role.
type Pods struct {
	Role  string // coordinator, ps or worker
	Count int
	Spec  core.PodSpec
}

// PodsOf gives the pods of a run that would be made now. Workers of both priorities
// are one entry: they ask for the same.
func PodsOf(s spec.Spec, p launch.Placement) []Pods {
	l := &layout{spec: s, Placement: p}
	return []Pods{
		{coordinator, 1, l.template(coordinator).Spec},
		{server, s.ParameterServer.Replicas, l.template(server).Spec},
		{worker, s.Worker.Replicas, l.template(worker).Spec},
	}
}
