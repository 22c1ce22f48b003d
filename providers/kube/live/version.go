package live

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/stokehq/stoke/providers/kube/object"
)

// Moves reports an object of a CRD that was last applied in another version than now,
// where nothing converts between the two: the API server compares fields of the new
// version with the schema of the old version, and refuses fields that this schema does
// not have.
func (c *Cluster) Moves(ctx context.Context, u, current *unstructured.Unstructured) (bool, error) {
	if !appliedElsewhere(u, current) {
		return false, nil
	}
	gvr, _, err := c.Mapping(u.GroupVersionKind())
	if err != nil {
		return false, nil // it is not served yet
	}
	crd, err := c.Get(ctx, object.Key{GroupVersionKind: crdKind.WithVersion("v1"), Name: gvr.Resource + "." + gvr.Group})
	if apierrors.IsForbidden(err) || err == nil && crd == nil {
		return false, nil // its kind is the API server's own kind, or stoke may not read CRDs
	}
	if err != nil {
		return false, err
	}
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	return strategy != "Webhook", nil
}

func appliedElsewhere(u, current *unstructured.Unstructured) bool {
	for _, entry := range current.GetManagedFields() {
		if ours(entry) && entry.APIVersion != u.GetAPIVersion() {
			return true
		}
	}
	return false
}

func ours(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == Manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// Move makes what we own of an object be owned in the version of u. It is for objects
// that Moves reports.
func (c *Cluster) Move(ctx context.Context, u, current *unstructured.Unstructured) error {
	return writeOwners(ctx, c, object.KeyOf(u), current, func(current *unstructured.Unstructured) ([]metav1.ManagedFieldsEntry, error) {
		entries := current.GetManagedFields()
		for i := range entries {
			if ours(entries[i]) {
				entries[i].APIVersion = u.GetAPIVersion()
			}
		}
		return entries, nil
	})
}

// writeOwners writes the owners of the fields of an object: change returns them for the
// object as it is. Others may write at the same time, such as the controller that keeps
// its status.
func writeOwners(
	ctx context.Context, c *Cluster, k object.Key, current *unstructured.Unstructured,
	change func(*unstructured.Unstructured) ([]metav1.ManagedFieldsEntry, error),
) error {
	r, err := c.resource(k, c.Mapping)
	if err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if current == nil {
			if current, err = c.Get(ctx, k); err != nil || current == nil {
				return err
			}
		}
		entries, err := change(current)
		if err != nil {
			return err
		}
		patch, err := json.Marshal([]map[string]any{
			{"op": "replace", "path": "/metadata/managedFields", "value": entries},
			{"op": "replace", "path": "/metadata/resourceVersion", "value": current.GetResourceVersion()},
		})
		if err != nil {
			return fmt.Errorf("write the owners of fields: %w", err)
		}
		current = nil
		_, err = r.Patch(ctx, k.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: Manager})
		return err
	})
}
