package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

// Annotation marks a node that a resource of stoke looks after. Its value is a
// Mark.
const Annotation = "stokehq/node"

// Mark names the owner of a node, and the parts that it owns.
type Mark struct {
	ID string `json:"id"` // the resource's
	// Labels are the labels that were set, with their former values: nil for none.
	Labels map[string]*string `json:"labels,omitempty"`
	// Taints are the taints that were set, as KEY:EFFECT.
	Taints []string `json:"taints,omitempty"`
}

// Spec is the declaration of a node.
type Spec struct {
	Name string
	ID   string // the resource's, for the Mark
	// Joined reports that the resource added the node: there are no former values
	// to restore.
	Joined bool
	Labels map[string]string
	Taints []core.Taint
	// GPUs are how many of each resource pods can have of it, such as nvidia.com/gpu.
	GPUs map[string]int64
}

// State is a node as the API has it.
type State struct {
	Node *core.Node
	Mark Mark // ID is "" without a mark
	// Devices are what NVIDIA's DRA driver offers on the node, by the names that its
	// device plugin has for the same.
	Devices map[string]int64
}

// Ready reports whether the node's kubelet can run pods.
func (s *State) Ready() bool { return kubernetes.Ready(s.Node) }

// Difference is a differing fact of a node.
type Difference struct {
	What string // label or taint
	Key  string // the label's; KEY:EFFECT of a taint
	Have string // "" for nothing
	Want string
}

var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// Observe looks at a node; nil where the cluster has none of that name.
func Observe(ctx context.Context, c *kubernetes.Client, name string) (*State, error) {
	node := &core.Node{}
	switch err := get(ctx, c, nodes, "", name, node); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look at node %s: %w", name, err)
	}
	s := &State{Node: node, Mark: readMark(node)}
	var err error
	s.Devices, err = devices(ctx, c, name)
	return s, err
}

// get reads an object as its type has it.
func get(ctx context.Context, c *kubernetes.Client, of schema.GroupVersionResource, namespace, name string, into any) error {
	u, err := c.Dynamic.Resource(of).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

// readMark reads what Apply has noted. An unreadable mark counts as none.
func readMark(node *core.Node) Mark {
	var m Mark
	if json.Unmarshal([]byte(node.Annotations[Annotation]), &m) != nil {
		return Mark{}
	}
	return m
}

// Diff returns the differences, labels first.
func Diff(want Spec, have *State) []Difference {
	var all []Difference
	for _, key := range slices.Sorted(maps.Keys(want.Labels)) {
		if is, there := have.Node.Labels[key]; !there || is != want.Labels[key] {
			all = append(all, Difference{"label", key, is, want.Labels[key]})
		}
	}
	for _, t := range want.Taints {
		is := have.taint(t)
		if is == nil || is.Value != t.Value {
			d := Difference{What: "taint", Key: taintKey(t), Want: t.ToString()}
			if is != nil {
				d.Have = is.ToString()
			}
			all = append(all, d)
		}
	}
	return all
}

// taint is the node's of the same key and effect, nil where it has none.
func (s *State) taint(t core.Taint) *core.Taint {
	for i := range s.Node.Spec.Taints {
		if s.Node.Spec.Taints[i].MatchTaint(&t) {
			return &s.Node.Spec.Taints[i]
		}
	}
	return nil
}

func taintKey(t core.Taint) string { return t.Key + ":" + string(t.Effect) }

// most is how often a change is retried after a conflict.
const most = 10

// change changes a node, and retries after a conflict.
func change(ctx context.Context, c *kubernetes.Client, name string, edit func(*State) map[string]any) error {
	var err error
	for range most {
		s := &State{Node: &core.Node{}}
		if err = get(ctx, c, nodes, "", name, s.Node); err != nil {
			break
		}
		s.Mark = readMark(s.Node)
		patch := edit(s)
		if patch == nil {
			return nil
		}
		metadata, _ := patch["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
			patch["metadata"] = metadata
		}
		metadata["resourceVersion"], metadata["uid"] = s.Node.ResourceVersion, s.Node.UID
		var text []byte
		if text, err = json.Marshal(patch); err != nil {
			break
		}
		_, err = c.Dynamic.Resource(nodes).Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: "stoke"})
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("change node %s: %w", name, err)
	}
	return nil
}

