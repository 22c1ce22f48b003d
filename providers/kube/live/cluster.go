package live

import (
	"context"
	"errors"
	"sync"

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
)

// Cluster is a cluster in one phase (a plan, an apply): lists are read once.
type Cluster struct {
	*kubernetes.Client

	mu    sync.Mutex
	lists map[listOf]*list
}

type listOf struct {
	schema.GroupVersionKind
	namespace string // "" for all
}

type list struct {
	once    sync.Once
	objects map[types.NamespacedName]*unstructured.Unstructured
	err     error
}

// New is a cluster of which nothing has been read.
func New(c *kubernetes.Client) *Cluster {
	return &Cluster{Client: c, lists: make(map[listOf]*list)}
}

// NoKindError says that the cluster does not know a kind.
type NoKindError struct{ schema.GroupVersionKind }

func (e *NoKindError) Error() string {
	return "the cluster knows no " + e.Kind + " of " + e.GroupVersion().String()
}

// Mapping finds the resource of a kind. ns tells whether its objects lie in
// namespaces.
func (c *Cluster) Mapping(gvk schema.GroupVersionKind) (gvr schema.GroupVersionResource, ns bool, err error) {
	m, err := c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return gvr, false, &NoKindError{gvk}
	}
	if err != nil {
		return gvr, false, err
	}
	return m.Resource, m.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

func (c *Cluster) resource(k object.Key) (dynamic.ResourceInterface, error) {
	gvr, ns, err := c.Mapping(k.GroupVersionKind)
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
	r, err := c.resource(k)
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

// Marked finds an object among those that carry the mark, which are listed
// once for each kind: in pages, over the whole cluster, or where that is
// forbidden namespace by namespace. nil where there is none.
func (c *Cluster) Marked(ctx context.Context, k object.Key) (*unstructured.Unstructured, error) {
	objects, err := c.list(ctx, listOf{k.GroupVersionKind, ""})
	if apierrors.IsForbidden(err) && k.Namespace != "" {
		objects, err = c.list(ctx, listOf{k.GroupVersionKind, k.Namespace})
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

func (c *Cluster) list(ctx context.Context, of listOf) (map[types.NamespacedName]*unstructured.Unstructured, error) {
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

func (c *Cluster) read(ctx context.Context, of listOf) (map[types.NamespacedName]*unstructured.Unstructured, error) {
	gvr, ns, err := c.Mapping(of.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	var r dynamic.ResourceInterface = c.Dynamic.Resource(gvr)
	if ns && of.namespace != "" {
		r = c.Dynamic.Resource(gvr).Namespace(of.namespace)
	}
	objects := map[types.NamespacedName]*unstructured.Unstructured{}
	options := metav1.ListOptions{LabelSelector: Mark, Limit: page}
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

// Rediscover makes the cluster be asked anew for its kinds.
func (c *Cluster) Rediscover() { c.Mapper.Reset() }
