package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// sight is what a cluster has of a run at one moment.
type sight struct {
	config core.ConfigMap
	jobs   []batch.Job
	pods   []core.Pod
	// completed are the Jobs, gone by now, that events say were completed.
	completed map[string]bool
}

// look reads a run's objects: launch.ErrNoRun, launch.ErrForeign.
func (c *cluster) look(ctx context.Context, id string) (*sight, error) {
	s := new(sight)
	there, err := c.get(ctx, configMaps, id, &s.config)
	switch {
	case err != nil:
		return nil, err
	case !there:
		return nil, fmt.Errorf("%w: no ConfigMap %s in the namespace %s", launch.ErrNoRun, id, c.namespace)
	case s.config.Labels[runLabel] != id:
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", c.namespace, id, launch.ErrForeign)
	}
	if s.jobs, err = list[batch.Job](ctx, c, jobs, id); err != nil {
		return nil, err
	}
	s.pods, err = list[core.Pod](ctx, c, pods, id)
	return s, err
}

func (s *sight) job(role string) *batch.Job {
	for i := range s.jobs {
		if s.jobs[i].Labels[roleLabel] == role {
			return &s.jobs[i]
		}
	}
	return nil
}

// spec is the specification as it was applied last.
func (s *sight) spec() (spec.Spec, error) {
	of := spec.Default()
	err := json.Unmarshal([]byte(s.config.Data[keySpec]), &of)
	if err != nil {
		err = fmt.Errorf("the ConfigMap %s has no specification: %w", s.config.Name, err)
	}
	return of, err
}

func (s *sight) placement() (p launch.Placement, err error) {
	if err := json.Unmarshal([]byte(s.config.Data[keyPlacement]), &p); err != nil {
		return p, fmt.Errorf("the ConfigMap %s does not say where pods go: %w", s.config.Name, err)
	}
	return p, nil
}

// recorded is the status that was written down, and whether there is one.
func (s *sight) recorded() (launch.State, bool) {
	var state launch.State
	text, ok := s.config.Data[keyStatus]
	if !ok || json.Unmarshal([]byte(text), &state) != nil || launch.Check(state.Status, s.config.Name) != nil {
		return state, false
	}
	return state, true
}

// outcome is what a coordinator left in its termination message: the newest
// that a container of a pod of it has.
func (s *sight) outcome() (spec.Status, bool) {
	var newest spec.Status
	var at time.Time
	found := false
	for _, p := range s.pods {
		if p.Labels[roleLabel] != coordinator {
			continue
		}
		for _, c := range p.Status.ContainerStatuses {
			for _, end := range []*core.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
				var status spec.Status
				if end == nil || json.Unmarshal([]byte(end.Message), &status) != nil || !status.Phase.Final() ||
					launch.Check(status, s.config.Name) != nil || found && end.FinishedAt.Time.Before(at) {
					continue
				}
				newest, at, found = status, end.FinishedAt.Time, true
			}
		}
	}
	return newest, found
}

// hasProgram reports whether the run's workers run a program.
func (s *sight) hasProgram() bool {
	of, err := s.spec()
	return err == nil && of.HasProgram()
}

// derived is how the run stands as far as objects tell, without its
// coordinator.
func (s *sight) derived() spec.Status {
	status := spec.Status{Run: s.config.Name, Hash: s.config.Data[keyHash], Phase: spec.Pending, Evaluated: -1}
	if of, err := s.spec(); err == nil {
		status.Epochs, status.Wanted = of.Epochs, of.Worker.Replicas
	}
	main := s.job(coordinator)
	switch {
	case main == nil:
		status.Phase, status.Message = spec.Lost, "its coordinator's Job is gone"
		s.endedWell(&status)
	case condition(main, batch.JobFailed) != nil:
		status.Phase, status.Cause = spec.Stopped, spec.CauseRestarts
		status.Message = "its coordinator ended again and again: " + condition(main, batch.JobFailed).Message
	case condition(main, batch.JobComplete) != nil:
		status.Phase, status.Message = spec.Lost, "its coordinator's pod is gone, and with it how the run ended"
		s.endedWell(&status)
	default:
		status.Message = s.waitsFor()
		if main.Status.StartTime != nil {
			status.Started = main.Status.StartTime.Time
		}
	}
	return status
}

