package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stokehq/stoke/providers/train/launch"
)

// Several stokes may manage one run: another terminal, a pipeline. Each write
// to a run's ConfigMap follows from an observed version, and is made only if
// that version is still current; else stoke reads and decides again.

// tries bounds how often a decision is made anew.
const tries = 5

// decide carries out a decision on an observed run. On a conflict, because
// another process has changed the run's ConfigMap, it reads the run and decides
// again.
func (c *cluster) decide(ctx context.Context, id string, s *sight, do func(*sight) error) error {
	for n := 1; ; n++ {
		err := do(s)
		if !apierrors.IsConflict(err) {
			return err
		}
		if n == tries {
			return fmt.Errorf("another process keeps changing the run: %w", err)
		}
		if s, err = c.look(ctx, id); err != nil {
			return err
		}
	}
}

// set changes entries of the run's ConfigMap, where nil removes one, and its
// annotations: a conflict where it is not as it was read any more.
func (c *cluster) set(ctx context.Context, is *core.ConfigMap, entries map[string]*string, annotations map[string]string) error {
	type metadata struct {
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations,omitempty"` // a null would remove all of them
	}
	text, err := json.Marshal(struct {
		Metadata metadata           `json:"metadata"`
		Data     map[string]*string `json:"data,omitempty"`
	}{metadata{is.ResourceVersion, annotations}, entries})
	if err != nil {
		return err
	}
	return c.patch(ctx, configMaps, is.Name, text)
}

// record saves the observed status, for readers when the coordinator is gone.
func (c *cluster) record(ctx context.Context, s *sight, state launch.State) error {
	state.Roles = nil
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	value := string(text)
	return c.set(ctx, &s.config, map[string]*string{keyStatus: &value}, nil)
}

// suspend keeps the Jobs of a run whose end was recorded from starting pods
// that still wait. The Jobs of a resumed run, which have the same names, are
// left as they are; a caller without the right to suspend them is not an error.
func (c *cluster) suspend(ctx context.Context, s *sight) error {
	for _, j := range s.jobs {
		if j.Spec.Suspend != nil && *j.Spec.Suspend || !s.waits(&j) {
			continue
		}
		err := c.patch(ctx, jobs, j.Name, fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"suspend":true}}`, j.UID))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("suspend the Job %s of the ended run: %w", j.Name, err)
		}
	}
	return nil
}

// waits reports whether a Job has pods that are not created or not running yet.
func (s *sight) waits(j *batch.Job) bool {
	if condition(j, batch.JobComplete) != nil || condition(j, batch.JobFailed) != nil {
		return false
	}
	pending := func(p core.Pod) bool {
		return p.Status.Phase == core.PodPending && job(s.config.Name, p.Labels[roleLabel]) == j.Name
	}
	return len(s.bare(j)) > 0 || slices.ContainsFunc(s.pods, pending)
}

// errResumed: another process has resumed the run since it was read.
var errResumed = errors.New("another process has resumed the run; plan again")

// turn counts how often the run was taken, to be resumed.
func (s *sight) turn() int {
	n, _ := strconv.Atoi(s.config.Annotations[turnAnnotation]) // none is 0
	return n
}

// take reserves the right to resume the run at this turn, and returns the next
// turn. Other processes can then no longer record the status that they observed
// before.
func (c *cluster) take(ctx context.Context, id string, turn int) (int, error) {
	s, err := c.look(ctx, id)
	if err != nil {
		return 0, err
	}
	return turn + 1, c.decide(ctx, id, s, func(s *sight) error {
		if s.turn() != turn {
			return errResumed
		}
		if state, ok := s.recorded(); ok && !launch.Idle(state.Phase) {
			return fmt.Errorf("the run has ended since: it %s; plan again", state.Phase)
		}
		return c.set(ctx, &s.config, nil, turnAnnotations(turn+1))
	})
}

// writeResumed writes down what a run that was taken is from now on. What was recorded
// of it is about what was.
func (c *cluster) writeResumed(ctx context.Context, l *layout, turn int) error {
	s, err := c.look(ctx, l.id)
	if err != nil {
		return err
	}
	return c.decide(ctx, l.id, s, func(s *sight) error {
		if s.turn() != turn {
			return errResumed
		}
		return c.write(ctx, &s.config, l, turnAnnotations(turn+1))
	})
}

func turnAnnotations(turn int) map[string]string {
	return map[string]string{turnAnnotation: strconv.Itoa(turn)}
}
