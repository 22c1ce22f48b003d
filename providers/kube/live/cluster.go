package live

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agext/levenshtein"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/object"
)

const (
	// Manager is our field manager.
	Manager = "stoke"
	// Mark is the label of every object that stoke made. Its value is the
	// resource's id, by which a create that was cut off finds its objects again.
	Mark = "stoke.dev/managed"
	// page is how many objects a list asks for at a time.
	page = 500
	// fewMarks is the number of resources whose objects of a kind are listed by their
	// marks. The objects of all further resources share one list, with every other object
	// of the kind that any stoke has marked.
	fewMarks = 8
	// gathering is how long the first list of a kind waits for resources that are read
	// at the same time, since the last one came: the engine reads ten at once.
	gathering = 3 * time.Millisecond
)

// Cluster is a cluster in one phase (a plan, an apply): lists are read once.
type Cluster struct {
	*kubernetes.Client

	mu      sync.Mutex
	lists   map[listed]*list
	marks   map[schema.GroupVersionKind]*markLists
	nodes   nodes
	defined map[schema.GroupKind]time.Time // when the CRDs of kinds were applied in this phase
}

type listOf struct {
	schema.GroupVersionKind
	namespace string // "" for all
}

// listed is one list: of the objects that a label selects.
type listed struct {
	listOf
	label string
}

type list struct {
	once    sync.Once
	objects map[types.NamespacedName]*unstructured.Unstructured
	err     error
}

// New is a cluster of which nothing has been read.
func New(c *kubernetes.Client) *Cluster {
	return &Cluster{
		Client: c, lists: map[listed]*list{}, marks: map[schema.GroupVersionKind]*markLists{}, defined: map[schema.GroupKind]time.Time{},
	}
}

// NoKindError says that the cluster does not know a kind.
type NoKindError struct{ schema.GroupVersionKind }

func (e *NoKindError) Error() string {
	return "the cluster knows no " + e.Kind + " of " + e.GroupVersion().String()
}

// Mapping finds the resource of a kind; without a version that of the one which
// the cluster prefers. ns tells whether its objects lie in namespaces.
func (c *Cluster) Mapping(gvk schema.GroupVersionKind) (gvr schema.GroupVersionResource, ns bool, err error) {
	k, err := c.Serves(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return gvr, false, &NoKindError{gvk}
	}
	if err != nil {
		return gvr, false, err
	}
	return k.GroupVersion().WithResource(k.Resource), k.Namespaced, nil
}

// servedVersion is Mapping for a kind that is already there: where the cluster serves
// the version no longer, its objects live on in another one.
func (c *Cluster) servedVersion(gvk schema.GroupVersionKind) (gvr schema.GroupVersionResource, ns bool, err error) {
	gvr, ns, err = c.Mapping(gvk)
	if errors.As(err, new(*NoKindError)) && gvk.Version != "" {
		return c.Mapping(gvk.GroupKind().WithVersion(""))
	}
	return gvr, ns, err
}

type mapping func(schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)

