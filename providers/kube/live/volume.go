package live

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stokehq/stoke/providers/kube/object"
)

// Volume is the kind of volumes.
var Volume = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}

const retain = "Retain"

const otherVolume = "Name an existing volume that is not bound to another claim."

// Keep is the annotation of claims whose volumes are to outlive them, however
// they go.
const Keep = "stoke.dev/keep-volume"

var claims = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}

// RetainIn lets the volumes in a namespace outlive it whose claims say so, and
// names them by their claims.
func (c *Cluster) RetainIn(ctx context.Context, namespace string) (kept map[string]string, err error) {
	found, err := c.Dynamic.Resource(claims).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: Mark})
	if err != nil {
		return nil, fmt.Errorf("look for volumes to keep: %w", err)
	}
	kept = map[string]string{}
	for i := range found.Items {
		claim := &found.Items[i]
		if claim.GetAnnotations()[Keep] == "" {
			continue
		}
		name, err := c.Retain(ctx, claim)
		if err != nil {
			return kept, err
		}
		if name != "" {
			kept[claim.GetName()] = name
		}
	}
	return kept, nil
}

// VolumeError is the reason why a claim cannot use a volume, with the remedy.
type VolumeError struct{ Name, Reason, Advice string }

func (e *VolumeError) Error() string { return "the volume " + e.Name + " " + e.Reason }

// Retain lets the volume of a claim outlive it, and names it; "" where there is
// none.
func (c *Cluster) Retain(ctx context.Context, claim *unstructured.Unstructured) (name string, err error) {
	name, _, _ = unstructured.NestedString(claim.Object, "spec", "volumeName")
	if name == "" {
		return "", nil
	}
	v, err := c.Get(ctx, object.Key{GroupVersionKind: Volume, Name: name})
	if err != nil || v == nil {
		return "", err
	}
	if policy, _, _ := unstructured.NestedString(v.Object, "spec", "persistentVolumeReclaimPolicy"); policy == retain {
		return name, nil
	}
	return name, c.change(ctx, v, map[string]any{"persistentVolumeReclaimPolicy": retain})
}

// Reserve gives a volume whose claim is gone to another claim. Its data stay.
func (c *Cluster) Reserve(ctx context.Context, name string, claim object.Key) error {
	v, err := c.Available(ctx, name, claim)
	if err != nil {
		return err
	}
	if phase, _, _ := unstructured.NestedString(v.Object, "status", "phase"); !released(phase) {
		return nil
	}
	err = c.change(ctx, v, map[string]any{"claimRef": map[string]any{"namespace": claim.Namespace, "name": claim.Name, "uid": nil, "resourceVersion": nil}})
	if apierrors.IsConflict(err) {
		return &VolumeError{name, "was changed by another client in this moment, perhaps by a claim", "Apply again, or name another volume."}
	}
	return err
}

func released(phase string) bool { return phase == "Released" || phase == "Failed" }

// Available reads a volume that a claim can have.
func (c *Cluster) Available(ctx context.Context, name string, claim object.Key) (*unstructured.Unstructured, error) {
	v, err := c.Get(ctx, object.Key{GroupVersionKind: Volume, Name: name})
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, &VolumeError{name, "is not there", otherVolume}
	}
	ns, _, _ := unstructured.NestedString(v.Object, "spec", "claimRef", "namespace")
	of, _, _ := unstructured.NestedString(v.Object, "spec", "claimRef", "name")
	if phase, _, _ := unstructured.NestedString(v.Object, "status", "phase"); !released(phase) && of != "" && (ns != claim.Namespace || of != claim.Name) {
		return nil, &VolumeError{name, fmt.Sprintf("belongs to the claim %s/%s", ns, of), otherVolume}
	}
	return v, nil
}

// change patches the specification of an object that is still as it was read.
func (c *Cluster) change(ctx context.Context, u *unstructured.Unstructured, spec map[string]any) error {
	k := object.KeyOf(u)
	r, err := c.resource(k, c.servedVersion)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": u.GetResourceVersion()}, "spec": spec})
	if err != nil {
		return err
	}
	if _, err = r.Patch(ctx, k.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: Manager}); err != nil {
		return fmt.Errorf("change %s: %w", k.Title(), err)
	}
	return nil
}
