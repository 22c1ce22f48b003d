package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// changeTime is how long a running run may take to take a change on.
const changeTime = 30 * time.Second

// Change tells the coordinator, and has the workers' Job grow or shrink in its
// place. A run that grows gets its pods first; one that shrinks says so first,
// so that workers leave with their work done.
func (l *Launcher) Change(ctx context.Context, id string, s spec.Spec) error {
	c, err := l.cluster(ctx)
	if err != nil {
		return err
	}
	now, err := c.look(ctx, id)
	if err != nil {
		return err
	}
	return c.decide(ctx, id, now, func(now *sight) error { return c.change(ctx, now, s) })
}

// change brings a run that is as it was seen to the live fields of s.
func (c *cluster) change(ctx context.Context, now *sight, s spec.Spec) error {
	id := now.config.Name
	if state, ok := now.recorded(); ok && state.Phase.Final() {
		return fmt.Errorf("the run has ended: it %s", state.Phase)
	}
	is, err := now.spec()
	if err != nil {
		return err
	}
	p, err := now.placement()
	if err != nil {
		return err
	}
	s.Layers = is.Layers
	of := &layout{id, s, p, 0}
	told := func() error { return c.sendChange(ctx, id, spec.LiveOf(s)) } // all of it: an earlier change may not have arrived
	steps := []func() error{func() error { return c.write(ctx, &now.config, of, nil) }, func() error { return c.scale(ctx, now, of) }, told}
	if s.Worker.Replicas < is.Worker.Replicas && now.hasRun() {
		left := func() error { return awaitLeaving(ctx, c, id, s) }
		steps = []func() error{told, left, func() error { return c.write(ctx, &now.config, of, nil) }, func() error { return c.scale(ctx, now, of) }}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// awaitLeaving waits until agents that are too many have left: the coordinator lets
// them work until the next checkpoint.
func awaitLeaving(ctx context.Context, c *cluster, id string, s spec.Spec) error {
	if !s.HasProgram() {
		return nil
	}
	for {
		now, err := c.look(ctx, id)
		if err != nil {
			return err
		}
		asked, err := c.session(ctx, id, now.pods)
		if errors.Is(err, errNoCoordinator) {
			return nil // it begins with what the ConfigMap says
		}
		if err != nil {
			return err
		}
		is, err := asked.ask(ctx, id)
		asked.Close()
		if err == nil && (is.Workers <= s.Worker.Replicas || is.Phase.Final()) {
			return nil
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sendChange has the run's coordinator take a change on. One that has never run reads
// what its ConfigMap says when it begins.
func (c *cluster) sendChange(ctx context.Context, id string, change spec.LiveChange) error {
	now, err := c.look(ctx, id)
	if err != nil {
		return err
	}
	asked, err := c.session(ctx, id, now.pods)
	if errors.Is(err, errNoCoordinator) && !now.hasRun() {
		return nil
	}
	if err != nil {
		return err
	}
	defer asked.Close()
	within, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	return asked.Change(within, change)
}

// hasRun tells whether a coordinator of the run has ever run, as far as its pods
// tell.
func (s *sight) hasRun() bool {
	for _, p := range s.pods {
		for _, c := range p.Status.ContainerStatuses {
			if p.Labels[roleLabel] == coordinator && (c.State.Waiting == nil || c.LastTerminationState.Terminated != nil) {
				return true
			}
		}
	}
	j := s.job(coordinator)
	return j == nil || j.Status.Failed > 0 || j.Status.Succeeded > 0
}

// write brings the run's ConfigMap, as it was read, to a specification and a
// placement.
func (c *cluster) write(ctx context.Context, is *core.ConfigMap, l *layout, annotations map[string]string) error {
	config, err := l.configMap("")
	if err != nil {
		return err
	}
	entries := make(map[string]*string)
	for name, text := range config.Data {
		entries[name] = &text
	}
	entries[keyStatus] = nil // it is about what was
	return c.set(ctx, is, entries, annotations)
}

// scale brings the workers' Jobs to as many pods as the run wants.
func (c *cluster) scale(ctx context.Context, now *sight, l *layout) error {
	wanted := make(map[string]bool)
	for _, j := range l.jobs() {
		role := j.Labels[roleLabel]
		if role != worker && role != workerHigh {
			continue
		}
		wanted[role] = true
		is := now.job(role)
		if is == nil {
			if _, err := c.create(ctx, jobs, j, ownerOf(&now.config)); err != nil {
				return err
			}
			continue
		}
		if is.Spec.Completions == nil || *is.Spec.Completions != *j.Spec.Completions {
			n := *j.Spec.Completions
			if err := c.patch(ctx, jobs, is.Name, fmt.Appendf(nil, `{"spec":{"parallelism":%d,"completions":%d}}`, n, n)); err != nil {
				return err
			}
		}
	}
	for _, role := range []string{worker, workerHigh} {
		if is := now.job(role); is != nil && !wanted[role] {
			if err := c.delete(ctx, jobs, is.Name, is.UID); err != nil {
				return err
			}
		}
	}
	return nil
}

// Resume makes the Jobs of an idle run anew, as the placement says now. Where its
// coordinator goes on without the others, it saves what there is first.
func (l *Launcher) Resume(ctx context.Context, id string, s spec.Spec, code launch.Code) error {
	c, err := l.cluster(ctx)
	if err != nil {
		return err
	}
	now, err := c.look(ctx, id)
	if err != nil {
		return err
	}
	is, err := now.spec()
	if err != nil {
		return err
	}
	s.Layers = is.Layers // it stays the same run
	of := &layout{id, s, l.placement, 0}
	if running(now.pods) != nil {
		if err := l.save(ctx, c, id, now, changeTime); err != nil {
			return err
		}
	}
	taken, err := c.take(ctx, id, now.turn())
	if err != nil {
		return err
	}
	if err := c.remove(ctx, jobs, id); err != nil {
		return err
	}
	if err := c.podsGone(ctx, id); err != nil {
		return err
	}
	if err := c.ensureClasses(ctx, of); err != nil {
		return err
	}
	if err := c.makeClaim(ctx, of); err != nil { // which may take long: another stoke may take the run
		return err
	}
	if err := c.writeResumed(ctx, of, taken); err != nil {
		return err
	}
	owner := ownerOf(&now.config)
	if err := (codeKeeper{c, of}).make(ctx, code, owner); err != nil {
		return err
	}
	if err := c.launch(ctx, of, owner); err != nil {
		return err
	}
	return codeKeeper{c, of}.removeOthers(ctx)
}

// Stop ends the run's pods. A coordinator that can be asked has the run saved
// first, for so long as patience says.
func (l *Launcher) Stop(ctx context.Context, id string, patience time.Duration) error {
	c, err := l.cluster(ctx)
	if err != nil {
		return err
	}
	now, err := c.look(ctx, id)
	if errors.Is(err, launch.ErrNoRun) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.accounted(ctx, id, func() error {
		if len(now.jobs) > 0 {
			if err := c.noteMix(ctx, now); err != nil {
				return err
			}
			if err := l.save(ctx, c, id, now, patience); err != nil {
				return err
			}
		}
		if err := c.remove(ctx, jobs, id); err != nil {
			return err
		}
		return c.podsGone(ctx, id)
	})
}

// save has the coordinator stop the run at a checkpoint, and writes down how it
// stood then.
func (l *Launcher) save(ctx context.Context, c *cluster, id string, now *sight, patience time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.askToStop(waiting, id, now); err == nil {
		for state, err := range l.Watch(waiting, id) {
			if err == nil && state.Phase.Final() {
				return nil // and it is recorded
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return l.abandoned(ctx, c, id)
}

// deafTime is how long a coordinator that runs may be deaf to a stop: it may just
// have begun.
const deafTime = 5 * time.Second

// askToStop has the run's coordinator stop it, and asks one that runs and does not
// answer again for a while.
func (c *cluster) askToStop(ctx context.Context, id string, now *sight) error {
	for began := time.Now(); ; {
		asked, err := c.session(ctx, id, now.pods)
		if err == nil {
			err = asked.Stop(ctx)
			asked.Close()
		}
		if err == nil || errors.Is(err, errNoCoordinator) || time.Since(began) > deafTime {
			return err
		}
		select {
		case <-time.After(poll / 2):
		case <-ctx.Done():
			return err
		}
		if now, err = c.look(ctx, id); err != nil {
			return err
		}
	}
}

// abandoned records a run whose coordinator had no time to stop it.
func (l *Launcher) abandoned(ctx context.Context, c *cluster, id string) error {
	now, err := c.look(ctx, id)
	if err != nil {
		return err
	}
	return c.decide(ctx, id, now, func(now *sight) error {
		if _, ok := now.recorded(); ok {
			return nil
		}
		p, err := now.placement()
		if err != nil {
			return err
		}
		state := launch.State{Status: now.derived(), Saved: -1, CheckpointsLost: true}
		if state.Phase == spec.Pending || state.Phase == spec.Running || state.Phase == spec.Lost {
			state.Phase, state.Cause, state.Message = spec.Stopped, spec.CauseRequest, "stopped by request, before it could save itself"
		}
		if p.Durable() {
			state.Saved, state.CheckpointsLost = 0, false
		}
		return c.record(ctx, now, state)
	})
}

// Remove removes the run's objects, the claim of its log among them, and what
// was collected of it.
func (l *Launcher) Remove(ctx context.Context, id string) error {
	c, err := l.cluster(ctx)
	if err != nil {
		return err
	}
	if err := c.accounted(ctx, id, func() error { return c.purge(ctx, id, "") }); err != nil {
		return err
	}
	return l.discard(id)
}
