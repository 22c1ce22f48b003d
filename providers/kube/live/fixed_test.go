package live

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Which fields cannot be changed is told by their names, whatever the words are; what is
// wrong beside them, or within them, is no reason to make an object anew.
func TestFixed(t *testing.T) {
	at := field.NewPath
	for name, c := range map[string]struct {
		kind schema.GroupKind
		errs field.ErrorList
		want []string
	}{
		"words of 1.35":    {schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}, field.ErrorList{field.Invalid(at("roleRef"), "x", "cannot change roleRef")}, []string{"roleRef"}},
		"containers":       {schema.GroupKind{Kind: "Pod"}, field.ErrorList{field.Forbidden(at("spec", "containers"), "pod updates may not add or remove containers")}, []string{"spec.containers"}},
		"item":             {schema.GroupKind{Kind: "Service"}, field.ErrorList{field.Invalid(at("spec", "clusterIPs").Index(0), "x", "may not change once set")}, []string{"spec.clusterIPs[0]"}},
		"within":           {schema.GroupKind{Group: "batch", Kind: "Job"}, field.ErrorList{field.Invalid(at("spec", "template", "spec", "restartPolicy"), "x", "field is immutable")}, nil},
		"beside":           {schema.GroupKind{Group: "batch", Kind: "Job"}, field.ErrorList{field.Invalid(at("spec", "template"), "x", "field is immutable"), field.Invalid(at("metadata", "labels"), "x", "is wrong")}, nil},
		"missing":          {schema.GroupKind{Group: "batch", Kind: "Job"}, field.ErrorList{field.Required(at("spec", "template"), "")}, nil},
		"stateful set":     {schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, field.ErrorList{field.Forbidden(at("spec"), "updates to statefulset spec are forbidden")}, nil},
		"rule of a custom": {schema.GroupKind{Group: "example.com", Kind: "Store"}, field.ErrorList{field.Invalid(at("spec", "size"), 2, "is immutable")}, nil},
		"of another group": {schema.GroupKind{Group: "example.com", Kind: "Service"}, field.ErrorList{field.Invalid(at("spec", "clusterIP"), 2, "is immutable")}, nil},
	} {
		if got := FixedFields(c.kind, apierrors.NewInvalid(c.kind, "a", c.errs)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
