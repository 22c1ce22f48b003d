package live

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/object"
)

const (
	// together is how many kinds and namespaces are watched at the same time, one
	// request each.
	together = 32
	// again is how often an object is read where watching is forbidden.
	again = 2 * time.Second
)

// watchTarget is what one request watches: objects with a label, or the one of a
// name.
type watchTarget struct {
	listOf
	label, name string
}

// look is told of an object as it is and whenever it changes, nil when it is
// not there, until it is done with it.
type look func(k object.Key, u *unstructured.Unstructured) (done bool, err error)

// watchAll makes each watch until all of its objects are done. each makes what
// looks at those of one; its second result says what ended the wait where ctx
// did.
func (c *Cluster) watchAll(ctx context.Context, watches map[watchTarget][]object.Key, each func(context.Context, []object.Key) (look, func() error)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for of, keys := range watches {
		group.Go(func() error {
			see, ended := each(ctx, keys)
			err := c.watch(ctx, of, keys, see)
			if err != nil && ctx.Err() != nil {
				return ended()
			}
			return err
		})
	}
	return group.Wait()
}

// errForbidden ends a watch whose user may not list or watch the kind.
var errForbidden = errors.New("list and watch are forbidden")

func (c *Cluster) watch(ctx context.Context, of watchTarget, keys []object.Key, see look) error {
	pending := make(map[string]object.Key, len(keys))
	for _, k := range keys {
		pending[k.Name] = k
	}
	update := func(name string, u *unstructured.Unstructured) (bool, error) {
		if k, ok := pending[name]; ok {
			done, err := see(k, u)
			if err != nil {
				return false, err
			}
			if done {
				delete(pending, name)
			}
		}
		return len(pending) == 0, nil
	}
	gvr, _, err := c.servedVersion(of.GroupVersionKind)
	if errors.As(err, new(*NoKindError)) { // with its kind, every object has gone
		for name := range pending {
			if _, err := update(name, nil); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	var r dynamic.ResourceInterface = c.Dynamic.Resource(gvr)
	if of.namespace != "" {
		r = c.Dynamic.Resource(gvr).Namespace(of.namespace)
	}
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	source := kubernetes.Source(r, of.label, of.name, func(err error) {
		if apierrors.IsForbidden(err) {
			stop(errForbidden)
		}
	})
	_, err = watchtools.UntilWithSync(inner, source, &unstructured.Unstructured{}, func(store cache.Store) (bool, error) {
		there := map[string]*unstructured.Unstructured{}
		for _, o := range store.List() {
			if u, ok := o.(*unstructured.Unstructured); ok {
				there[u.GetName()] = u
			}
		}
		over := len(pending) == 0
		for name := range pending {
			if over, err = update(name, there[name]); err != nil {
				return false, err
			}
		}
		return over, nil
	}, func(e watch.Event) (bool, error) {
		u, ok := e.Object.(*unstructured.Unstructured)
		switch {
		case !ok:
			return len(pending) == 0, nil
		case e.Type == watch.Deleted:
			return update(u.GetName(), nil)
		}
		return update(u.GetName(), u)
	})
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(inner), errForbidden) {
		return c.poll(ctx, pending, update)
	}
	return err
}

// poll reads the objects one by one, for a user who may only get them.
func (c *Cluster) poll(ctx context.Context, pending map[string]object.Key, update func(string, *unstructured.Unstructured) (bool, error)) error {
	tick := time.NewTicker(again)
	defer tick.Stop()
	for {
		over := len(pending) == 0
		for name, k := range pending {
			u, err := c.Get(ctx, k)
			if err != nil {
				return err
			}
			if over, err = update(name, u); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
