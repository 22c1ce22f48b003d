package member

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// coreDNS is what kubeadm calls the cluster's DNS.
const coreDNS = "coredns"

// KeptFromDNS returns the taints that the cluster's DNS does not tolerate: its pods
// would find no node where every node has one of them. A cluster whose DNS is
// another one has none.
func KeptFromDNS(ctx context.Context, c *kubernetes.Client, taints []core.Taint) ([]core.Taint, error) {
	if len(taints) == 0 {
		return nil, nil
	}
	var d apps.Deployment
	switch err := get(ctx, c, deployments, "kube-system", coreDNS, &d); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look at the Deployment kube-system/%s: %w", coreDNS, err)
	}
	var all []core.Taint
	for _, t := range taints {
		if !tolerated(d.Spec.Template.Spec.Tolerations, t) {
			all = append(all, t)
		}
	}
	return all, nil
}

func tolerated(by []core.Toleration, t core.Taint) bool {
	for _, is := range by {
		key := is.Key == t.Key || is.Key == "" && is.Operator == core.TolerationOpExists
		if key && (is.Effect == "" || is.Effect == t.Effect) && (is.Operator == core.TolerationOpExists || is.Value == t.Value) {
			return true
		}
	}
	return false
}

// TolerateInDNS has the cluster's DNS tolerate taints that keep it away. Its controller
// writes to it, too, so that a patch may come too late.
func TolerateInDNS(ctx context.Context, c *kubernetes.Client, taints []core.Taint) error {
	err := retry.RetryOnConflict(conflicts, func() error { return tolerateInDNS(ctx, c, taints) })
	if err != nil {
		return fmt.Errorf("have the cluster's DNS tolerate %s: %w", taints[0].ToString(), err)
	}
	return nil
}

// conflicts is how often, and how far apart, a change is tried that others get ahead of.
var conflicts = wait.Backoff{Steps: 10, Duration: 50 * time.Millisecond, Factor: 1.5, Jitter: 0.2}

func tolerateInDNS(ctx context.Context, c *kubernetes.Client, taints []core.Taint) error {
	kept, err := KeptFromDNS(ctx, c, taints)
	if err != nil || len(kept) == 0 {
		return err
	}
	var d apps.Deployment
	if err := get(ctx, c, deployments, "kube-system", coreDNS, &d); err != nil {
		return fmt.Errorf("look at the Deployment kube-system/%s: %w", coreDNS, err)
	}
	all := d.Spec.Template.Spec.Tolerations
	for _, t := range kept {
		all = append(all, core.Toleration{Key: t.Key, Operator: core.TolerationOpExists, Effect: t.Effect})
	}
	// A list of tolerations is one value: a patch based on an older version would
	// undo another client's additions.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": d.ResourceVersion},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"tolerations": all}}},
	})
	if err != nil {
		return err
	}
	_, err = c.Dynamic.Resource(deployments).Namespace("kube-system").Patch(ctx, coreDNS, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "stoke"})
	return err
}
