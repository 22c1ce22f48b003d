package pods

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

// watchTarget is what one watch is about: the pods of a list, or the one of a name.
type watchTarget struct {
	listOf
	name string
}

// watch watches pods until ctx is done. It fails only where that is forbidden:
// otherwise it is begun again.
func (fl *follower) watch(ctx context.Context, of watchTarget) error {
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	failed := func(err error) {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			stop(fmt.Errorf("watch the pods in %s: %w", of.namespace, err))
		}
	}
	source := kubernetes.Source(fl.s.Client.Dynamic.Resource(podResource).Namespace(of.namespace), of.selector, of.name, failed)
	_, err := watchtools.UntilWithSync(inner, source, &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
		if u, ok := e.Object.(*unstructured.Unstructured); ok {
			return false, fl.handleEvent(ctx, e.Type, u)
		}
		return false, nil
	})
	if cause := context.Cause(inner); ctx.Err() == nil && cause != nil {
		return cause
	}
	return stopped(ctx, err)
}

// handleEvent takes in what a watch tells of a pod.
func (fl *follower) handleEvent(ctx context.Context, kind watch.EventType, u *unstructured.Unstructured) error {
	if kind == watch.Deleted {
		fl.forget(u.GetUID())
		return nil
	}
	ours, err := fl.ours(ctx, u)
	for pause := firstPause; passing(err) && ctx.Err() == nil; pause = min(2*pause, lastPause) {
		fl.wait("", "the objects of a pod cannot be read ("+err.Error()+"); trying again")
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		ours, err = fl.ours(ctx, u)
	}
	if err != nil || !ours {
		return stopped(ctx, err)
	}
	p, err := podOf(u)
	if err != nil {
		return err
	}
	fl.put(ctx, p, nil)
	return nil
}

// passing reports whether a repeated request to the API server may succeed.
func passing(err error) bool {
	return err != nil && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err)
}

// ours reports whether a pod belongs to the set. Where its controller was never
// seen, the objects are read again: a rollout makes a ReplicaSet, a CronJob a
// Job.
func (fl *follower) ours(ctx context.Context, u *unstructured.Unstructured) (bool, error) {
	uid := u.GetUID()
	if c := metav1.GetControllerOfNoCopy(u); c != nil {
		uid = c.UID
	}
	fl.state.Lock()
	ours, foreign := fl.found.owner(u) != nil, fl.foreign[uid]
	fl.state.Unlock()
	if ours || foreign {
		return ours, nil
	}
	f := &objectSet{owners: make(map[types.UID]*root)}
	if err := fl.s.findRoots(ctx, f); err != nil {
		return false, stopped(ctx, err)
	}
	if err := fl.s.findBetween(ctx, f); err != nil {
		return false, stopped(ctx, err)
	}
	fl.learn(f)
	if f.owner(u) != nil {
		return true, nil
	}
	fl.state.Lock()
	defer fl.state.Unlock()
	fl.foreign[uid] = true
	return false, nil
}

// learn takes in what the objects own now. Former pods of the set still count.
func (fl *follower) learn(f *objectSet) {
	fl.state.Lock()
	defer fl.state.Unlock()
	for uid, r := range fl.found.owners {
		if f.owners[uid] == nil {
			f.owners[uid] = r
		}
	}
	fl.found = f
}
