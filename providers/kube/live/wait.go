package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/stokehq/stoke/providers/kube/object"
)

// together is how many kinds and namespaces are watched at the same time, one
// request each.
const together = 32

// NotReadyError says what an object was last waiting for.
type NotReadyError struct {
	Key    object.Key
	Reason string // in words of the object's own status
	Failed bool   // it will not become ready by waiting
	Err    error  // why the wait ended; nil where it failed
}

func (e *NotReadyError) Error() string {
	if e.Failed {
		return fmt.Sprintf("%s failed: %s", e.Key.Title(), e.Reason)
	}
	return fmt.Sprintf("%s is not ready: %s", e.Key.Title(), e.Reason)
}

func (e *NotReadyError) Unwrap() error { return e.Err }

// Rules are where readiness is more than kstatus says.
type Rules struct {
	Complete bool // a Job is ready when it has ended well, not when it has started
	Unbound  bool // a claim is ready when it is accepted: its class waits for a pod
}

// Ready says how an object stands by the rules of kstatus and r.
func Ready(u *unstructured.Unstructured, r Rules) (ready, failed bool, reason string) {
	switch gk := u.GroupVersionKind().GroupKind(); {
	case r.Unbound && gk == claim.GroupKind():
		if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase == "" || phase == "Pending" {
			return true, false, "waits for its first pod"
		}
	case r.Complete && gk.Group == "batch" && gk.Kind == "Job":
		return finished(u)
	}
	result, err := status.Compute(u)
	if err != nil {
		return false, false, err.Error()
	}
	return result.Status == status.CurrentStatus, result.Status == status.FailedStatus, strings.TrimSpace(result.Message)
}

var (
	claim        = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	storageClass = schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}
)

func finished(u *unstructured.Unstructured) (ready, failed bool, reason string) {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if !ok || m["status"] != "True" {
			continue
		}
		switch m["type"] {
		case "Complete":
			return true, false, ""
		case "Failed":
			return false, true, strings.TrimSpace(fmt.Sprintf("%v: %v", m["reason"], m["message"]))
		}
	}
	active, _, _ := unstructured.NestedInt64(u.Object, "status", "active")
	succeeded, _, _ := unstructured.NestedInt64(u.Object, "status", "succeeded")
	return false, false, fmt.Sprintf("%d pods active, %d succeeded", active, succeeded)
}

// WaitReady watches objects until each is ready, one has failed, or ctx is
// done. All carry the mark of the resource id. report, when not nil, hears what
// each waits for, whenever that changes.
func (c *Cluster) WaitReady(ctx context.Context, id string, keys []object.Key, complete bool, report func(object.Key, string)) error {
	return c.watchAll(ctx, id, keys, func(ctx context.Context, keys []object.Key) (look, func() error) {
		waits := map[object.Key]string{}
		for _, k := range keys {
			waits[k] = "it is not there"
		}
		return func(k object.Key, u *unstructured.Unstructured) (bool, error) {
				if u == nil {
					if waits[k] == "it is not there" {
						return false, nil
					}
					return false, &NotReadyError{Key: k, Reason: "it was deleted", Failed: true}
				}
				unbound, err := c.unbound(ctx, u)
				if err != nil {
					return false, err
				}
				ready, failed, reason := Ready(u, Rules{Complete: complete, Unbound: unbound})
				if failed {
					return false, &NotReadyError{Key: k, Reason: reason, Failed: true}
				}
				if !ready && reason != waits[k] && report != nil {
					report(k, reason)
				}
				if waits[k] = reason; ready {
					delete(waits, k)
				}
				return ready, nil
			}, func() error {
				for _, k := range keys {
					if reason, ok := waits[k]; ok {
						return &NotReadyError{Key: k, Reason: reason, Err: context.Cause(ctx)}
					}
				}
				return context.Cause(ctx)
			}
	})
}

