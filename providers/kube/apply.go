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

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// work applies the declared objects of one resource.
type work struct {
	*set
	cluster *live.Cluster
	plan    common
	promise *promise
	planned map[string]string
	prior   map[string]string
	id      string
	address string

	mu      sync.Mutex
	texts   map[string]string // as they are by now
	done    memory
	diags   diag.Diagnostics
	summary string // hash of all that is declared, for done once it is applied
}

// Create applies all objects. Its id is the operation's id, so that a create
// with an unknown result is found by the mark.
func (r *set) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	plan, diags := r.kind.common(ctx, req.Plan)
	resp.Diagnostics.Append(diags...)
	limit, diags := plan.Timeouts.Create(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	call := providers.CallFrom(ctx)
	id := call.Operation
	if id == "" {
		id = rand.Text() // under an engine without operations
	}
	resp.State.Raw = req.Plan.Raw.Copy()
	w := &work{plan: plan, id: id, done: memory{objects: map[string]applied{}}, promise: plannedOf(call.Planned)}
	r.apply(ctx, req.Config, w, limit, &resp.State, resp.Private, &resp.Diagnostics)
	switch {
	case resp.Diagnostics.HasError() && len(w.texts) == 0: // nothing was made
		resp.State.RemoveResource(ctx)
	case resp.Diagnostics.HasError():
		call.KeepOnError()
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
	was, diags := readMemory(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	text, diags := req.Private.GetKey(ctx, keepPlanned)
	resp.Diagnostics.Append(diags...)
	resp.State.Raw = req.Plan.Raw.Copy()
	w := &work{plan: plan, prior: prior.texts(), id: prior.ID.ValueString(), done: was, promise: readPromise(text)}
	if w.id == "" {
		w.id = rand.Text() // imported
	}
	r.apply(ctx, req.Config, w, limit, &resp.State, resp.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(unfinished(ctx, req.State, &resp.State, w.cluster != nil)...)
	}
}

// unfinished gives the state after a failed update the arguments from before it,
// so that the next plan shows the change again. The connection is the new one
// where that leads to the cluster.
func unfinished(ctx context.Context, from tfsdk.State, state *tfsdk.State, connected bool) (diags diag.Diagnostics) {
	now := tfsdk.State{Raw: state.Raw.Copy(), Schema: state.Schema}
	state.Raw = from.Raw.Copy()
	copied := []path.Path{objectsAt, path.Root("id"), path.Root("cluster_id")}
	if connected {
		copied = append(copied, clusterAt)
	}
	for _, at := range copied {
		var v attr.Value
		diags.Append(now.GetAttribute(ctx, at, &v)...)
		diags.Append(state.SetAttribute(ctx, at, v)...)
	}
	return diags
}

func (r *set) apply(ctx context.Context, config tfsdk.Config, w *work, limit time.Duration, state *tfsdk.State, private keyed, to *diag.Diagnostics) {
	if to.HasError() {
		return
	}
	w.set, w.planned, w.texts = r.showing(ctx, config), w.plan.texts(), maps.Clone(w.prior)
	w.address = providers.CallFrom(ctx).Address
	if w.texts == nil {
		w.texts = map[string]string{}
	}
	ctx, cancel := stoppable(ctx, limit)
	defer cancel()
	w.done.rendered = "" // an apply that fails leaves no summary: the next plan looks at each object
	w.run(ctx, config)
	to.Append(w.diags...)
	if !w.diags.HasError() {
		w.done.rendered = w.summary
		to.Append(w.keepPromise()...)
	}
	value, diags := objectsValue(w.texts)
	to.Append(diags...)
	to.Append(state.SetAttribute(ctx, objectsAt, value)...)
	to.Append(state.SetAttribute(ctx, path.Root("id"), w.id)...)
	clusterID := w.plan.ClusterID.ValueString()
	if w.cluster != nil {
		clusterID = w.cluster.ID
	}
	to.Append(state.SetAttribute(ctx, path.Root("cluster_id"), clusterID)...)
	to.Append(w.done.write(ctx, private)...)
}

// keepPromise gives each object the text that was planned, as Terraform asks,
// and says where the cluster made something else of it: the next refresh tells
// what.
func (w *work) keepPromise() (diags diag.Diagnostics) {
	for _, name := range slices.Sorted(maps.Keys(w.planned)) {
		text, now := w.planned[name], w.texts[name]
		if text == "" || now == "" || now == text {
			continue
		}
		w.texts[name] = text
		if a := w.done.objects[name]; a.Result == object.Hash(now) {
			diags.AddAttributeWarning(objectsAt.AtMapKey(name), "Object is not as it was planned", name+" came out of the apply as another one than out of its dry run. The next plan shows the difference.")
		}
	}
	return diags
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

// renderDeclared renders the declared objects, which must equal the planned ones.
func (w *work) renderDeclared(ctx context.Context, config tfsdk.Config) (want desiredSet, ok bool) {
	objects, known, diags := w.rendered(ctx, config)
	if w.diags.Append(diags...); diags.HasError() {
		return want, false
	}
	if !known {
		w.diags.AddAttributeError(w.kind.at, "Objects are not known", "Their dependencies are not known even now.")
		return want, false
	}
	if broken := w.promise.describeDifference(objects); broken != "" {
		w.diags.AddAttributeError(w.kind.at, "Objects changed since the plan", fmt.Sprintf("The declaration differs "+
			"from the plan: %s. Nothing was applied. Make a new plan.", broken))
		return want, false
	}
	w.summary = rendering(objects, w.id)
	want, diags = w.want(objects, w.cluster)
	w.diags.Append(diags...)
	return want, !diags.HasError()
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
	want, ok := w.renderDeclared(ctx, config)
	if !ok {
		return
	}
	marks := make(map[string]string, len(want.objects))
	for i, u := range want.objects {
		marks[want.keys[i]] = hashDeclared(u, w.id)
	}
	want.mark(w.id)
	for _, wave := range object.Waves(want.objects) {
		if !w.wave(ctx, wave, marks) {
			return
		}
	}
	if w.prune(ctx, want); w.diags.HasError() || !w.plan.Wait {
		return
	}
	w.ready(ctx, want.objects)
}

// wave applies objects that may be made at the same time, and reports whether
// the next ones may follow.
func (w *work) wave(ctx context.Context, wave []*unstructured.Unstructured, marks map[string]string) bool {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	var kinds []*unstructured.Unstructured
	for _, u := range wave {
		k := object.KeyOf(u)
		if w.isUnchanged(k, marks[k.String()]) {
			continue
		}
		if k.Kind == "CustomResourceDefinition" {
			kinds = append(kinds, u)
		}
		group.Go(func() error { w.applyObject(inner, u, k, marks[k.String()]); return nil })
	}
	group.Wait()
	if w.diags.HasError() {
		return false
	}
	if len(kinds) > 0 {
		if w.ready(ctx, kinds); w.diags.HasError() {
			return false
		}
		if err := w.cluster.Defined(ctx, kinds, w.reporter(ctx, object.KeyOf(kinds[0]))); err != nil {
			w.diags.AddAttributeError(w.kind.at, "Kind is not served", upper(sentence(err))+" The next apply waits again.")
		}
	}
	return !w.diags.HasError()
}

// reporter reports the reason why an object waits.
func (w *work) reporter(ctx context.Context, k object.Key) func(string) {
	return func(why string) {
		providers.CallFrom(ctx).Report(providers.Progress{Step: k.Title() + ": " + why, Percent: -1})
	}
}

// ready waits for those objects that were not ready when they were applied.
// Objects that have become ready are remembered, and the others as well.
func (w *work) ready(ctx context.Context, objects []*unstructured.Unstructured) {
	var keys []object.Key
	for _, u := range objects {
		if k := object.KeyOf(u); w.lastApplied(k).Waiting {
			keys = append(keys, k)
		}
	}
	err := w.cluster.WaitReady(ctx, w.id, keys, w.plan.Jobs, func(k object.Key, reason string) {
		if reason == "" {
			w.remember(k, func(a *applied) { a.Waiting = false })
			return
		}
		w.reporter(ctx, k)(reason)
	})
	if err != nil {
		w.diags.Append(w.waiting(err))
	}
}

// isUnchanged reports an object that is as planned and was applied as it is declared.
func (w *work) isUnchanged(k object.Key, mark string) bool {
	name := k.String()
	now := w.prior[name]
	return now != "" && now == w.planned[name] && w.lastApplied(k).holds(now, mark, w.plan.Wait)
}

// applyObject applies an object, or recreates it where it cannot be changed. It
// remembers the answer of the API server.
func (w *work) applyObject(ctx context.Context, u *unstructured.Unstructured, k object.Key, mark string) {
	result, left, err := w.put(ctx, u, k)
	if err != nil {
		w.noteFailure(u, k, err)
		return
	}
	text, err := w.text(u, result, w.id)
	ready := false
	if err == nil {
		ready, _, _, err = w.cluster.StateOf(ctx, result, w.plan.Jobs)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts[k.String()] = text
	w.done.objects[k.String()] = applied{Declared: mark, Result: object.Hash(text), UID: result.GetUID(), Waiting: !ready, Left: left}
	if err != nil {
		w.diags.Append(w.explain(u, err))
	}
}

// noteFailure notes an object whose apply failed: the next plan asks about it
// again, also where the old manifest is declared again. An object that may have
// been made all the same is kept for the next refresh, which looks for it.
func (w *work) noteFailure(u *unstructured.Unstructured, k object.Key, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.diags.Append(w.explain(u, err))
	name := k.String()
	if a, ok := w.done.objects[name]; ok {
		a.Declared = ""
		w.done.objects[name] = a
		return
	}
	if _, there := w.texts[name]; there || !errors.As(err, new(*unansweredError)) {
		return
	}
	if text, err := object.Text(withoutMark(u.Object), w.id); err == nil {
		w.texts[name], w.done.objects[name] = text, applied{}
	}
}

// lastApplied returns the record of the last apply of an object.
func (w *work) lastApplied(k object.Key) applied {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done.objects[k.String()]
}

func (w *work) remember(k object.Key, change func(*applied)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.done.objects[k.String()]
	change(&a)
	w.done.objects[k.String()] = a
}

// forget drops an object that no longer exists, or belongs to another resource.
func (w *work) forget(k object.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.texts, k.String())
	delete(w.done.objects, k.String())
}

// mayChange reports whether the resource may change a live object: its own object, or
// an object that it takes over from another resource in this plan.
func (w *work) mayChange(k object.Key, current *unstructured.Unstructured) bool {
	if w.lastApplied(k).ours(current, w.id) {
		return true
	}
	mark := current.GetLabels()[live.Mark]
	return mark != "" && w.promise != nil && w.promise.Takes[k.String()] == mark
}

func deletionOf(k object.Key, u *unstructured.Unstructured) live.Deletion {
	return live.Deletion{Key: k, UID: u.GetUID(), Mark: u.GetLabels()[live.Mark]}
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
		return diag.NewAttributeErrorDiagnostic(w.kind.at, "Object does not go", stillDetail(still))
	}
	return diag.NewAttributeErrorDiagnostic(w.kind.at, "Objects cannot be watched", sentence(err))
}

func stillDetail(still *live.StillThereError) string {
	advice := "The controller that set a finalizer has to remove it: look whether it still runs."
	switch {
	case slices.Contains(still.Finalizers, "kubernetes.io/pvc-protection"):
		advice = "A pod still uses the claim: the claim is removed after the pod."
	case slices.Contains(still.Finalizers, "kubernetes.io/pv-protection"):
		advice = "A claim still has the volume: the volume is removed after the claim."
	case still.Key.Kind == "Namespace":
		advice = "Its content has to be deleted first: the controller that set a finalizer has to remove it, so look " +
			"whether it still runs. The next destroy waits again."
	}
	return fmt.Sprintf("%s; %s. %s", still, orStopped(still.Err), advice)
}

func orStopped(err error) string {
	if err == nil {
		return "the wait was ended"
	}
	return err.Error()
}
