package kubernetes

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// sparse is how often a view reads objects that it does not watch: events, the
// run's claim, nodes. All of them share the rate, however many they are.
const sparse = 5 * time.Second

// reader answers reads of a run's objects from watches, and remembers the answers
// to all other reads for a while. Writes pass through. It has one user at a time.
type reader struct {
	stores  map[schema.GroupVersionResource]cache.Store // of watched kinds
	answers map[string]*answer
}

// answer is the answer of the API server to a read.
type answer struct {
	at   time.Time
	one  *unstructured.Unstructured
	list *unstructured.UnstructuredList
	err  error
}

// resource returns the reads and writes of a kind.
func (s *reader) resource(kind schema.GroupVersionResource, r dynamic.ResourceInterface) dynamic.ResourceInterface {
	return &readKind{r, kind, s}
}

type readKind struct {
	dynamic.ResourceInterface
	kind schema.GroupVersionResource
	s    *reader
}

// Get returns an object of a watched kind as the watch reports it.
func (k *readKind) Get(ctx context.Context, name string, o metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	if store := k.s.stores[k.kind]; store != nil {
		for _, u := range objectsIn(store) {
			if u.GetName() == name {
				return &u, nil
			}
		}
		return nil, apierrors.NewNotFound(k.kind.GroupResource(), name)
	}
	a := k.s.readSparsely(ctx, k.kind.String()+" "+name, func(a *answer) { a.one, a.err = k.ResourceInterface.Get(ctx, name, o, sub...) })
	return a.one, a.err
}

// List returns all objects that a watch reports, whatever o selects: a watch has
// only the run's objects.
func (k *readKind) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if store := k.s.stores[k.kind]; store != nil {
		return &unstructured.UnstructuredList{Items: objectsIn(store)}, nil
	}
	name := strings.Join([]string{k.kind.String(), o.LabelSelector, o.FieldSelector, o.Continue}, " ")
	a := k.s.readSparsely(ctx, name, func(a *answer) { a.list, a.err = k.ResourceInterface.List(ctx, o) })
	return a.list, a.err
}

// readSparsely returns the answer to a read, and reads again once the answer is old.
func (s *reader) readSparsely(ctx context.Context, name string, read func(*answer)) *answer {
	a := s.answers[name]
	if a != nil && time.Since(a.at) < sparse*time.Duration(len(s.answers)) {
		return a
	}
	a = &answer{at: time.Now()}
	if read(a); ctx.Err() == nil {
		s.answers[name] = a
	}
	return a
}

func objectsIn(store cache.Store) (objects []unstructured.Unstructured) {
	for _, o := range store.List() {
		if u, ok := o.(*unstructured.Unstructured); ok {
			objects = append(objects, *u)
		}
	}
	return objects
}
