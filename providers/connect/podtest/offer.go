//go:build e2e && linux

package podtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Offer has a node offer so much of an extended resource, such as
// "nvidia.com/gpu". Pods that ask for it are counted, and get nothing. It waits
// until the kubelet says so, and is to be said again after a power cut.
func (n *Node) Offer(t testing.TB, resource string, amount int64) {
	t.Helper()
	path := "/status/capacity/" + strings.ReplaceAll(resource, "/", "~1")
	patch := fmt.Appendf(nil, `[{"op": "add", "path": %q, "value": "%d"}]`, path, amount)
	if _, err := n.cluster.Client.CoreV1().Nodes().Patch(t.Context(), n.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	n.cluster.Wait(t, n.Name+" offers "+resource, func(ctx context.Context) (bool, error) {
		seen, err := n.cluster.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		offered := seen.Status.Allocatable[core.ResourceName(resource)]
		return offered.Value() == amount, nil
	})
}
