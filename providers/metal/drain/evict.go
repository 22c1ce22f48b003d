package drain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// try asks the API server whether everything that draining needs is allowed,
// without doing it: the Node authorizer, admission and the budgets answer as
// they will later.
func (n *Node) try(ctx context.Context, leaving []Pod) error {
	node, err := n.api.node(ctx)
	if err != nil {
		return err
	}
	err = n.api.patch(ctx, node.ResourceVersion, map[string]any{}, true, true)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%s: cordon and drain it by hand (kubectl drain %s), then apply again: %w", n.api.refuses("cordon"), n.Name, err)
	}
	for _, p := range leaving {
		if p.Leaving {
			continue
		}
		err := n.api.evict(ctx, p, true)
		var status *apierrors.StatusError
		switch {
		case apierrors.IsForbidden(err) && !ending(err):
			return fmt.Errorf("%s: drain it by hand (kubectl drain %s), then apply again: %w", n.api.refuses("evict "+p.String()), n.Name, err)
		case apierrors.IsInternalError(err) || errors.As(err, &status) && status.ErrStatus.Code == 500:
			return fmt.Errorf("%s cannot be evicted: %w", p, err) // by more than one budget
		}
		// A full budget may have room later, and a webhook may not support dry runs.
	}
	return nil
}

// ending reports that a namespace is being deleted.
func ending(err error) bool {
	return apierrors.HasStatusCause(err, core.NamespaceTerminatingCause)
}

// change changes the node's cordon, whatever else changes it at the same time.
// how returns false for no change.
func (n *Node) change(ctx context.Context, how func(*core.Node) (annotations map[string]any, unschedulable, yes bool)) error {
	for try := 1; ; try++ {
		node, err := n.api.node(ctx)
		if err != nil {
			return err
		}
		n.take(node)
		annotations, unschedulable, yes := how(node)
		if !yes {
			return nil
		}
		err = n.api.patch(ctx, node.ResourceVersion, annotations, unschedulable, false)
		if err == nil {
			n.Cordoned = unschedulable
			return nil
		}
		if !apierrors.IsConflict(err) || try == 20 {
			return err
		}
	}
}

// cordon keeps new pods away. ours is true if it was not cordoned before.
func (n *Node) cordon(ctx context.Context, by string) (ours bool, err error) {
	m := Mark{By: by, Since: time.Now().UTC().Truncate(time.Second)}
	text, err := json.Marshal(m)
	if err != nil {
		return false, err
	}
	err = n.change(ctx, func(node *core.Node) (map[string]any, bool, bool) {
		// A request may have been heard though its answer was not, and be repeated.
		ours = !node.Spec.Unschedulable || node.Annotations[Annotation] == string(text)
		return map[string]any{Annotation: string(text)}, true, !node.Spec.Unschedulable
	})
	if err != nil {
		return false, fmt.Errorf("cordon node %s: %w", n.Name, err)
	}
	if ours {
		n.Mark = &m
	}
	return ours, nil
}

// uncordon lets pods back, unless another user cordoned the node.
func (n *Node) uncordon(ctx context.Context) error {
	err := n.change(ctx, func(node *core.Node) (map[string]any, bool, bool) {
		_, marked := node.Annotations[Annotation]
		return map[string]any{Annotation: nil}, false, marked
	})
	if err != nil {
		return fmt.Errorf("uncordon node %s: %w", n.Name, err)
	}
	n.Mark = nil
	return nil
}

// evict has the pods leave and waits until they have. Each look at the node
// lists its pods again, so that nothing has to be remembered.
func (n *Node) evict(ctx context.Context, p Policy) error {
	limits := p.Limits.orDefaults()
	limit, began := limits.Drain, time.Now()
	answered := began
	late := lateness{after: limits.Overdue}
	for pause := limits.Pause; ; pause = min(2*pause, 5*limits.Pause) {
		if err := n.look(ctx); err != nil {
			if !passing(err) || time.Since(answered) > limits.Outage {
				return err
			}
			host.Step(ctx, "draining %s: the API server does not answer", n.Name)
			if err := host.Pause(ctx, pause); err != nil {
				return fmt.Errorf("drain node %s: %w", n.Name, err)
			}
			continue
		}
		answered = time.Now()
		left := n.Busy()
		if len(left) == 0 {
			return nil
		}
		if stays := p.stays(left); stays != "" {
			return errors.New(stays)
		}
		for _, pod := range left {
			limit = max(limit, pod.grace+2*time.Minute)
		}
		full, err := n.ask(ctx, left)
		if err != nil {
			return err
		}
		if err := n.insist(ctx, left, &late, p.Force); err != nil {
			return err
		}
		why := ""
		if full != nil {
			why = ": " + full.Error()
		}
		host.Step(ctx, "draining %s: %s left (%s)%s", n.Name, count(len(left), "pod"), names(left), why)
		if time.Since(began) > limit {
			if stuck := leaving(left); why == "" && len(stuck) > 0 {
				why = fmt.Sprintf(": %s asked to end and did not; look at the finalizers and at what the kubelet says (kubectl describe pod)", names(stuck))
			}
			return fmt.Errorf("%s did not leave node %s within %s%s", names(left), n.Name, limit, why)
		}
		if err := host.Pause(ctx, pause); err != nil {
			return fmt.Errorf("drain node %s: %w", n.Name, err)
		}
	}
}

// ask asks each pod to leave that has not been asked. full is the error of a
// budget that does not allow one now.
func (n *Node) ask(ctx context.Context, pods []Pod) (full, err error) {
	for _, pod := range pods {
		if pod.Leaving {
			continue
		}
		err := n.api.evict(ctx, pod, false)
		switch {
		case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err), ending(err):
		case apierrors.IsTooManyRequests(err):
			full = budget(err)
		case passing(err) && !apierrors.IsInternalError(err): // the next look finds out
			return full, nil
		default:
			return full, fmt.Errorf("evict %s: %w", pod, err)
		}
	}
	return full, nil
}

func leaving(pods []Pod) []Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return !p.Leaving })
}

// passing reports whether an API server is only unavailable or overloaded for a
// moment, as one whose machine restarts, and did not reject the request.
func passing(err error) bool {
	var said apierrors.APIStatus
	if !errors.As(err, &said) {
		return !ssh.IsPermanent(err) && !errors.Is(err, context.Canceled)
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

func budget(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) && status.ErrStatus.Details != nil {
		for _, cause := range status.ErrStatus.Details.Causes {
			if cause.Type == policy.DisruptionBudgetCause {
				return errors.New(strings.TrimPrefix(cause.Message, "The "))
			}
		}
	}
	return errors.New("the API server asks to wait")
}
