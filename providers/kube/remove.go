package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// prune deletes objects that are no longer declared, except objects that
// another resource declares now.
func (w *work) prune(ctx context.Context, want desiredSet) {
	var gone []object.Key
	for _, name := range undeclared(w.prior, want.keys) {
		k, err := object.ParseKey(name)
		if err != nil {
			continue
		}
		if w.keeps(w.plan, k) && !w.settings.doubts.moved(w.cluster.ID, name, w.address) {
			w.diags.Append(w.explainData(&dataError{k, "is no longer declared and would be deleted"}))
			return
		}
		gone = append(gone, k)
	}
	w.remove(ctx, gone)
}

// remove deletes the resource's objects, the last created first.
func (w *work) remove(ctx context.Context, keys []object.Key) {
	slices.SortStableFunc(keys, func(a, b object.Key) int { return object.Wave(b.GroupKind()) - object.Wave(a.GroupKind()) })
	for len(keys) > 0 {
		n := 1
		for n < len(keys) && object.Wave(keys[n].GroupKind()) == object.Wave(keys[0].GroupKind()) {
			n++
		}
		wave := keys[:n]
		keys = keys[n:]
		going := w.drop(ctx, wave)
		if !w.diags.HasError() {
			if err := w.cluster.WaitGone(ctx, going); err != nil {
				w.diags.Append(w.waiting(err))
			}
		}
		if w.diags.HasError() {
			return
		}
		for _, k := range wave {
			w.forget(k)
		}
	}
}

// drop deletes the resource's own objects among them, and returns these.
func (w *work) drop(ctx context.Context, wave []object.Key) (going []live.Deletion) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, k := range wave {
		if w.settings.doubts.moved(w.cluster.ID, k.String(), w.address) {
			continue
		}
		group.Go(func() error {
			providers.CallFrom(ctx).Report(providers.Progress{Step: "delete " + k.Title(), Percent: -1})
			current, err := w.cluster.Get(ctx, k)
			if err == nil && current != nil && w.lastApplied(k).ours(current, w.id) {
				if err = w.retain(ctx, k, current); err != nil {
					return w.failed(k, err)
				}
				if err = w.cluster.Delete(ctx, k, current.GetUID()); err == nil {
					w.remember(k, func(a *applied) { a.Declared = "" }) // it is removed, whether or not the wait for it succeeds
					mu.Lock()
					defer mu.Unlock()
					going = append(going, deletionOf(k, current))
				}
			}
			return w.failed(k, err)
		})
	}
	group.Wait()
	return going
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
		address := providers.CallFrom(ctx).Address
		if address == "" {
			address = "ADDRESS"
		}
		resp.Diagnostics.AddAttributeError(clusterAt, summary, fmt.Sprintf("%s Where the cluster is gone for good, `stoke state rm '%s'` forgets its objects.", detail, address))
		return
	}
	was, diags := readMemory(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	w := &work{set: r, cluster: cluster, plan: prior, id: prior.ID.ValueString(), texts: prior.texts(), done: was, address: providers.CallFrom(ctx).Address}
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
		w.done.rendered = ""
		resp.Diagnostics.Append(w.done.write(ctx, resp.Private)...)
	}
}

// failed reports an object that could not be deleted; err may be nil.
func (w *work) failed(k object.Key, err error) error {
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.diags.Append(w.explainKey(k, err))
	}
	return nil
}

// retain sets the reclaim policy of the volumes of deleted claims to Retain,
// unless their data are to be deleted: of a deleted claim, and of the claims in
// a deleted namespace.
func (w *work) retain(ctx context.Context, k object.Key, u *unstructured.Unstructured) error {
	switch {
	case k.Kind == "Namespace" && k.Group == "":
		kept, err := w.cluster.RetainIn(ctx, k.Name)
		for _, claim := range slices.Sorted(maps.Keys(kept)) {
			w.reportKept(k.Name+"/"+claim, kept[claim])
		}
		return err
	case k.Kind == "PersistentVolumeClaim" && !w.plan.Lose:
		volume, err := w.cluster.Retain(ctx, u)
		own := object.Key{GroupVersionKind: live.Volume, Name: volume}.String() // it goes without its data
		if err == nil && volume != "" && w.prior[own] == "" && w.texts[own] == "" {
			w.reportKept(k.Namespace+"/"+k.Name, volume)
		}
		return err
	}
	return nil
}

func (w *work) reportKept(claim, volume string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.diags.AddAttributeWarning(w.kind.at, "Volume is kept", fmt.Sprintf("The claim %s is deleted, its volume %s stays with all data. A kube_volume_claim with volume_name = %q takes it over; kubectl delete persistentvolume forgets it.", claim, volume, volume))
}
