package kubernetes

import (
	"fmt"

	batch "k8s.io/api/batch/v1"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// judge records that a run cannot continue although its coordinator believes
// that it can. Checkpoints in the coordinator's pod are lost with the pod.
func (s *sight) judge(state *launch.State) {
	if why := s.missingJob(); why != "" && !state.Phase.Final() {
		state.Phase, state.Message, state.CannotContinue, state.Saved = spec.Lost, why, why, -1
	}
}

// missingJob names the missing Job without which the run cannot continue, whatever
// its coordinator reports: the Job of the servers, or the Jobs of all workers.
// "": none is missing.
func (s *sight) missingJob() string {
	of, err := s.spec()
	if why := s.whyNoPods(server); why != "" && !(err == nil && of.ParameterServer.Replicas == 0) {
		return why
	}
	high, low := s.job(workerHigh), s.job(worker)
	switch {
	case high == nil:
		return s.whyNoPods(worker)
	case low == nil:
		return s.whyNoPods(workerHigh)
	case s.whyNoPods(worker) == "":
		return ""
	}
	return s.whyNoPods(workerHigh)
}

// whyNoPods returns why a role's Job has no pods and creates none; "" if it has
// or will have pods.
func (s *sight) whyNoPods(role string) string {
	j := s.job(role)
	if j == nil {
		return fmt.Sprintf("the Job %s is gone", job(s.config.Name, role))
	}
	for _, kind := range []batch.JobConditionType{batch.JobFailed, batch.JobFailureTarget} {
		if failed := condition(j, kind); failed != nil {
			return fmt.Sprintf("the Job %s failed: %s%s", j.Name, join(failed.Reason, failed.Message), s.lastEnd(role))
		}
	}
	return ""
}

// lastEnd words how the newest pod of a role that has ended did.
func (s *sight) lastEnd(role string) string {
	text := ""
	for _, p := range byAge(s.pods) {
		if phase, reason := podPhase(&p); p.Labels[roleLabel] == role && phase == "ended" && reason != "" {
			text = fmt.Sprintf(" (%s: %s)", roleName(&p), reason)
		}
	}
	return text
}
