package kubernetes

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	connected "github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

const (
	// syncTime is how long a view waits for the first answers of its watches.
	syncTime = 10 * time.Second
	// longestSilence is the longest pause between two attempts to reach a
	// coordinator that runs and does not answer.
	longestSilence = 20 * time.Second
	// releaseAgain is the pause between two attempts to release a pod.
	releaseAgain = 30 * time.Second
)

// view is a run as watches of its objects and its coordinator report it. One
// connection to the coordinator is kept for as long as its container runs.
type view struct {
	*cluster          // reads from the watches
	api      *cluster // reads from the API server
	id       string
	ctx      context.Context // of the watches; its cause is the error that ended them
	stop     context.CancelCauseFunc
	watches  sync.WaitGroup
	synced   []<-chan struct{}
	changed  chan struct{} // has an element once an object has changed

	kept     *session // nil: there is none
	life     string   // the container that kept is connected to
	silence  time.Duration
	again    time.Time // no earlier attempt to reach the coordinator
	released map[types.UID]time.Time
}

// errSilent is for a coordinator that runs and did not answer a short time ago.
var errSilent = errors.New("the coordinator does not answer")

// newView begins to watch a run's objects of some kinds. The caller ends it.
func newView(ctx context.Context, c *cluster, id string, kinds ...schema.GroupVersionResource) *view {
	s := &reader{make(map[schema.GroupVersionResource]cache.Store), make(map[string]*answer)}
	v := &view{
		cluster: &cluster{Client: c.Client, namespace: c.namespace, reader: s}, api: c, id: id,
		changed: make(chan struct{}, 1), released: make(map[types.UID]time.Time),
	}
	v.ctx, v.stop = context.WithCancelCause(ctx)
	for _, kind := range kinds {
		if kind == configMaps {
			v.watch(kind, "", id)
		} else {
			v.watch(kind, runLabel+"="+id, "")
		}
	}
	return v
}

// listPods lists the run's pods. An empty list is the API server's own: a watch may begin
// with the pods of a short time ago.
func (v *view) listPods(ctx context.Context) ([]unstructured.Unstructured, error) {
	selected := metav1.ListOptions{LabelSelector: runLabel + "=" + v.id}
	if v.watching() {
		if page, err := v.client(pods).List(ctx, selected); err == nil && len(page.Items) > 0 {
			return page.Items, nil
		}
	}
	page, err := v.api.client(pods).List(ctx, selected)
	if err != nil {
		return nil, err
	}
	return page.Items, nil
}

// watch watches the run's objects of a kind.
func (v *view) watch(kind schema.GroupVersionResource, label, name string) {
	tell := func() {
		select {
		case v.changed <- struct{}{}:
		default: // the change before has not been read
		}
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: connected.Source(v.api.client(kind), label, name, v.answered),
		ObjectType:    &unstructured.Unstructured{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() }, DeleteFunc: func(any) { tell() },
		},
	})
	v.reader.stores[kind] = store
	v.synced = append(v.synced, informer.HasSyncedChecker().Done())
	v.watches.Go(func() { informer.RunWithContext(v.ctx) })
}