// unbound reports a claim that only a pod can bind.
func (c *Cluster) unbound(ctx context.Context, u *unstructured.Unstructured) (bool, error) {
	name, _, _ := unstructured.NestedString(u.Object, "spec", "storageClassName")
	if u.GroupVersionKind() != claim || name == "" {
		return false, nil
	}
	class, err := c.Get(ctx, object.Key{GroupVersionKind: storageClass, Name: name})
	if apierrors.IsForbidden(err) || class == nil && err == nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return class.Object["volumeBindingMode"] == "WaitForFirstConsumer", nil
}

// StillThereError says what keeps an object from going.
type StillThereError struct {
	Key        object.Key
	Finalizers []string
	Reason     string // of a namespace: what its conditions say
	Err        error
}

func (e *StillThereError) Error() string {
	text := e.Key.Title() + " is still there"
	if len(e.Finalizers) > 0 {
		text += ", held by the finalizers " + strings.Join(e.Finalizers, ", ")
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

func (e *StillThereError) Unwrap() error { return e.Err }

// WaitGone watches objects, which carry the mark of the resource id, until none
// of them is there.
func (c *Cluster) WaitGone(ctx context.Context, id string, keys []object.Key) error {
	return c.watchAll(ctx, id, keys, func(ctx context.Context, keys []object.Key) (look, func() error) {
		there := map[object.Key]*StillThereError{}
		return func(k object.Key, u *unstructured.Unstructured) (bool, error) {
				if u == nil || u.GetDeletionTimestamp() == nil {
					delete(there, k)
					return true, nil // gone, or made anew by somebody
				}
				there[k] = &StillThereError{Key: k, Finalizers: u.GetFinalizers()}
				if k.Kind == "Namespace" {
					there[k].Finalizers, there[k].Reason = remaining(u)
				}
				return false, nil
			}, func() error {
				for _, k := range keys {
					if still, ok := there[k]; ok {
						still.Err = context.Cause(ctx)
						return still
					}
				}
				return context.Cause(ctx)
			}
	})
}

// remaining is what a namespace in deletion waits for, as its conditions say.
func remaining(ns *unstructured.Unstructured) (finalizers []string, reason string) {
	finalizers, _, _ = unstructured.NestedStringSlice(ns.Object, "spec", "finalizers")
	finalizers = slices.DeleteFunc(append(finalizers, ns.GetFinalizers()...), func(f string) bool { return f == "kubernetes" })
	conditions, _, _ := unstructured.NestedSlice(ns.Object, "status", "conditions")
	var said []string
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["status"] == "True" {
			said = append(said, fmt.Sprint(m["message"]))
		}
	}
	return finalizers, strings.Join(said, " ")
}

// look is told of an object as it is and whenever it changes, nil when it is
// not there, until it is done with it.
type look func(k object.Key, u *unstructured.Unstructured) (done bool, err error)

// watchAll watches objects by one request for each kind and namespace. each
// makes what looks at those of one; its second result says what ended the
// wait where ctx did.
func (c *Cluster) watchAll(ctx context.Context, id string, keys []object.Key, each func(context.Context, []object.Key) (look, func() error)) error {
	by := map[listOf][]object.Key{}
	for _, k := range keys {
		of := listOf{k.GroupVersionKind, k.Namespace}
		by[of] = append(by[of], k)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for of, keys := range by {
		group.Go(func() error {
			see, ended := each(ctx, keys)
			err := c.watch(ctx, of, id, keys, see)
			if err != nil && ctx.Err() != nil {
				return ended()
			}
			return err
		})
	}
	return group.Wait()
}

func (c *Cluster) watch(ctx context.Context, of listOf, id string, keys []object.Key, see look) error {
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
	gvr, _, err := c.Mapping(of.GroupVersionKind)
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
	mine := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector = Mark + "=" + id
		return o
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return r.List(ctx, mine(o)) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return r.Watch(ctx, mine(o))
		},
	}
	_, err = watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, func(store cache.Store) (bool, error) {
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
	return err
}