// Apply gives a node its labels and taints, and takes back labels and taints
// that an earlier Apply has set and that are no longer declared.
func Apply(ctx context.Context, c *kubernetes.Client, want Spec) error {
	return change(ctx, c, want.Name, func(s *State) map[string]any { return s.patch(want) })
}

// patch is what makes the node what is wanted; nil where it is that already.
func (s *State) patch(want Spec) map[string]any {
	mark := Mark{ID: want.ID, Labels: map[string]*string{}}
	labels := map[string]any{}
	for key, was := range s.Mark.Labels {
		if _, wanted := want.Labels[key]; wanted {
			mark.Labels[key] = was
		} else if was == nil {
			labels[key] = nil
		} else {
			labels[key] = *was
		}
	}
	for key, value := range want.Labels {
		is, there := s.Node.Labels[key]
		if _, noted := mark.Labels[key]; !noted {
			mark.Labels[key] = nil
			if there && !want.Joined {
				mark.Labels[key] = &is
			}
		}
		if is != value || !there {
			labels[key] = value
		}
	}
	taints := s.taints(want, &mark)
	patch := map[string]any{}
	metadata := map[string]any{}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	if text := mark.text(); text != s.Node.Annotations[Annotation] {
		metadata["annotations"] = map[string]any{Annotation: text}
	}
	if !slices.Equal(printed(taints), printed(s.Node.Spec.Taints)) {
		patch["spec"] = map[string]any{"taints": taints}
	}
	if len(metadata) > 0 {
		patch["metadata"] = metadata
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}

// taints returns the node's planned taints, and notes in mark which are ours.
func (s *State) taints(want Spec, mark *Mark) []core.Taint {
	wanted := map[string]bool{}
	for _, t := range want.Taints {
		wanted[taintKey(t)] = true
		if s.taint(t) == nil || want.Joined || slices.Contains(s.Mark.Taints, taintKey(t)) {
			mark.Taints = append(mark.Taints, taintKey(t))
		}
	}
	slices.Sort(mark.Taints)
	var all []core.Taint
	for _, t := range s.Node.Spec.Taints {
		if !wanted[taintKey(t)] && !slices.Contains(s.Mark.Taints, taintKey(t)) {
			all = append(all, t)
		}
	}
	for _, t := range want.Taints {
		if is := s.taint(t); is != nil && is.Value == t.Value {
			t = *is // with the time that it was added
		}
		all = append(all, t)
	}
	return all
}

// printed are taints in an order of their own, for comparing.
func printed(taints []core.Taint) []string {
	var all []string
	for _, t := range taints {
		all = append(all, t.ToString())
	}
	slices.Sort(all)
	return all
}

func (m Mark) text() string {
	b, err := json.Marshal(m)
	if err != nil { // strings alone
		panic(err)
	}
	return string(b)
}

// Release takes back what Apply has set on a node that stays in its cluster. A
// node that was deleted, or now belongs to another resource, is left as it is.
func Release(ctx context.Context, c *kubernetes.Client, name, id string) error {
	err := change(ctx, c, name, func(s *State) map[string]any {
		if s.Mark.ID != id {
			return nil
		}
		patch := s.patch(Spec{Name: name, ID: id})
		if patch == nil {
			patch = map[string]any{}
		}
		metadata, _ := patch["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
			patch["metadata"] = metadata
		}
		metadata["annotations"] = map[string]any{Annotation: nil}
		return patch
	})
	if apierrors.IsNotFound(errors.Unwrap(err)) {
		return nil
	}
	return err
}

// Delete removes the observed node; one of the same name that has come since
// stays.
func Delete(ctx context.Context, c *kubernetes.Client, s *State) error {
	uid := s.Node.UID
	err := c.Dynamic.Resource(nodes).Delete(ctx, s.Node.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete node %s: %w", s.Node.Name, err)
	}
	return nil
}

// listEach reads all objects of a kind that a field selector names.
func listEach[T any](ctx context.Context, c *kubernetes.Client, of schema.GroupVersionResource, fields string, do func(*T)) error {
	options := metav1.ListOptions{FieldSelector: fields, Limit: 500}
	for {
		list, err := c.Dynamic.Resource(of).List(ctx, options)
		if err != nil {
			return err
		}
		for _, u := range list.Items {
			into := new(T)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
				return fmt.Errorf("%s %s: %w", strings.TrimSuffix(of.Resource, "s"), name(u), err)
			}
			do(into)
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func name(u unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetName()
	}
	return u.GetNamespace() + "/" + u.GetName()
}
