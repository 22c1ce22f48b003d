package kube

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// put applies one object.
func (w *work) put(
	ctx context.Context, u *unstructured.Unstructured, k object.Key,
) (result *unstructured.Unstructured, left bool, err error) {
	providers.CallFrom(ctx).Report(providers.Progress{Step: "apply " + k.Title(), Percent: -1})
	current, err := live.GetWithRetry(ctx, w.cluster, u, w.reporter(ctx, k))
	if err != nil {
		return nil, false, err
	}
	if current != nil && !w.mayChange(k, current) {
		return nil, false, &existsError{k}
	}
	if volume := w.wantsVolume(u, func(own string) bool { _, ok := w.planned[own]; return ok }); volume != "" && current == nil {
		if err := w.cluster.Reserve(ctx, volume, k); err != nil {
			return nil, false, err
		}
	}
	free := false
	if current != nil {
		if current.GetDeletionTimestamp() != nil {
			if err := w.cluster.WaitGone(ctx, []live.Deletion{deletionOf(k, current)}); err != nil {
				return nil, false, err
			}
			current = nil
		} else if left, free, err = w.prepare(ctx, u, current); err != nil {
			return nil, false, err
		}
	}
	result, err = w.send(ctx, u, w.plan.Force.ValueBool())
	if conflicts := live.Conflicts(err); len(conflicts) > 0 {
		if free {
			conflicts = withoutField(conflicts, replicasField)
		}
		if w.ownsFields(w.prior[k.String()], conflicts) {
			result, err = w.send(ctx, u, true)
		}
	}
	if current != nil && w.promise.replaces(k.String()) && len(live.FixedFields(k.GroupKind(), err)) > 0 {
		return w.recreate(ctx, u, k, current)
	}
	if current != nil && err == nil {
		if shared := live.SharedBy(current, result); !shared.None() {
			return nil, false, &keptError{k, shared} // another manager was faster
		}
		w.noteStill(k, live.Foreign(u, current).StillIn(current, result))
	}
	return result, left, err
}

// noteStill warns of fields that were taken away, and that the result has again.
func (w *work) noteStill(k object.Key, fields []string) {
	if len(fields) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.diags.AddAttributeWarning(w.kind.at, "Fields are there again", fmt.Sprintf("%s: %s was taken away, and the API "+
		"server or a webhook has set it again. Declare it, or change what sets it.", k.Title(), shorten(fields)))
}

// prepare makes way for the apply of an object that is there: see leaveToScaler.
func (w *work) prepare(ctx context.Context, u, current *unstructured.Unstructured) (left, free bool, err error) {
	moves, err := w.cluster.Moves(ctx, u, current)
	if err == nil && moves {
		if err = w.cluster.Move(ctx, u, current); err == nil {
			current, err = w.cluster.Get(ctx, object.KeyOf(u))
		}
	}
	if err != nil || current == nil {
		return false, false, err
	}
	if tools := live.Tools(current); err == nil && len(tools) > 0 {
		err = w.cluster.Inherit(ctx, u, current, tools)
	}
	if err == nil {
		left, free, err = leaveToScaler(ctx, w.cluster, u, current)
	}
	if added := live.Foreign(u, current); err == nil && !added.None() {
		if err = w.cluster.TakeOver(ctx, current, added); err == nil {
			current, err = w.cluster.Get(ctx, object.KeyOf(u))
		}
	}
	if err == nil && current != nil && live.Owned(current) {
		err = w.release(ctx, u, current)
	}
	return left, free, err
}

// release takes from other managers the fields that leave the manifest, so that they
// go with the apply that follows. An apply that is refused says why by itself.
func (w *work) release(ctx context.Context, u, current *unstructured.Unstructured) error {
	result, err := w.cluster.Apply(ctx, u, true, true)
	if err != nil {
		return nil
	}
	if shared := live.SharedBy(current, result); !shared.None() {
		return w.cluster.TakeOver(ctx, current, shared)
	}
	return nil
}

// keptError reports fields that stay, though the apply should have removed them.
type keptError struct {
	key    object.Key
	shared live.SharedFields
}

func (e *keptError) Error() string {
	return fmt.Sprintf("%s: %s stays, for %s owns it as well", e.key.Title(), shorten(e.shared.Fields()), strings.Join(e.shared.By, ", "))
}

// shorten returns the first of many names, and the number of the others.
func shorten(all []string) string {
	const most = 8
	if len(all) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
	}
	return strings.Join(all, ", ")
}

// unansweredError is for an object that may have been applied all the same.
type unansweredError struct{ error }

func (e *unansweredError) Unwrap() error { return e.error }

// send applies an object.
func (w *work) send(ctx context.Context, u *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	result, err := w.cluster.ApplyWithRetry(ctx, u, force, w.reporter(ctx, object.KeyOf(u)))
	if live.Unanswered(err) {
		err = &unansweredError{err}
	}
	return result, err
}

// recreate deletes an object that cannot be changed, and makes it again.
func (w *work) recreate(
	ctx context.Context, u *unstructured.Unstructured, k object.Key, current *unstructured.Unstructured,
) (*unstructured.Unstructured, bool, error) {
	if w.keeps(w.plan, k) {
		return nil, false, &dataError{k, "would be deleted and recreated"}
	}
	if w.kind.retains && k.Kind == live.Volume.Kind && current.GetDeletionTimestamp() == nil {
		return nil, false, &live.VolumeError{Name: k.Name, Reason: "cannot be recreated while its claim is there",
			Advice: "Leave create_before_destroy out, so that both go first."}
	}
	if err := w.cluster.Delete(ctx, k, current.GetUID()); err != nil {
		return nil, false, err
	}
	if err := w.cluster.WaitGone(ctx, []live.Deletion{deletionOf(k, current)}); err != nil {
		return nil, false, err
	}
	w.forget(k)
	result, err := w.send(ctx, u, w.plan.Force.ValueBool())
	return result, false, err
}
