package member

import (
	"context"

	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

// OutOfService is the taint by which Kubernetes frees the pods of a node whose
// machine is off, and the volumes that are attached to it, without its kubelet's
// word (kubernetes.io/docs/concepts/cluster-administration/node-shutdown).
var OutOfService = core.Taint{Key: core.TaintNodeOutOfService, Value: "nodeshutdown", Effect: core.TaintEffectNoExecute}

// IsOutOfService tells whether a node has that taint.
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
