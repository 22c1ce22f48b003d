package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	helper "k8s.io/component-helpers/resource"

	"github.com/stokehq/stoke/providers"
)

// surveyPage is the number of objects in one answer: a survey keeps sums, and no more than
// one page of objects.
const surveyPage = 500

// Survey returns the nodes of the cluster, what pods have asked of each, and the pods that
// wait for a node with the scheduler's reason. runOf returns the id of the run that a pod
// belongs to. Without the right to list the pods of all namespaces it counts those of one.
func (c *Client) Survey(ctx context.Context, namespace string, runOf func(*core.Pod) string) (providers.RunSurvey, error) {
	out := providers.RunSurvey{Place: c.Name, ID: c.ID}
	if out.ID == "" {
		out.ID = c.Endpoint
	}
	byName := make(map[string]int)
	err := list(ctx, c, "/api/v1/nodes", "", func(n *core.NodeList) metav1.ListInterface {
		for i := range n.Items {
			byName[n.Items[i].Name] = len(out.Nodes)
			out.Nodes = append(out.Nodes, surveyed(&n.Items[i]))
		}
		return &n.ListMeta
	})
	switch {
	case apierrors.IsForbidden(err):
		out.Partly = "The nodes' capacity is not known: the connection has no right to list nodes."
	case err != nil:
		return out, fmt.Errorf("list the nodes of %s: %w", c.Name, err)
	}
	take := func(l *core.PodList) metav1.ListInterface {
		for i := range l.Items {
			addPod(&out, byName, &l.Items[i], runOf)
		}
		return &l.ListMeta
	}
	const living = "status.phase!=Succeeded,status.phase!=Failed"
	err = list(ctx, c, "/api/v1/pods", living, take)
	if apierrors.IsForbidden(err) && namespace != "" {
		out.Partly = strings.TrimSpace(out.Partly + " Only pods of the namespace " + namespace +
			" are counted: the connection has no right to list others.")
		err = list(ctx, c, "/api/v1/namespaces/"+namespace+"/pods", living, take)
	}
	if err != nil {
		return out, fmt.Errorf("list the pods of %s: %w", c.Name, err)
	}
	slices.SortFunc(out.Nodes, func(a, b providers.RunNode) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(out.Pending, func(a, b providers.RunTenant) int { return a.Since.Compare(b.Since) })
	return out, nil
}

// list reads all pages of a list.
func list[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, c *Client, path, fields string, take func(P) metav1.ListInterface) error {
	rest, err := c.CoreREST()
	if err != nil {
		return err
	}
	for next := ""; ; {
		page := P(new(T))
		asks := rest.Get().AbsPath(path).Param("limit", strconv.Itoa(surveyPage))
		if next != "" {
			asks.Param("continue", next)
		}
		if fields != "" {
			asks.Param("fieldSelector", fields)
		}
		if err := asks.Do(ctx).Into(page); err != nil {
			return err
		}
		if next = take(page).GetContinue(); next == "" {
			return nil
		}
	}
}

// surveyed returns what a node has for pods.
func surveyed(n *core.Node) providers.RunNode {
	has := n.Status.Allocatable
	out := providers.RunNode{
		Name: n.Name, Phase: "ready", CPU: float64(has.Cpu().MilliValue()) / 1000, Memory: has.Memory().Value(), GPUs: gpus(has),
		GPUModel: n.Labels["nvidia.com/gpu.product"],
	}
	if out.GPUModel == "" {
		out.GPUModel = n.Labels["cloud.google.com/gke-accelerator"]
	}
	switch {
	case !Ready(n):
		out.Phase = "not ready"
	case n.Spec.Unschedulable:
		out.Phase = "cordoned"
	}
	return out
}

// gpus returns the sum of the resources that are called …/gpu.
func gpus(of core.ResourceList) (sum int64) {
	for name, q := range of {
		if strings.HasSuffix(string(name), "/gpu") {
			sum += q.Value()
		}
	}
	return sum
}

// addPod adds a pod to its node, or to those that wait.
func addPod(out *providers.RunSurvey, byName map[string]int, p *core.Pod, runOf func(*core.Pod) string) {
	asks := helper.PodRequests(p, helper.PodResourcesOptions{})
	t := providers.RunTenant{
		Name: p.Namespace + "/" + p.Name, CPU: float64(asks.Cpu().MilliValue()) / 1000, Memory: asks.Memory().Value(), GPUs: gpus(asks),
		Since: p.CreationTimestamp.Time,
	}
	if runOf != nil {
		t.Run = runOf(p)
	}
	if p.Spec.NodeName == "" {
		for _, is := range p.Status.Conditions {
			if is.Type == core.PodScheduled && is.Status == core.ConditionFalse {
				if t.Reason = is.Message; t.Reason == "" {
					t.Reason = is.Reason
				}
			}
		}
		out.Pending = append(out.Pending, t)
		return
	}
	at, ok := byName[p.Spec.NodeName]
	if !ok { // the nodes may not be listed
		at = len(out.Nodes)
		byName[p.Spec.NodeName] = at
		out.Nodes = append(out.Nodes, providers.RunNode{Name: p.Spec.NodeName})
	}
	out.Nodes[at].Tenants = append(out.Nodes[at].Tenants, t)
}
