package member

import (
	"context"
	"fmt"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

// OutOfService is the taint that makes Kubernetes free the pods of a node whose
// machine is off, and their volumes, without an answer of its kubelet
// (kubernetes.io/docs/concepts/cluster-administration/node-shutdown).
var OutOfService = core.Taint{Key: core.TaintNodeOutOfService, Value: "nodeshutdown", Effect: core.TaintEffectNoExecute}

// IsOutOfService reports whether a node has that taint.
func (s *State) IsOutOfService() bool { return s.taint(OutOfService) != nil }

// SetOutOfService gives a node that taint, or takes it away.
func SetOutOfService(ctx context.Context, c *kubernetes.Client, name string, off bool) error {
	return change(ctx, c, name, func(s *State) map[string]any {
		if s.IsOutOfService() == off {
			return nil
		}
		var taints []core.Taint
		for _, t := range s.Node.Spec.Taints {
			if !t.MatchTaint(&OutOfService) {
				taints = append(taints, t)
			}
		}
		if off {
			taints = append(taints, OutOfService)
		}
		return map[string]any{"spec": map[string]any{"taints": taints}}
	})
}

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// Silent is for how long a node's kubelet has not renewed its lease, which it does
// every ten seconds; ok is false without a lease. now comes from a clock of the
// cluster: the clock of this computer may be wrong.
func Silent(ctx context.Context, c *kubernetes.Client, name string, now time.Time) (since time.Duration, ok bool, err error) {
	var l coordination.Lease
	switch err := get(ctx, c, leases, core.NamespaceNodeLease, name, &l); {
	case apierrors.IsNotFound(err):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("look at the lease of node %s: %w", name, err)
	case l.Spec.RenewTime == nil:
		return 0, false, nil
	}
	return now.Sub(l.Spec.RenewTime.Time), true, nil
}
