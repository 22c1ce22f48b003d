package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// nodes are those of a cluster, read once.
type nodes struct {
	mu   sync.Mutex
	read bool
	all  []core.Node
	err  error
}

// Nodes lists the nodes, in pages, once for a Cluster.
func (c *Cluster) Nodes(ctx context.Context) ([]core.Node, error) {
	n := &c.nodes
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.read {
		n.all, n.err = c.readNodes(ctx)
		n.read = ctx.Err() == nil // else it is this caller who gave up
	}
	return n.all, n.err
}

func (c *Cluster) readNodes(ctx context.Context) ([]core.Node, error) {
	var all []core.Node
	options := metav1.ListOptions{Limit: page}
	for {
		found, err := c.Dynamic.Resource(core.SchemeGroupVersion.WithResource("nodes")).List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			all, options.Continue = nil, "" // it took too long: from the start
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range found.Items {
			var n core.Node
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[i].Object, &n); err != nil {
				return nil, fmt.Errorf("read node %s: %w", found.Items[i].GetName(), err)
			}
			all = append(all, n)
		}
		if options.Continue = found.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}

// Grows says what adds nodes to the cluster that it does not have now; "" where
// nothing does. Where that may not be read, clusters whose nodes are a cloud's are
// taken to grow.
func (c *Cluster) Grows(ctx context.Context) (string, error) {
	karpenter := schema.GroupVersionKind{Group: "karpenter.sh", Kind: "NodePool"}
	if _, _, err := c.Mapping(karpenter); err == nil {
		return "Karpenter", nil
	} else if _, none := err.(*NoKindError); !none {
		return "", err
	}
	_, err := c.Dynamic.Resource(core.SchemeGroupVersion.WithResource("configmaps")).Namespace("kube-system").Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
	switch {
	case err == nil:
		return "an autoscaler", nil
	case apierrors.IsNotFound(err):
		return "", nil
	case !apierrors.IsForbidden(err):
		return "", err
	}
	all, err := c.Nodes(ctx)
	if slices.ContainsFunc(all, func(n core.Node) bool {
		cloud, _, _ := strings.Cut(n.Spec.ProviderID, "://")
		return slices.Contains([]string{"gce", "aws", "azure", "digitalocean", "openstack", "oci", "hcloud", "linode", "ibm", "vsphere"}, cloud)
	}) {
		return "an autoscaler, which may be there,", nil
	}
	return "", err
}
