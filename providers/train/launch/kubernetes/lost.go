package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	connected "github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/train/launch"
)

// A pod that is asked to leave has left when its kubelet says so. A Job with
// rules for failures waits for that before it replaces the pod: for ever, where
// the machine is off and nobody deletes its Node. To delete the pod by force does
// not help: it has not failed, and stays until its Job has counted it.

// late is for how long, by the clock of this machine, the word of a pod's node is
// waited for after all the time that the pod had to end. Should the pod run after
// all, the run's term fences it off.
const late = 15 * time.Second

var _ launch.Releaser = (*Launcher)(nil)

// Release has the pods that lost nodes hold fail, as the cluster does once their
// Node is deleted, and renews indices that were asked to leave again and again.
func (l *Launcher) Release(ctx context.Context, id string) error {
	c, err := l.cluster(ctx)
	if err != nil {
		return err
	}
	s, err := c.look(ctx, id)
	if err != nil {
		return err
	}
	return c.release(ctx, c.heldPods(ctx, s), s.delayed())
}

// release has held pods fail, and renews the indices of delayed pods.
func (c *cluster) release(ctx context.Context, held, delayed []core.Pod) error {
	var errs []error
	for _, p := range held {
		if err := failPod(ctx, c, &p); err != nil {
			errs = append(errs, fmt.Errorf("pod %s of the node %s, which does not answer: %w", p.Name, p.Spec.NodeName, err))
		}
	}
	for _, p := range delayed {
		c.renew(ctx, &p) //nolint:errcheck // it comes back all the same, later, and the status says when
	}
	return errors.Join(errs...)
}

// heldPods are the pods that ought to have ended by now, and whose nodes do not
// answer. A node that may not be looked at is taken to answer.
func (c *cluster) heldPods(ctx context.Context, s *sight) []core.Pod {
	lost := make(map[string]bool)
	var all []core.Pod
	for _, p := range s.pods {
		on := p.Spec.NodeName
		if on == "" || !overdue(&p, time.Now()) {
			continue
		}
		if _, known := lost[on]; !known {
			var n core.Node
			there, err := c.get(ctx, nodes, on, &n)
			lost[on] = err == nil && there && !connected.Ready(&n)
		}
		if lost[on] {
			all = append(all, p)
		}
	}
	return all
}

// failPod reports in the place of a kubelet that its pod has ended, at no cost for the
// index of the pod, and removes it.
func failPod(ctx context.Context, c *cluster, p *core.Pod) error {
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.UID}, // another one of its name is left alone
		"status": map[string]any{"phase": core.PodFailed, "conditions": []core.PodCondition{{
			Type: core.DisruptionTarget, Status: core.ConditionTrue, Reason: "NodeLost", Message: "stoke: the node does not answer", LastTransitionTime: metav1.Now(),
		}}},
	})
	if err != nil {
		return err
	}
	_, err = c.client(pods).Patch(ctx, p.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{FieldManager: manager}, "status")
	if err == nil {
		err = c.client(pods).Delete(ctx, p.Name, connected.Unconfirmed(p.UID))
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // its node has come back, or somebody else was first
	}
	return err
}

// hold marks the roles whose pods are held. Where there is a pod beside it
// already, as of a coordinator, the role is what that is.
func (s *sight) hold(state *launch.State, held []core.Pod) {
	newest := make(map[string]string)
	for _, p := range byAge(s.pods) {
		newest[roleName(&p)] = p.Name
	}
	for _, p := range held {
		name := roleName(&p)
		state.HeldRoles = append(state.HeldRoles, name)
		for i, r := range state.Roles {
			if r.Name == name && newest[name] == p.Name {
				state.Roles[i].Phase = launch.Waiting
				state.Roles[i].Reason = fmt.Sprintf("its node %s does not answer, and holds its place", p.Spec.NodeName)
			}
		}
	}
}
