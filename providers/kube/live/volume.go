package live

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stokehq/stoke/providers/kube/object"
)

var volume = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}

const retain = "Retain"

// VolumeError says why a volume cannot be a claim's.
type VolumeError struct{ Name, Reason string }

func (e *VolumeError) Error() string { return "the volume " + e.Name + " " + e.Reason }

// Retain lets the volume of a claim outlive it, and names it; "" where there is
// none.
func (c *Cluster) Retain(ctx context.Context, claim *unstructured.Unstructured) (name string, err error) {
	name, _, _ = unstructured.NestedString(claim.Object, "spec", "volumeName")
	if name == "" {
		return "", nil
	}
	v, err := c.Get(ctx, object.Key{GroupVersionKind: volume, Name: name})
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
	v, err := c.Get(ctx, object.Key{GroupVersionKind: volume, Name: name})
	if err != nil {
		return err
	}
	if v == nil {
		return &VolumeError{name, "is not there"}
	}
	ns, _, _ := unstructured.NestedString(v.Object, "spec", "claimRef", "namespace")
	of, _, _ := unstructured.NestedString(v.Object, "spec", "claimRef", "name")
	switch phase, _, _ := unstructured.NestedString(v.Object, "status", "phase"); {
	case phase == "Released" || phase == "Failed":
		return c.change(ctx, v, map[string]any{"claimRef": map[string]any{"namespace": claim.Namespace, "name": claim.Name, "uid": nil, "resourceVersion": nil}})
	case of != "" && (ns != claim.Namespace || of != claim.Name):
		return &VolumeError{name, fmt.Sprintf("belongs to the claim %s/%s", ns, of)}
	}
	return nil
}

// change patches the specification of an object that is still as it was read.
func (c *Cluster) change(ctx context.Context, u *unstructured.Unstructured, spec map[string]any) error {
	k := object.KeyOf(u)
	r, err := c.resource(k, c.served)
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
