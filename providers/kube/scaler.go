package kube

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// replicasField is the field as conflicts name it.
const replicasField = ".spec.replicas"

// leaveToScaler takes the number of replicas out of u where something sets it
// through the subresource scale. free reports that the autoscaler which did so
// is gone: then they are for whoever declares them.
func leaveToScaler(ctx context.Context, c *live.Cluster, u, current *unstructured.Unstructured) (left, free bool, err error) {
	by := object.TakenBy(current, "scale", "spec", "replicas")
	spec, ok := u.Object["spec"].(map[string]any)
	if !ok || by == "" || strings.HasPrefix(by, "kubectl") || by == live.Manager {
		return false, false, nil
	}
	if _, ok := spec["replicas"]; !ok {
		return false, false, nil
	}
	if by == live.ControllerManager { // for a HorizontalPodAutoscaler
		scaled, err := c.Autoscaled(ctx, object.KeyOf(current))
		if err != nil || !scaled {
			return false, err == nil, err
		}
	}
	delete(spec, "replicas")
	return true, false, nil
}

// withoutField leaves out conflicts about a field.
func withoutField(conflicts []live.Conflict, field string) []live.Conflict {
	return slices.DeleteFunc(slices.Clone(conflicts), func(c live.Conflict) bool { return c.Field == field })
}
