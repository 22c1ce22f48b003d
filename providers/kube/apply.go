package kube

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// work makes the objects of one resource what they are to be.
type work struct {
	*set
	cluster *live.Cluster
	plan    common
	planned map[string]string
	prior   map[string]string
	id      string

	mu    sync.Mutex
	texts map[string]string // as they are by now
	done  map[string]applied
	diags diag.Diagnostics
}

// Create applies all objects. Its id is the operation's, so that a create whose
// outcome is not known can be found by the mark.
func (r *set) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	plan, diags := r.kind.common(ctx, req.Plan)
	resp.Diagnostics.Append(diags...)
	limit, diags := plan.Timeouts.Create(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	id := providers.CallFrom(ctx).Operation
	if id == "" {
		id = rand.Text() // under an engine without operations
	}
	resp.State.Raw = req.Plan.Raw.Copy()
	r.apply(ctx, req.Config, &work{plan: plan, id: id, done: map[string]applied{}}, limit, &resp.State, resp.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		providers.CallFrom(ctx).KeepOnError()
	}
}

// Update applies what has changed, and deletes what is no longer declared.
func (r *set) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	plan, diags := r.kind.common(ctx, req.Plan)
	resp.Diagnostics.Append(diags...)
	prior, diags := r.kind.common(ctx, req.State)
	resp.Diagnostics.Append(diags...)
	limit, diags := plan.Timeouts.Update(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	was, diags := readApplied(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	resp.State.Raw = req.Plan.Raw.Copy()
	w := &work{plan: plan, prior: prior.texts(), id: prior.ID.ValueString(), done: was}
	if w.id == "" {
		w.id = rand.Text() // imported
	}
	r.apply(ctx, req.Config, w, limit, &resp.State, resp.Private, &resp.Diagnostics)
}

func (r *set) apply(ctx context.Context, config tfsdk.Config, w *work, limit time.Duration, state *tfsdk.State, private keyed, to *diag.Diagnostics) {
	if to.HasError() {
		return
	}
	w.set, w.planned, w.texts = r, w.plan.texts(), maps.Clone(w.prior)
	if w.texts == nil {
		w.texts = map[string]string{}
	}
	ctx, cancel := stoppable(ctx, limit)
	defer cancel()
	w.run(ctx, config)
	to.Append(w.diags...)
	texts := w.texts
	if !w.diags.HasError() { // the plan's promise
		for k, text := range w.planned {
			if _, ok := texts[k]; ok && text != "" {
				texts[k] = text
			}
		}
	}
	value, diags := objectsValue(texts)
	to.Append(diags...)
	to.Append(state.SetAttribute(ctx, objectsAt, value)...)
	to.Append(state.SetAttribute(ctx, path.Root("id"), w.id)...)
	clusterID := ""
	if w.cluster != nil {
		clusterID = w.cluster.ID
	}
	to.Append(state.SetAttribute(ctx, path.Root("cluster_id"), clusterID)...)
	to.Append(writeApplied(ctx, private, w.done)...)
}

// stoppable ends with the limit, and when the user asks to stop.
func stoppable(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %v", limit))
	ctx, stop := context.WithCancelCause(ctx)
	stopping := providers.CallFrom(ctx).Stopping
	over := make(chan struct{})
	if stopping != nil {
		go func() {
			select {
			case <-stopping:
				stop(errors.New("stopped"))
			case <-over:
			}
		}()
	}
	return ctx, func() { close(over); stop(nil); end() }
}

func (w *work) run(ctx context.Context, config tfsdk.Config) {
	connection, known, diags := w.settings.connection(ctx, w.plan.Cluster)
	if w.diags.Append(diags...); diags.HasError() {
		return
	}
	if !known {
		w.diags.AddAttributeError(clusterAt, "No cluster", "The connection is not known even now.")
		return
	}
	var err error
	if w.cluster, err = w.settings.cluster(ctx, connection, w.plan.ClusterID.ValueString()); err != nil {
		summary, detail := kubernetes.Describe(err)
		w.diags.AddAttributeError(clusterAt, summary, detail)
		return
	}
	want, _, diags := w.want(ctx, config, w.cluster)
	if w.diags.Append(diags...); diags.HasError() {
		return
	}
	marks := make(map[string]string, len(want.objects))
	for i, u := range want.objects {
		marks[want.keys[i]] = declared(u, w.id)
	}
	want.mark(w.id)
	var changed []object.Key
	for _, wave := range object.Waves(want.objects) {
		group, inner := errgroup.WithContext(ctx)
		group.SetLimit(atOnce)
		var kinds []object.Key
		for _, u := range wave {
			k := w.placed(u)
			if w.same(k, marks[k.String()]) {
				continue
			}
			changed = append(changed, k)
			if k.Kind == "CustomResourceDefinition" {
				kinds = append(kinds, k)
			}
			group.Go(func() error { w.one(inner, u, k, marks[k.String()]); return nil })
		}
		group.Wait()
		if w.diags.HasError() {
			return
		}
		if len(kinds) > 0 {
			if err := w.cluster.WaitReady(ctx, w.id, kinds, false, nil); err != nil {
				w.diags.Append(w.waiting(err))
				return
			}
			w.cluster.Rediscover()
		}
	}
	if w.prune(ctx, want); w.diags.HasError() || !w.plan.Wait {
		return
	}
	report := func(k object.Key, reason string) {
		providers.CallFrom(ctx).Report(providers.Progress{Step: k.Title() + ": " + reason, Percent: -1})
	}
	if err := w.cluster.WaitReady(ctx, w.id, changed, w.plan.Jobs, report); err != nil {
		w.diags.Append(w.waiting(err))
	}
}

// placed gives an object of a kind that has come meanwhile its namespace.
func (w *work) placed(u *unstructured.Unstructured) object.Key {
	if _, namespaced, err := w.cluster.Mapping(u.GroupVersionKind()); err == nil {
		switch {
		case !namespaced:
			u.SetNamespace("")
		case u.GetNamespace() == "":
			u.SetNamespace("default")
		}
	}
	return object.KeyOf(u)
}

// same reports an object that is as planned and was applied as it is declared.
func (w *work) same(k object.Key, mark string) bool {
	name := k.String()
	now, ok := w.prior[name]
	return ok && now == w.planned[name] && w.done[name].Declared == mark && w.done[name].Result == object.Hash(now)
}

// one applies an object, or makes it anew where it cannot be changed.
func (w *work) one(ctx context.Context, u *unstructured.Unstructured, k object.Key, mark string) {
	result, err := w.put(ctx, u, k)
	if err == nil {
		var text string
		if text, err = w.text(u, result, w.id); err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.texts[k.String()] = text
			w.done[k.String()] = applied{Declared: mark, Result: object.Hash(text)}
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.diags.Append(w.explain(k, err))
}

func (w *work) put(ctx context.Context, u *unstructured.Unstructured, k object.Key) (*unstructured.Unstructured, error) {
	providers.CallFrom(ctx).Report(providers.Progress{Step: "apply " + k.Title(), Percent: -1})
	prior, existed := w.prior[k.String()]
	current, err := w.cluster.Get(ctx, k)
	if err != nil {
		return nil, err
	}
	if current != nil && !existed && current.GetLabels()[live.Mark] != w.id {
		return nil, &existsError{k}
	}
	if current != nil {
		leaveToScaler(u, current)
	}
	force := w.plan.Force.ValueBool()
	result, err := w.cluster.Apply(ctx, u, false, force)
	if conflicts := live.Conflicts(err); existed && len(conflicts) > 0 && w.plan.owned(k, conflicts, prior) {
		result, err = w.cluster.Apply(ctx, u, false, true)
	}
	if existed && current != nil && len(live.Immutable(err)) > 0 {
		if err := w.cluster.Delete(ctx, k, current.GetUID()); err != nil {
			return nil, err
		}
		if err := w.cluster.WaitGone(ctx, current.GetLabels()[live.Mark], []object.Key{k}); err != nil {
			return nil, err
		}
		return w.cluster.Apply(ctx, u, false, force)
	}
	return result, err
}

// prune deletes what is no longer declared.
func (w *work) prune(ctx context.Context, want wanted) {
	var gone []object.Key
	for _, name := range slices.Sorted(maps.Keys(w.prior)) {
		if !slices.Contains(want.keys, name) {
			if k, err := object.ParseKey(name); err == nil {
				gone = append(gone, k)
			}
		}
	}
	w.remove(ctx, gone)
}

// remove deletes objects that carry the resource's mark, the last ones made
// first.
func (w *work) remove(ctx context.Context, keys []object.Key) {
	slices.SortStableFunc(keys, func(a, b object.Key) int { return object.Wave(b.Kind) - object.Wave(a.Kind) })
	for len(keys) > 0 {
		n := 1
		for n < len(keys) && object.Wave(keys[n].Kind) == object.Wave(keys[0].Kind) {
			n++
		}
		wave := keys[:n]
		keys = keys[n:]
		group, inner := errgroup.WithContext(ctx)
		group.SetLimit(atOnce)
		for _, k := range wave {
			group.Go(func() error {
				providers.CallFrom(ctx).Report(providers.Progress{Step: "delete " + k.Title(), Percent: -1})
				if err := w.cluster.Delete(inner, k, ""); err != nil {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.diags.Append(w.explain(k, err))
				}
				return nil
			})
		}
		group.Wait()
		if !w.diags.HasError() {
			if err := w.cluster.WaitGone(ctx, w.id, wave); err != nil {
				w.diags.Append(w.waiting(err))
			}
		}
		if w.diags.HasError() {
			return
		}
		for _, k := range wave {
			delete(w.texts, k.String())
			delete(w.done, k.String())
		}
	}
}

// Delete removes all objects, and waits until they are gone.
func (r *set) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	prior, diags := r.kind.common(ctx, req.State)
	resp.Diagnostics.Append(diags...)
	limit, diags := prior.Timeouts.Delete(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	connection, _, diags := r.settings.connection(ctx, prior.Cluster)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := stoppable(ctx, limit)
	defer cancel()
	cluster, err := r.settings.cluster(ctx, connection, prior.ClusterID.ValueString())
	if err != nil {
		summary, detail := kubernetes.Describe(err)
		resp.Diagnostics.AddAttributeError(clusterAt, summary, detail)
		return
	}
	w := &work{set: r, cluster: cluster, plan: prior, id: prior.ID.ValueString(), texts: prior.texts(), done: map[string]applied{}}
	var keys []object.Key
	for _, name := range slices.Sorted(maps.Keys(w.texts)) {
		k, err := object.ParseKey(name)
		if err != nil {
			resp.Diagnostics.AddAttributeError(objectsAt.AtMapKey(name), "Unknown object in the state", sentence(err))
			continue
		}
		keys = append(keys, k)
	}
	w.remove(ctx, keys)
	resp.Diagnostics.Append(w.diags...)
	if resp.Diagnostics.HasError() { // what is left is what the next destroy looks after
		value, diags := objectsValue(w.texts)
		resp.Diagnostics.Append(diags...)
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, objectsAt, value)...)
	}
}

// waiting is what people read when objects do not become ready, or do not go.
func (w *work) waiting(err error) diag.Diagnostic {
	var ready *live.NotReadyError
	var still *live.StillThereError
	switch {
	case errors.As(err, &ready) && ready.Failed:
		return diag.NewAttributeErrorDiagnostic(w.kind.at, "Object failed", err.Error()+".")
	case errors.As(err, &ready):
		return diag.NewAttributeErrorDiagnostic(w.kind.at, "Object is not ready",
			fmt.Sprintf("%s; %s. It stays as it is, and the next apply waits for it again.", err, orStopped(ready.Err)))
	case errors.As(err, &still):
		return diag.NewAttributeErrorDiagnostic(w.kind.at, "Object does not go",
			fmt.Sprintf("%s; %s. Who set a finalizer has to take it away: look whether that controller still runs.", err, orStopped(still.Err)))
	}
	return diag.NewAttributeErrorDiagnostic(w.kind.at, "Objects cannot be watched", sentence(err))
}

func orStopped(err error) string {
	if err == nil {
		return "the wait was ended"
	}
	return err.Error()
}

// ensure the value type is what the schema says.
var _ = types.MapType{ElemType: types.StringType}
