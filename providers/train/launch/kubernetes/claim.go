package kubernetes

import (
	"context"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// makeClaim creates the claim that the coordinator's pod needs, unless it
// exists. It waits for a claim that is being deleted, and replaces a claim that
// has lost its volume. No pod of the run uses it at that time.
func (c *cluster) makeClaim(ctx context.Context, l *layout) error {
	if l.Storage == "" {
		return nil
	}
	for {
		_, err := c.create(ctx, claims, l.claim(), nil)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		var is core.PersistentVolumeClaim
		there, err := c.get(ctx, claims, l.id, &is)
		switch {
		case err != nil:
			return err
		case !there:
			continue // it went meanwhile
		case is.Labels[runLabel] != l.id:
			return fmt.Errorf("claim %s/%s: %w: the claim belongs to another user or program: move its data elsewhere and delete it", c.namespace, l.id, launch.ErrForeign)
		case is.DeletionTimestamp == nil && is.Status.Phase != core.ClaimLost:
			return nil
		case is.DeletionTimestamp == nil:
			if err := c.delete(ctx, claims, is.Name, is.UID); err != nil {
				return err
			}
		}
		select {
		case <-time.After(poll / 3):
		case <-ctx.Done():
			return fmt.Errorf("claim %s/%s is being deleted, and is not gone yet: %w", c.namespace, l.id, context.Cause(ctx))
		}
	}
}

// claimLoss returns what has happened to the claim of a run; "" if it is well
// or cannot be read. going reports that the claim is being deleted and a pod
// still uses it.
func (c *cluster) claimLoss(ctx context.Context, id string, p launch.Placement) (why string, going bool) {
	if p.Storage == "" {
		return "", false
	}
	var is core.PersistentVolumeClaim
	switch there, err := c.get(ctx, claims, id, &is); {
	case err != nil:
		return "", false
	case !there:
		return fmt.Sprintf("the claim %s is gone", id), false
	case is.DeletionTimestamp != nil:
		return fmt.Sprintf("the claim %s is being deleted", id), true
	case is.Status.Phase == core.ClaimLost:
		return fmt.Sprintf("the claim %s has lost its volume", id), false
	}
	return "", false
}

// withoutClaim has the status of a run say that its claim is lost. While its
// coordinator runs it goes on: what it has saved on the claim goes with that
// pod. Without one, nobody can go on from there; nor where it has to be stopped
// for another reason.
func (s *sight) withoutClaim(state *launch.State, why string, going bool, p launch.Placement) {
	switch {
	case why == "" || state.Phase == spec.Succeeded || state.Phase == spec.Failed:
	case (running(s.pods) != nil || going && s.isPlaced(coordinator)) && !launch.Idle(state.Phase):
		if p.Checkpoints != "" {
			state.RestartReason = why
			return
		}
		state.DiesWithCoordinator = true
		state.Warnings = append(state.Warnings, why+": the run continues, but its checkpoints are lost with its coordinator's pod; checkpoint.place would keep them")
	default:
		if state.Phase == spec.Pending {
			state.Phase, state.Message = spec.Lost, why
		}
		state.CannotContinue = why
		if p.Checkpoints == "" {
			state.Saved, state.CheckpointsLost = -1, true
		}
	}
}

// isPlaced tells whether a pod of a role is on a node and has not ended.
func (s *sight) isPlaced(role string) bool {
	for _, p := range s.pods {
		if p.Labels[roleLabel] == role && p.Spec.NodeName != "" && p.Status.Phase != core.PodFailed && p.Status.Phase != core.PodSucceeded {
			return true
		}
	}
	return false
}
