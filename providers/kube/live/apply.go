package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stokehq/stoke/providers/kube/object"
)

// Apply makes an object what u says, where it says something. dry asks what
// would come of it and changes nothing; force takes fields from other managers.
// The result is the whole object.
func (c *Cluster) Apply(ctx context.Context, u *unstructured.Unstructured, dry, force bool) (*unstructured.Unstructured, error) {
	k := object.KeyOf(u)
	r, err := c.resource(k, c.Mapping)
	if err != nil {
		return nil, err
	}
	body, err := u.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write object: %w", err)
	}
	options := metav1.PatchOptions{FieldManager: Manager, Force: &force, FieldValidation: metav1.FieldValidationStrict}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return r.Patch(ctx, k.Name, types.ApplyPatchType, body, options)
}

// Delete removes an object, if it is still the one with the UID; "" is any. A
// missing object is not an error. Its dependents are deleted in the background.
func (c *Cluster) Delete(ctx context.Context, k object.Key, uid types.UID) error {
	r, err := c.resource(k, c.servedVersion)
	if errors.As(err, new(*NoKindError)) {
		return nil
	}
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	if uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err = r.Delete(ctx, k.Name, options)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) && uid != "" {
		return nil // gone, or another one by now
	}
	return err
}

// Unanswered reports the error of a request that may have taken effect all the same:
// the answer did not arrive, or the server failed.
func Unanswered(err error) bool {
	var status apierrors.APIStatus
	return err != nil && (!errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError)
}

// Conflict is a field that another manager owns.
type Conflict struct {
	Manager string // as `"kubectl-edit" using apps/v1`
	Field   string // as .spec.replicas
}

// Conflicts are those that an apply was refused for; none where it was not
// for that.
func Conflicts(err error) []Conflict {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusConflict || status.Status().Details == nil {
		return nil
	}
	var all []Conflict
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		all = append(all, Conflict{Manager: strings.TrimPrefix(cause.Message, "conflict with "), Field: cause.Field})
	}
	return all
}

// MissingNamespace is the namespace that an apply was refused for, because it
// is not there; "" where it was not for that.
func MissingNamespace(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil || status.Status().Details.Kind != "namespaces" {
		return ""
	}
	return status.Status().Details.Name
}

// Terminating is the namespace that an apply was refused for, because it is
// being deleted; "" where it was not for that.
func Terminating(err error, k object.Key) string {
	if apierrors.HasStatusCause(err, core.NamespaceTerminatingCause) {
		return k.Namespace
	}
	return ""
}

// NoDryRun reports that a webhook has effects which forbid a dry run.
func NoDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}