func (c *Cluster) resource(k object.Key, by mapping) (dynamic.ResourceInterface, error) {
	gvr, ns, err := by(k.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	if ns {
		return c.Dynamic.Resource(gvr).Namespace(k.Namespace), nil
	}
	return c.Dynamic.Resource(gvr), nil
}

// Get reads an object; nil where there is none, or no such kind.
func (c *Cluster) Get(ctx context.Context, k object.Key) (*unstructured.Unstructured, error) {
	r, err := c.resource(k, c.servedVersion)
	if errors.As(err, new(*NoKindError)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	u, err := r.Get(ctx, k.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// Marked finds an object among those that carry the mark of the resource id. They are
// listed once for each kind, for several resources at once: in pages, over the whole
// cluster, or where that is forbidden namespace by namespace. nil where there is none.
func (c *Cluster) Marked(ctx context.Context, k object.Key, id string) (*unstructured.Unstructured, error) {
	label, done := selectMark(ctx, c, k.GroupVersionKind, id)
	defer done()
	of := listed{listOf{k.GroupVersionKind, ""}, label}
	objects, err := c.list(ctx, of)
	if apierrors.IsForbidden(err) && k.Namespace != "" {
		of.namespace = k.Namespace
		objects, err = c.list(ctx, of)
	}
	switch {
	case errors.As(err, new(*NoKindError)):
		return nil, nil
	case apierrors.IsForbidden(err):
		return c.Get(ctx, k) // a single one may be allowed
	case err != nil:
		return nil, err
	}
	return objects[types.NamespacedName{Namespace: k.Namespace, Name: k.Name}], nil
}

// markLists are the lists of the objects of one kind by their marks.
type markLists struct {
	labels  map[string]string // the selector of the list that has the objects of a resource
	waiting []string          // resources that have none yet
	reading chan struct{}     // closed when the list that is read has been read; nil for none
	rest    string            // the selector of the list that further resources share; "" for none yet
}

// selectMark returns the label selector of a list that has the objects of a kind and a
// resource. The first list of a kind has the resources that are read at the same time.
// While one list is read, further resources wait: the next list is for all of them. The
// caller calls done once it has read the list.
func selectMark(ctx context.Context, c *Cluster, of schema.GroupVersionKind, id string) (label string, done func()) {
	done = func() {}
	if id == "" {
		return Mark, done
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.marks[of]
	if m == nil {
		m = &markLists{labels: map[string]string{}}
		c.marks[of] = m
	}
	for m.labels[id] == "" && m.reading != nil {
		if !slices.Contains(m.waiting, id) {
			m.waiting = append(m.waiting, id)
		}
		reading := m.reading
		c.mu.Unlock()
		select {
		case <-reading:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if ctx.Err() != nil {
			return Mark + "=" + id, done
		}
	}
	if label := m.labels[id]; label != "" {
		return label, done
	}
	reading := make(chan struct{})
	m.reading = reading
	if len(m.labels) == 0 {
		gather(ctx, c, m)
	}
	ids := append(slices.DeleteFunc(m.waiting, func(other string) bool { return other == id }), id)
	slices.Sort(ids)
	switch m.waiting = nil; {
	case m.rest != "":
		label = m.rest
	case len(m.labels)+len(ids) > fewMarks:
		label = unlisted(m.labels)
		m.rest = label
	case len(ids) == 1:
		label = Mark + "=" + id
	default:
		label = Mark + " in (" + strings.Join(ids, ",") + ")"
	}
	for _, each := range ids {
		m.labels[each] = label
	}
	return label, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		m.reading = nil
		close(reading)
	}
}

// gather waits until no further resource has come for a while, or so many that they share
// one list. The caller holds the lock of c.
func gather(ctx context.Context, c *Cluster, m *markLists) {
	for before := -1; len(m.waiting) > before && len(m.waiting) < fewMarks && ctx.Err() == nil; {
		before = len(m.waiting)
		c.mu.Unlock()
		select {
		case <-time.After(gathering):
		case <-ctx.Done():
		}
		c.mu.Lock()
	}
}

// unlisted returns the selector of the marked objects that no list by mark has: those are
// not read twice.
func unlisted(listed map[string]string) string {
	if len(listed) == 0 {
		return Mark
	}
	return Mark + "," + Mark + " notin (" + strings.Join(slices.Sorted(maps.Keys(listed)), ",") + ")"
}

func (c *Cluster) list(ctx context.Context, of listed) (map[types.NamespacedName]*unstructured.Unstructured, error) {
	c.mu.Lock()
	l := c.lists[of]
	if l == nil {
		l = new(list)
		c.lists[of] = l
	}
	c.mu.Unlock()
	l.once.Do(func() {
		l.objects, l.err = c.read(ctx, of)
		if ctx.Err() != nil { // it is this caller who gave up
			c.mu.Lock()
			delete(c.lists, of)
			c.mu.Unlock()
		}
	})
	return l.objects, l.err
}

func (c *Cluster) read(ctx context.Context, of listed) (map[types.NamespacedName]*unstructured.Unstructured, error) {
	gvr, ns, err := c.servedVersion(of.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	var r dynamic.ResourceInterface = c.Dynamic.Resource(gvr)
	if ns && of.namespace != "" {
		r = c.Dynamic.Resource(gvr).Namespace(of.namespace)
	}
	objects := map[types.NamespacedName]*unstructured.Unstructured{}
	options := metav1.ListOptions{LabelSelector: of.label, Limit: page}
	for {
		found, err := r.List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			objects, options.Continue = map[types.NamespacedName]*unstructured.Unstructured{}, "" // it took too long: from the start
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range found.Items {
			u := &found.Items[i]
			objects[types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}] = u
		}
		if options.Continue = found.GetContinue(); options.Continue == "" {
			return objects, nil
		}
	}
}

// ControllerManager is the field manager by which horizontal pod autoscalers set
// replicas.
const ControllerManager = "kube-controller-manager"

var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

// Autoscaled reports whether a HorizontalPodAutoscaler scales an object. Where
// that cannot be read, one is taken to.
func (c *Cluster) Autoscaled(ctx context.Context, k object.Key) (bool, error) {
	all, err := c.Dynamic.Resource(autoscalers).Namespace(k.Namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	for _, a := range all.Items {
		kind, _, _ := unstructured.NestedString(a.Object, "spec", "scaleTargetRef", "kind")
		name, _, _ := unstructured.NestedString(a.Object, "spec", "scaleTargetRef", "name")
		if kind == k.Kind && name == k.Name && a.GetDeletionTimestamp() == nil {
			return true, nil
		}
	}
	return false, nil
}

// SuggestKinds is a sentence about kinds of the cluster whose names are like a mistyped
// one; "" where there are none.
func (c *Cluster) SuggestKinds(kind string) string {
	all, err := c.Kinds()
	if err != nil {
		return ""
	}
	found := map[string]bool{}
	for _, k := range all {
		if similarNames(kind, k.Kind) || similarNames(kind, k.Resource) {
			found[strings.TrimPrefix(k.Group+"/"+k.Kind, "/")] = true
		}
	}
	if len(found) == 0 {
		return ""
	}
	return " Did you mean " + strings.Join(slices.Sorted(maps.Keys(found)), " or ") + "?"
}

// similarNames reports names that differ in case alone, or by little.
func similarNames(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a == b || len(a) > 3 && levenshtein.Distance(a, b, nil) <= 2
}
