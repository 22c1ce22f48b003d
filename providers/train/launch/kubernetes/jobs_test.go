package kubernetes

import (
	"slices"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/runtime/spec"
)

// TestEndsOfPods has the Jobs do with each end of the runtime's table what the
// table says. "" is a failure that counts against the index; nobody asks a Job
// about a pod that ended well.
func TestEndsOfPods(t *testing.T) {
	want := map[spec.End]struct{ worker, server batch.PodFailurePolicyAction }{
		spec.EndFinished:      {},
		spec.EndError:         {},
		spec.EndOtherwise:     {batch.PodFailurePolicyActionFailJob, batch.PodFailurePolicyActionFailJob},
		spec.EndAsked:         {batch.PodFailurePolicyActionIgnore, batch.PodFailurePolicyActionIgnore},
		spec.EndGivenUp:       {batch.PodFailurePolicyActionFailIndex, ""}, // only workers are given up
		spec.EndNoCoordinator: {batch.PodFailurePolicyActionFailIndex, batch.PodFailurePolicyActionFailJob},
		spec.EndUsage:         {batch.PodFailurePolicyActionFailIndex, batch.PodFailurePolicyActionFailJob},
	}
	l := &layout{"run-0000000000000001", someRun(2, 1), small(), 0}
	l.HighPriority = 1
	decided := 0
	for _, j := range l.jobs() {
		role := j.Labels[roleLabel]
		if role == coordinator {
			if j.Spec.PodFailurePolicy != nil || j.Spec.Template.Spec.RestartPolicy != core.RestartPolicyOnFailure {
				t.Error("Kubernetes refuses rules for pods whose containers restart")
			}
			continue
		}
		first := j.Spec.PodFailurePolicy.Rules[0]
		if first.Action != batch.PodFailurePolicyActionIgnore || len(first.OnPodConditions) != 1 || first.OnPodConditions[0].Type != core.DisruptionTarget {
			t.Errorf("%s: what takes a pod along with its node decides first, not %+v", role, first)
		}
		for _, row := range spec.Ends {
			expected, known := want[row.End]
			if !known {
				t.Fatalf("what becomes of a pod that ends with %d is not decided", row.End)
			}
			action := expected.worker
			if role == server {
				action = expected.server
			}
			if got := actionOn(j, row.End); got != action {
				t.Errorf("%s that ends with %d: %q, want %q", role, row.End, got, action)
			}
			decided++
		}
	}
	if decided != 3*len(spec.Ends) {
		t.Errorf("%d ends were looked at", decided)
	}
}

// actionOn is what a Job does about a pod that ended so.
func actionOn(j *batch.Job, end spec.End) batch.PodFailurePolicyAction {
	for _, r := range j.Spec.PodFailurePolicy.Rules {
		if r.OnExitCodes != nil && slices.Contains(r.OnExitCodes.Values, int32(end)) {
			return r.Action
		}
	}
	return ""
}
