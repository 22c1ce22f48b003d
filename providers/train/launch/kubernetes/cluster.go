package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	connected "github.com/stokehq/stoke/providers/connect/kubernetes"
)

// The kinds of a run's objects.
var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	services   = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	claims     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	events     = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	jobs       = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	policies   = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
	classes    = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}
)

// kinds of which a run has objects, in the order in which they are removed.
var kinds = []schema.GroupVersionResource{jobs, services, policies, secrets, claims}

// cluster is the namespace of a run.
type cluster struct {
	*connected.Client
	namespace string
	reader    *reader // answers reads; nil: the API server does
}

func (c *cluster) client(kind schema.GroupVersionResource) dynamic.ResourceInterface {
	var r dynamic.ResourceInterface = c.Dynamic.Resource(kind)
	if kind != classes && kind != nodes {
		r = c.Dynamic.Resource(kind).Namespace(c.namespace)
	}
	if c.reader != nil {
		return c.reader.resource(kind, r)
	}
	return r
}

// create makes an object. owner, where it is not nil, takes it along when it
// goes.
func (c *cluster) create(ctx context.Context, kind schema.GroupVersionResource, o runtime.Object, owner *metav1.OwnerReference) (types.UID, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return "", fmt.Errorf("write object: %w", err)
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "status")
	if owner != nil {
		u.SetOwnerReferences([]metav1.OwnerReference{*owner})
	}
	made, err := c.client(kind).Create(ctx, u, metav1.CreateOptions{FieldManager: manager, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return "", fmt.Errorf("make %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return made.GetUID(), nil
}

// get reads an object into o; false: there is none.
func (c *cluster) get(ctx context.Context, kind schema.GroupVersionResource, name string, o any) (bool, error) {
	u, err := c.client(kind).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o)
}

// list reads a run's objects of a kind.
func list[T any](ctx context.Context, c *cluster, kind schema.GroupVersionResource, id string) ([]T, error) {
	var all []T
	options := metav1.ListOptions{LabelSelector: runLabel + "=" + id, Limit: 500}
	for {
		page, err := c.client(kind).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Items {
			var o T
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
				return nil, fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
			}
			all = append(all, o)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}

// remove deletes a run's objects of a kind; what they own goes before them.
func (c *cluster) remove(ctx context.Context, kind schema.GroupVersionResource, id string) error {
	page, err := c.client(kind).List(ctx, metav1.ListOptions{LabelSelector: runLabel + "=" + id})
	if err != nil {
		return err
	}
	var errs []error
	for _, u := range page.Items {
		errs = append(errs, c.delete(ctx, kind, u.GetName(), u.GetUID()))
	}
	return errors.Join(errs...)
}

// delete deletes one object; that it is gone is no error.
func (c *cluster) delete(ctx context.Context, kind schema.GroupVersionResource, name string, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	err := c.client(kind).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or another one by now
	}
	return err
}

// podsGone watches a run's pods until none is there. Pods of a node that does not answer
// stay until the cluster gives them up: once they are overdue they are deleted without its
// word.
func (c *cluster) podsGone(ctx context.Context, id string) error {
	v := newView(ctx, c, id, pods)
	defer v.end()
	forced := make(map[types.UID]bool)
	for {
		left, err := v.listPods(ctx)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, u := range left {
			if forced[u.GetUID()] || !overdue(&u, time.Now()) {
				continue
			}
			forced[u.GetUID()] = true
			err := c.client(pods).Delete(ctx, u.GetName(), connected.Unconfirmed(u.GetUID()))
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return err
			}
		}
		if v.wait(ctx); ctx.Err() != nil {
			return fmt.Errorf("pod %s does not end: %w", left[0].GetName(), context.Cause(ctx))
		}
	}
}

// overdue tells a pod that has had all the time to end that it was given, and
// whose node has had its time to say so: the deletion's time includes the former.
func overdue(pod metav1.Object, now time.Time) bool {
	asked := pod.GetDeletionTimestamp()
	return asked != nil && now.Sub(asked.Time) >= late
}

// patch changes fields of an object.
func (c *cluster) patch(ctx context.Context, kind schema.GroupVersionResource, name string, text []byte) error {
	_, err := c.client(kind).Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: manager})
	return err
}
