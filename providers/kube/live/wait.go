package live

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/stokehq/stoke/providers/kube/object"
)

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

// Ready reports the state of an object by the rules of kstatus and r.
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
	for _, m := range object.Parts(u.Object, "status", "conditions") {
		if m["status"] != "True" {
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
// each waits for, whenever that changes, and "" when it is ready.
func (c *Cluster) WaitReady(ctx context.Context, id string, keys []object.Key, complete bool, report func(object.Key, string)) error {
	watches := map[watchTarget][]object.Key{}
	for _, k := range keys {
		of := watchTarget{listOf: listOf{k.GroupVersionKind, k.Namespace}, label: Mark + "=" + id}
		watches[of] = append(watches[of], k)
	}
	a := &asking{Cluster: c, report: report, waits: map[object.Key]string{}}
	asked, stop := context.WithCancel(ctx)
	defer stop()
	go a.ask(asked)
	return a.explainError(ctx, c.watchAll(ctx, watches, func(ctx context.Context, keys []object.Key) (look, func() error) {
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
				ready, failed, reason, err := c.StateOf(ctx, u, complete)
				if err != nil {
					return false, err
				}
				if failed {
					return false, &NotReadyError{Key: k, Reason: reason, Failed: true}
				}
				if ready {
					reason = ""
				} else if reason == "" {
					reason = "its status does not say so yet"
				}
				if reason != waits[k] {
					a.noteReason(k, reason)
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
	}))
}

// StateOf reports the state of an object: Ready with the rules of its kind.
// complete asks for Jobs that have ended well.
func (c *Cluster) StateOf(ctx context.Context, u *unstructured.Unstructured, complete bool) (ready, failed bool, reason string, err error) {
	unbound, err := c.unbound(ctx, u)
	if err != nil {
		return false, false, "", err
	}
	ready, failed, reason = Ready(u, Rules{Complete: complete, Unbound: unbound})
	return ready, failed, reason, nil
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
	By         map[string]string // who set them, as far as that is known
	Reason     string            // of a namespace: what its conditions say
	Err        error
}

func (e *StillThereError) Error() string {
	text := e.Key.Title() + " is still there"
	if len(e.Finalizers) > 0 {
		held := slices.Clone(e.Finalizers)
		for i, f := range held {
			if by := e.By[f]; by != "" {
				held[i] += " (of " + by + ")"
			}
		}
		text += ", held by the finalizers " + strings.Join(held, ", ")
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

func (e *StillThereError) Unwrap() error { return e.Err }

// Deletion is an object that is being deleted.
type Deletion struct {
	object.Key
	UID  types.UID
	Mark string // what its label says; "" where it has none
}

// WaitGone watches objects until none of them is there: another one of the same
// name is not waited for.
func (c *Cluster) WaitGone(ctx context.Context, going []Deletion) error {
	watches, uids := map[watchTarget][]object.Key{}, map[object.Key]types.UID{}
	for _, g := range going {
		of := watchTarget{listOf: listOf{g.GroupVersionKind, g.Namespace}, label: Mark + "=" + g.Mark}
		if g.Mark == "" {
			of.label, of.name = "", g.Name
		}
		watches[of], uids[g.Key] = append(watches[of], g.Key), g.UID
	}
	return c.watchAll(ctx, watches, func(ctx context.Context, keys []object.Key) (look, func() error) {
		there := map[object.Key]*StillThereError{}
		return func(k object.Key, u *unstructured.Unstructured) (bool, error) {
				if u == nil || u.GetUID() != uids[k] {
					delete(there, k)
					return true, nil
				}
				there[k] = StillThere(k, u)
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

// StillThere says what keeps an object that is being deleted.
func StillThere(k object.Key, u *unstructured.Unstructured) *StillThereError {
	still := &StillThereError{Key: k, Finalizers: u.GetFinalizers()}
	if k.Kind == "Namespace" {
		still.Finalizers, still.Reason = remaining(u)
	}
	still.By = make(map[string]string, len(still.Finalizers))
	for _, f := range still.Finalizers {
		still.By[f] = object.FinalizedBy(u, f)
	}
	return still
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