// endedWell looks for a Job of workers or servers that is complete, or was: only a
// finished run lets them end well.
func (s *sight) endedWell(status *spec.Status) {
	for _, role := range []string{worker, workerHigh, server} {
		if j := s.job(role); j != nil && condition(j, batch.JobComplete) != nil || j == nil && s.completed[job(s.config.Name, role)] {
			status.Phase, status.Message = spec.Succeeded, "what it measured is gone with its coordinator's pod"
		}
	}
}

// hasEnded tells a run whose end was written down.
func (s *sight) hasEnded() bool {
	_, ok := s.recorded()
	return ok
}

func condition(j *batch.Job, of batch.JobConditionType) *batch.JobCondition {
	for i, c := range j.Status.Conditions {
		if c.Type == of && c.Status == core.ConditionTrue {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}

// waitsFor says why the run does not go on: the first of its pods that cannot
// run, the coordinator's before others.
func (s *sight) waitsFor() string {
	ordered := slices.Clone(s.pods)
	slices.SortStableFunc(ordered, func(a, b core.Pod) int {
		return cmp.Or(cmp.Compare(a.Labels[roleLabel], b.Labels[roleLabel]), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range ordered {
		if phase, reason := podPhase(&p); reason != "" && phase == "waiting" {
			return roleName(&p) + ": " + reason
		}
	}
	return "starting"
}

// roles are the pods, those of one index as one.
func (s *sight) roles() []launch.Role {
	newest := make(map[string]core.Pod)
	restarts := make(map[string]int)
	for _, p := range s.pods {
		name := roleName(&p)
		for _, c := range p.Status.ContainerStatuses {
			restarts[name] += int(c.RestartCount)
		}
		if other, ok := newest[name]; ok {
			restarts[name]++
			if other.CreationTimestamp.After(p.CreationTimestamp.Time) {
				continue
			}
		}
		newest[name] = p
	}
	var all []launch.Role
	for name, p := range newest {
		phase, reason := podPhase(&p)
		r := launch.Role{Name: name, Phase: phase, Restarts: restarts[name], Node: p.Spec.NodeName, Address: p.Status.PodIP, Reason: reason, Since: p.CreationTimestamp.Time}
		for _, c := range p.Status.ContainerStatuses {
			switch {
			case c.State.Running != nil:
				r.Since = c.State.Running.StartedAt.Time
			case c.State.Terminated != nil:
				r.Since = c.State.Terminated.FinishedAt.Time
			}
		}
		all = append(all, r)
	}
	return inOrder(all)
}

// inOrder sorts roles: the coordinator, servers, workers.
func inOrder(all []launch.Role) []launch.Role {
	slices.SortFunc(all, func(a, b launch.Role) int { return cmp.Or(rank(a.Name)-rank(b.Name), natural(a.Name, b.Name)) })
	return all
}

func rank(name string) int {
	for i, role := range []string{coordinator, server, worker} {
		if strings.HasPrefix(name, role) {
			return i
		}
	}
	return 3
}

// natural orders worker-2 before worker-10.
func natural(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// roleName is what people call the role in a pod: worker-1.
func roleName(p *core.Pod) string {
	role, index := p.Labels[roleLabel], p.Annotations[batch.JobCompletionIndexAnnotation]
	if strings.Trim(index, "0123456789") != "" || !slices.Contains([]string{coordinator, server, worker, workerHigh}, role) {
		return p.Name // somebody else made it: files are named by roles
	}
	switch role {
	case coordinator:
		return coordinator + "-0"
	case workerHigh:
		return worker + "-" + index
	case worker:
		return worker + "-" + shifted(p, index)
	}
	return role + "-" + index
}

// shifted adds the number of workers that the Job of the higher priority has.
func shifted(p *core.Pod, index string) string {
	for _, c := range p.Spec.Containers {
		for _, a := range c.Args {
			var first, i int
			if n, _ := fmt.Sscanf(a, "--first-index=%d", &first); n == 1 {
				if n, _ := fmt.Sscan(index, &i); n == 1 {
					return fmt.Sprint(first + i)
				}
			}
		}
	}
	return index
}

// podPhase words how a pod stands, and why it does not run.
func podPhase(p *core.Pod) (phase, reason string) {
	for _, c := range p.Status.ContainerStatuses {
		switch {
		case c.State.Running != nil && p.DeletionTimestamp != nil:
			return "running", "is asked to leave"
		case c.State.Running != nil:
			return "running", ""
		case c.State.Terminated != nil:
			end := spec.End(c.State.Terminated.ExitCode)
			text := fmt.Sprintf("exit status %d", end)
			if end.IsKnown() {
				text = end.String()
			}
			if r := c.State.Terminated.Reason; r == "OOMKilled" {
				text = "killed: it needed more memory than its limit"
			}
			return "ended", text
		case c.State.Waiting != nil && c.State.Waiting.Reason != "ContainerCreating" && c.State.Waiting.Reason != "PodInitializing":
			return "waiting", join(c.State.Waiting.Reason, c.State.Waiting.Message)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == core.PodScheduled && c.Status == core.ConditionFalse {
			return "waiting", c.Message
		}
	}
	if p.Status.Reason != "" {
		return "ended", join(p.Status.Reason, p.Status.Message)
	}
	return "waiting", ""
}

func join(reason, message string) string {
	if message == "" {
		return reason
	}
	return reason + ": " + message
}

// asking returns the status that the coordinator in one of these pods gives, and
// the session with it.
type asking func(ctx context.Context, id string, all []core.Pod) (spec.Status, *session, error)

// readState returns the state of a run, a session with its coordinator or nil, and
// the placement of the run.
func readState(ctx context.Context, c *cluster, id string, s *sight, ask asking) (launch.State, *session, launch.Placement, error) {
	state, asked, err := c.status(ctx, id, s, ask)
	if err != nil {
		return state, asked, launch.Placement{}, err
	}
	p, err := s.placement()
	if err != nil {
		return state, asked, p, err
	}
	if p.Durable() {
		state.Saved, state.CheckpointsLost = max(state.Saved, state.Status.Saved), false
	}
	lost, going := c.claimLoss(ctx, id, p)
	s.withoutClaim(&state, lost, going, p)
	s.unmix(&state, p)
	if asked == nil && state.RestartReason != "" {
		// Without a session nothing is saved: a stop would lose the way from its newest checkpoint.
		state.Warnings, state.RestartReason = append(state.Warnings, state.RestartReason), ""
	}
	return state, asked, p, nil
}

// status asks the coordinator where it runs, and tells from objects where it
// does not.
func (c *cluster) status(ctx context.Context, id string, s *sight, ask asking) (launch.State, *session, error) {
	c.whyClaimsWait(ctx, s)
	state := launch.State{Saved: -1, Roles: s.roles(), Program: s.hasProgram()}
	if recorded, ok := s.recorded(); ok {
		recorded.Roles, recorded.Program = state.Roles, state.Program
		return recorded, nil, nil
	}
	refused := c.refusedRoles(ctx, s)
	for _, r := range refused {
		ended := func(other launch.Role) bool { return other.Name == r.Name }
		state.Roles = append(slices.DeleteFunc(state.Roles, ended), r)
	}
	inOrder(state.Roles)
	s.hold(&state, c.heldPods(ctx, s))
	s.delay(&state)
	status, asked, err := ask(ctx, id, s.pods)
	if err == nil {
		state.Status, state.Version = status, status.Trainer
		if status.Saved > 0 {
			state.Saved = status.Saved
		}
		s.judge(&state)
		return state, asked, nil
	}
	if errors.Is(err, errSilent) {
		return state, nil, err
	}
	if ctx.Err() != nil {
		return state, nil, context.Cause(ctx)
	}
	if status, ok := s.outcome(); ok && running(s.pods) == nil {
		state.Status = status
		return state, nil, nil
	}
	c.whatCompleted(ctx, s)
	state.Status = s.derived()
	state.CheckpointsLost = launch.Idle(state.Phase)
	if state.Phase == spec.Pending && len(refused) > 0 {
		state.Message = refused[0].Name + ": " + refused[0].Reason
	}
	if err != nil && !errors.Is(err, errNoCoordinator) && state.Phase == spec.Pending {
		state.Message = "the coordinator does not answer yet: " + err.Error()
	}
	return state, nil, nil
}
