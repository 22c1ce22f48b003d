package kubetest

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stages are what becomes of nodes and pods.
//
//go:embed stages.yaml
var stages []byte

// fakeNode is the label of nodes that kwok plays.
const fakeNode = "kubetest/node"

// Node is a node that runs nothing.
type Node struct {
	Name   string
	Labels map[string]string
	Taints []core.Taint
	// Allocatable is what pods may have of it, such as "nvidia.com/gpu": "8"; 8
	// CPUs, 32Gi of memory, and 110 pods, where it does not say otherwise.
	Allocatable map[string]string
}

// GPUNode is a node as the NVIDIA device plugin and its feature discovery make it,
// without taints.
func GPUNode(name string, gpus int) Node {
	return Node{
		Name:        name,
		Labels:      map[string]string{"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": strconv.Itoa(gpus)},
		Allocatable: map[string]string{"nvidia.com/gpu": strconv.Itoa(gpus), "cpu": "64", "memory": "512Gi"},
	}
}

// AddNodes adds nodes, which are ready when it returns, and removes them when the
// test ends.
func (c *Cluster) AddNodes(t testing.TB, nodes ...Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, n := range nodes {
			if err := c.Client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("remove the node %s: %v", n.Name, err)
			}
		}
	})
	if err := c.addNodes(ctx, nodes); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) addNodes(ctx context.Context, nodes []Node) error {
	for _, n := range nodes {
		wanted, err := n.object(c.Version, c.nodes.Add(1))
		if err != nil {
			return err
		}
		if _, err := c.Client.CoreV1().Nodes().Create(ctx, wanted, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("add the node %s: %w", n.Name, err)
		}
	}
	for _, n := range nodes {
		err := c.until(ctx, "the node "+n.Name+" is ready", func(ctx context.Context) (bool, error) {
			seen, err := c.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
			return err == nil && ready(seen), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ready tells whether a node's kubelet says that it is, and the controllers have
// heard of that: until then the node has taints.
func ready(n *core.Node) bool {
	for _, taint := range n.Spec.Taints {
		if taint.Key == core.TaintNodeNotReady || taint.Key == core.TaintNodeUnreachable {
			return false
		}
	}
	for _, condition := range n.Status.Conditions {
		if condition.Type == core.NodeReady {
			return condition.Status == core.ConditionTrue
		}
	}
	return false
}

// object is the node as it is added, of a version and with an address of its
// own, by its number.
func (n Node) object(version string, number uint32) (*core.Node, error) {
	allocatable := core.ResourceList{
		core.ResourceCPU: resource.MustParse("8"), core.ResourceMemory: resource.MustParse("32Gi"), core.ResourcePods: resource.MustParse("110"),
	}
	for name, amount := range n.Allocatable {
		quantity, err := resource.ParseQuantity(amount)
		if err != nil {
			return nil, fmt.Errorf("node %s: %s = %q: %w", n.Name, name, amount, err)
		}
		allocatable[core.ResourceName(name)] = quantity
	}
	labels := map[string]string{
		fakeNode: "true", core.LabelHostname: n.Name, core.LabelOSStable: "linux", core.LabelArchStable: "amd64",
	}
	for key, value := range n.Labels {
		labels[key] = value
	}
	return &core.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels},
		Spec:       core.NodeSpec{Taints: n.Taints},
		Status: core.NodeStatus{
			Capacity: allocatable, Allocatable: allocatable,
			Addresses: []core.NodeAddress{
				{Type: core.NodeInternalIP, Address: fmt.Sprintf("10.64.%d.%d", number>>8&255, number&255)}, {Type: core.NodeHostName, Address: n.Name},
			},
			NodeInfo: core.NodeSystemInfo{Architecture: "amd64", OperatingSystem: "linux", OSImage: "kubetest", KubeletVersion: version, ContainerRuntimeVersion: "containerd://2.2.0", KernelVersion: "6.1.0"},
		},
	}, nil
}