// answered ends the watches at an error that the informers' next request will
// not mend.
func (v *view) answered(err error) {
	switch {
	case err == nil, v.ctx.Err() != nil,
		apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsTooManyRequests(err), apierrors.IsInvalid(err),
		apierrors.IsInternalError(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
	default:
		v.stop(err)
	}
}

// end ends the watches and the connection to the coordinator.
func (v *view) end() {
	v.stop(nil)
	v.watches.Wait()
	v.drop()
}

func (v *view) drop() {
	if v.kept != nil {
		v.kept.Close()
	}
	v.kept, v.life, v.silence, v.again = nil, "", 0, time.Time{}
}

// watching waits for the first answers of the watches, for a while. It returns
// false where the watches have ended: the caller reads from the API server.
func (v *view) watching() bool {
	limit := time.NewTimer(syncTime)
	defer limit.Stop()
	for _, synced := range v.synced {
		select {
		case <-synced:
		case <-limit.C:
			return false
		case <-v.ctx.Done():
			return false
		}
	}
	return v.ctx.Err() == nil
}

// wait returns when the run may have changed: on a change of an object, and
// after a moment, as the coordinator's status has no watch.
func (v *view) wait(ctx context.Context) {
	pause, changed := poll, v.changed
	if v.ctx.Err() != nil {
		pause, changed = sparse, nil
	}
	limit := time.NewTimer(pause)
	defer limit.Stop()
	select {
	case <-changed:
		select {
		case <-time.After(poll / 5): // many pods change at the same time
		case <-ctx.Done():
		}
	case <-limit.C:
	case <-ctx.Done():
	}
}

// state returns the run's state: errSilent where it would be a guess.
func (v *view) state(ctx context.Context) (launch.State, error) {
	s, err := v.look(ctx, v.id)
	if err != nil {
		return launch.State{}, err
	}
	state, _, _, err := readState(ctx, v.cluster, v.id, s, v.ask)
	switch {
	case err != nil:
		return state, err
	case v.ctx.Err() != nil:
		return state, context.Cause(v.ctx)
	}
	now := time.Now()
	held, delayed := slices.DeleteFunc(v.heldPods(ctx, s), v.isReleased(now)), slices.DeleteFunc(s.delayed(), v.isReleased(now))
	v.api.release(ctx, held, delayed) //nolint:errcheck // the status reports pods that are still held
	return state, nil
}

// isReleased reports pods that were released shortly before now. The caller releases
// the others now.
func (v *view) isReleased(now time.Time) func(core.Pod) bool {
	return func(p core.Pod) bool {
		if now.Sub(v.released[p.UID]) < releaseAgain {
			return true
		}
		v.released[p.UID] = now
		return false
	}
}

// ask returns the coordinator's status through the connection that is kept. Where
// the API server does not make a connection, ask reads the run from it: without an
// API server, that read waits, and then ends the watches.
func (v *view) ask(ctx context.Context, id string, all []core.Pod) (spec.Status, *session, error) {
	pod := running(all)
	if pod == nil {
		v.drop()
		return spec.Status{}, nil, errNoCoordinator
	}
	if life := lifeOf(pod); v.kept == nil || v.life != life {
		v.drop()
		s, err := v.session(ctx, id, all)
		if err != nil {
			return spec.Status{}, nil, err
		}
		v.kept, v.life = s, life
	}
	if time.Now().Before(v.again) {
		return spec.Status{}, nil, errSilent
	}
	status, err := v.kept.ask(ctx, id)
	if err == nil {
		v.silence = 0
		return status, v.kept, nil
	}
	if v.kept.unreached.Load() {
		if _, unread := v.api.get(ctx, configMaps, id, new(core.ConfigMap)); unread != nil {
			v.stop(unread)
		}
	}
	v.silence = min(max(2*v.silence, poll), longestSilence)
	v.again = time.Now().Add(v.silence)
	return status, nil, err
}

// lifeOf names one life of a pod's containers.
func lifeOf(p *core.Pod) string {
	name := string(p.UID)
	for _, c := range p.Status.ContainerStatuses {
		name += " " + c.ContainerID
	}
	return name
}

// followed reads a run again and again: from a view, where the caller follows it.
type followed struct {
	*view
	api *cluster
	id  string
}

func newFollowed(ctx context.Context, c *cluster, id string, follow bool) *followed {
	f := &followed{api: c, id: id}
	if follow {
		f.view = newView(ctx, c, id, configMaps, jobs, pods)
	}
	return f
}

// look reads the run. A run that the watches do not have, or no longer, is read from
// the API server.
func (f *followed) look(ctx context.Context) (*sight, error) {
	if f.view != nil && f.watching() {
		if s, err := f.view.look(ctx, f.id); err == nil && !s.isOver() {
			return s, nil
		}
	}
	return f.api.look(ctx, f.id)
}

func (f *followed) end() {
	if f.view != nil {
		f.view.end()
	}
}
