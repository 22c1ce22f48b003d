package pods

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stokehq/stoke/providers"
)

const (
	page     = 500 // objects that a list asks for at a time
	together = 16  // requests at a time
	// few is the limit for listing the pods of each object separately; for more,
	// one list of all pods of the namespace is cheaper.
	few = 8
)

var podResource = resource(schema.GroupKind{Kind: barePod})

// objectSet has the objects and pods of a set.
type objectSet struct {
	roots []*root
	pods  []*core.Pod // by namespace and name
	// owners are the objects that own pods, by the UIDs of those whose controller
	// reference leads to them; the root of a bare pod is under its own.
	owners map[types.UID]*root
}

// root is one of the set's objects.
type root struct {
	Object
	u        *unstructured.Unstructured
	selector string // of its pods' labels; "" is all
}

// find reads the objects and their pods: ErrNoRun where none of the objects is
// there.
func (s *Set) find(ctx context.Context) (*objectSet, error) {
	f := &objectSet{owners: make(map[types.UID]*root)}
	if err := s.findRoots(ctx, f); err != nil {
		return nil, err
	}
	if len(f.roots) == 0 {
		return nil, providers.ErrNoRun
	}
	if err := s.findBetween(ctx, f); err != nil {
		return nil, err
	}
	return f, s.findPods(ctx, f)
}

func (s *Set) findRoots(ctx context.Context, f *objectSet) error {
	all := make([]*unstructured.Unstructured, len(s.Objects))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for i, o := range s.Objects {
		if !HasPods(o.GroupKind) {
			continue
		}
		group.Go(func() error {
			u, err := s.Client.Dynamic.Resource(resource(o.GroupKind)).Namespace(o.Namespace).Get(inner, o.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read %s: %w", o, err)
			}
			all[i] = u
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, u := range all {
		if u == nil {
			continue
		}
		r := &root{Object: s.Objects[i], u: u, selector: selectorOf(u)}
		f.roots = append(f.roots, r)
		f.owners[u.GetUID()] = r
	}
	return nil
}

// selectorOf is the selector that an object finds its pods by.
func selectorOf(u *unstructured.Unstructured) string {
	content, ok, _ := unstructured.NestedMap(u.Object, "spec", "selector")
	if !ok {
		return ""
	}
	var of metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &of) != nil {
		return ""
	}
	selector, err := metav1.LabelSelectorAsSelector(&of)
	if err != nil {
		return ""
	}
	return selector.String()
}

// findBetween finds the objects between the set's objects and their pods.
func (s *Set) findBetween(ctx context.Context, f *objectSet) error {
	for _, between := range []struct {
		above string
		kind  schema.GroupKind
	}{{deployment, schema.GroupKind{Group: apps, Kind: replicaSet}}, {cronJob, schema.GroupKind{Group: batch, Kind: job}}} {
		for _, l := range f.lists(func(r *root) bool { return r.Kind == between.above }) {
			err := s.list(ctx, resource(between.kind), l, func(u *unstructured.Unstructured) {
				if r := f.owner(u); r != nil {
					f.owners[u.GetUID()] = r
				}
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Set) findPods(ctx context.Context, f *objectSet) error {
	seen := make(map[types.UID]bool)
	var broken error
	add := func(u *unstructured.Unstructured) {
		p, err := podOf(u)
		if err != nil {
			broken = err
		} else if !seen[p.UID] {
			seen[p.UID] = true
			f.pods = append(f.pods, p)
		}
	}
	for _, r := range f.roots {
		if r.Kind == barePod {
			add(r.u)
		}
	}
	for _, l := range f.lists(func(r *root) bool { return r.Kind != barePod }) {
		err := s.list(ctx, podResource, l, func(u *unstructured.Unstructured) {
			if f.owner(u) != nil {
				add(u)
			}
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(f.pods, func(a, b *core.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(s.role(a), s.role(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return broken
}

// owner is the root that something belongs to, nil for none.
func (f *objectSet) owner(o metav1.Object) *root {
	if r := f.owners[o.GetUID()]; r != nil {
		return r
	}
	if c := metav1.GetControllerOfNoCopy(o); c != nil {
		return f.owners[c.UID]
	}
	return nil
}

// listOf is what one list asks for.
type listOf struct{ namespace, selector string }

// lists returns the lists that together have all objects of some roots.
func (f *objectSet) lists(of func(*root) bool) (all []listOf) {
	var namespaces []string
	by := make(map[string][]string) // selectors by namespace
	for _, r := range f.roots {
		if !of(r) {
			continue
		}
		if _, ok := by[r.Namespace]; !ok {
			namespaces = append(namespaces, r.Namespace)
		}
		by[r.Namespace] = append(by[r.Namespace], r.selector)
	}
	for _, ns := range namespaces {
		selectors := by[ns]
		if len(selectors) > few || slices.Contains(selectors, "") {
			selectors = []string{""}
		}
		slices.Sort(selectors)
		for _, selector := range slices.Compact(selectors) {
			all = append(all, listOf{ns, selector})
		}
	}
	return all
}

// list reads a list in pages. If it expires between two pages, it is read
// again, as a whole.
func (s *Set) list(ctx context.Context, r schema.GroupVersionResource, of listOf, each func(*unstructured.Unstructured)) error {
	var all []unstructured.Unstructured
	o := metav1.ListOptions{LabelSelector: of.selector, Limit: page}
	for {
		l, err := s.Client.Dynamic.Resource(r).Namespace(of.namespace).List(ctx, o)
		if apierrors.IsResourceExpired(err) && o.Continue != "" {
			all, o.Continue, o.Limit = nil, "", 0
			continue
		}
		if err != nil {
			return fmt.Errorf("list %s in %s: %w", r.Resource, of.namespace, err)
		}
		all = append(all, l.Items...)
		if o.Continue = l.GetContinue(); o.Continue == "" {
			break
		}
	}
	for i := range all {
		each(&all[i])
	}
	return nil
}

// pod reads a pod anew; nil if it no longer exists, or was replaced by another
// one of its name.
func (s *Set) pod(ctx context.Context, p *core.Pod) (*core.Pod, error) {
	u, err := s.Client.Dynamic.Resource(podResource).Namespace(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the pod %s: %w", p.Name, err)
	case u.GetUID() != p.UID:
		return nil, nil
	}
	return podOf(u)
}

func podOf(u *unstructured.Unstructured) (*core.Pod, error) {
	p := new(core.Pod)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
		return nil, fmt.Errorf("read the pod %s: %w", u.GetName(), err)
	}
	return p, nil
}

// claims reads claims of pods, each once.
type claims struct {
	s   *Set
	had map[types.NamespacedName]*unstructured.Unstructured
}

var claimResource = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}

// get is nil for a claim that is not there, or may not be read.
func (c *claims) get(ctx context.Context, namespace, name string) *unstructured.Unstructured {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if u, ok := c.had[key]; ok {
		return u
	}
	u, err := c.s.Client.Dynamic.Resource(claimResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		u = nil
	}
	c.had[key] = u
	return u
}
