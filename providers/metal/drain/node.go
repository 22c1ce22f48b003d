package drain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/metal/host"
)

// Annotation marks a node that stoke has cordoned, so that stoke uncordons it
// also when the run that did it was killed. Its value is a Mark.
const Annotation = "stokehq/cordoned"

// Mark names the process that cordoned a node.
type Mark struct {
	By    string    `json:"by"`
	Since time.Time `json:"since"`
}

func (m Mark) String() string {
	if m.By == "" {
		return "an earlier run of stoke"
	}
	return fmt.Sprintf("stoke (%s, %s)", m.By, m.Since.UTC().Format(time.RFC3339))
}

// Node is a machine as its cluster sees it.
type Node struct {
	Name     string
	Cluster  string // the same for all nodes of a cluster, and no other's
	Endpoint string // of the API server, as the machine or the connection calls it

	Ready        bool
	Cordoned     bool
	Mark         *Mark // stoke cordoned it and has not uncordoned it
	ControlPlane bool
	BootID       string // that the kubelet reported
	Pods         []Pod

	api *api
}

// Pod is a pod on a node.
type Pod struct {
	Namespace, Name string
	Kind            Kind
	GPUs            int64  // that it asked for; devices claimed otherwise count as one each
	Owner           string // such as "Job bert"; such as "Job bert"; "" for a pod without a controller that would make it again
	Data            bool   // has files of its own on the node's disk (emptyDir)
	Leaving         bool   // is being deleted

	uid   types.UID
	grace time.Duration
}

// Kind is what a pod is to whoever wants the machine.
type Kind uint8

const (
	System   Kind = iota // of a DaemonSet or static: it belongs to the machine
	Finished             // it has ended
	Foreign              // somebody's
	Training             // it has GPUs, or stoke made it
)

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// Look asks whether the machine is a Kubernetes node and what runs there. It
// returns nil if the machine is not one. That the API server does not answer is
// an error: what runs there is then not known.
func Look(ctx context.Context, m host.Machine) (*Node, error) { return lookAs(ctx, m, "stoke") }

// lookAs is Look with a User-Agent.
func lookAs(ctx context.Context, m host.Machine, agent string) (*Node, error) {
	id, err := readIdentity(ctx, m)
	if err != nil || id == nil {
		return nil, err
	}
	a, err := newAPI(m, id, agent)
	if err != nil {
		return nil, err
	}
	n := &Node{Name: id.name, Cluster: id.cluster, Endpoint: id.endpoint.String(), api: a}
	return n, n.look(ctx)
}

// LookBy reads a node over a connection to its cluster, as the connection's
// user: the machine itself is not used, and may be dead. It is nil where the
// cluster has no node of that name. All that is done with the node is done over
// this connection, which must not be closed before.
func LookBy(ctx context.Context, c *kubernetes.Client, name string) (*Node, error) {
	a, err := requestsAs(c, name)
	if err != nil {
		return nil, err
	}
	n := &Node{Name: name, Cluster: c.Authority(), Endpoint: c.Endpoint, api: a}
	if n.Cluster == "" {
		n.Cluster = c.ID
	}
	err = n.look(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return n, err
}

func (n *Node) look(ctx context.Context) error {
	node, err := n.api.node(ctx)
	if err != nil {
		return fmt.Errorf("look at node %s: %w", n.Name, err)
	}
	pods, err := n.api.pods(ctx)
	if err != nil {
		return fmt.Errorf("look at the pods of node %s: %w", n.Name, err)
	}
	n.take(node)
	n.Pods = n.Pods[:0:0]
	for _, p := range pods {
		n.Pods = append(n.Pods, pod(p))
	}
	slices.SortFunc(n.Pods, func(a, b Pod) int { return strings.Compare(a.String(), b.String()) })
	return nil
}

func (n *Node) take(node *core.Node) {
	n.Ready, n.Cordoned, n.BootID = kubernetes.Ready(node), node.Spec.Unschedulable, node.Status.NodeInfo.BootID
	_, n.ControlPlane = node.Labels["node-role.kubernetes.io/control-plane"]
	n.Mark = mark(node)
}

// mark is nil unless stoke cordoned the node and it still is.
func mark(node *core.Node) *Mark {
	text, marked := node.Annotations[Annotation]
	if !marked || !node.Spec.Unschedulable {
		return nil
	}
	var m Mark
	if len(text) > 1000 || json.Unmarshal([]byte(text), &m) != nil {
		m = Mark{}
	}
	m.By = strings.Join(strings.FieldsFunc(m.By, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }), " ")
	return &m
}

func pod(p core.Pod) Pod {
	out := Pod{Namespace: p.Namespace, Name: p.Name, uid: p.UID, Leaving: p.DeletionTimestamp != nil, GPUs: gpus(&p.Spec), grace: 30 * time.Second}
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		out.grace = time.Duration(*s) * time.Second
	}
	owner := metav1.GetControllerOf(&p)
	if owner != nil {
		out.Owner = owner.Kind + " " + owner.Name
	}
	for _, v := range p.Spec.Volumes {
		// Data in memory ends with the pod anyway: shared memory of a training.
		if v.EmptyDir != nil && v.EmptyDir.Medium != core.StorageMediumMemory {
			out.Data = true
		}
	}
	_, static := p.Annotations[core.MirrorPodAnnotationKey]
	switch {
	case static || owner != nil && owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, "apps/"):
		out.Kind = System
	case p.Status.Phase == core.PodSucceeded || p.Status.Phase == core.PodFailed:
		out.Kind = Finished
	case out.GPUs > 0 || p.Labels["app.kubernetes.io/managed-by"] == "stoke":
		out.Kind = Training
	default:
		out.Kind = Foreign
	}
	return out
}

// gpus counts the devices that a pod asked for, by extended resource or claim.
func gpus(spec *core.PodSpec) int64 {
	n := int64(len(spec.ResourceClaims))
	var first int64 // init containers come before the others and hand theirs on
	for _, c := range spec.InitContainers {
		first = max(first, gpusOf(c.Resources))
	}
	var together int64
	for _, c := range spec.Containers {
		together += gpusOf(c.Resources)
	}
	return n + max(first, together)
}

func gpusOf(r core.ResourceRequirements) int64 {
	var n int64
	for name, quantity := range r.Limits { // of extended resources, limits and requests are the same
		vendor, what, _ := strings.Cut(string(name), "/")
		if what == "gpu" || strings.HasPrefix(what, "gpu.") || vendor == "nvidia.com" && strings.HasPrefix(what, "mig-") {
			n += max(0, quantity.Value())
		}
	}
	return n
}

// Busy are the pods that stand in the way of whoever wants the machine.
func (n *Node) Busy() []Pod {
	return slices.DeleteFunc(slices.Clone(n.Pods), func(p Pod) bool { return p.Kind < Foreign })
}

func names(pods []Pod) string {
	var all []string
	for _, p := range pods {
		all = append(all, p.String())
	}
	return shortList(all)
}
