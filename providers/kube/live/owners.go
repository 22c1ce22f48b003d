package live

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/stokehq/stoke/providers/kube/object"
)

// SharedFields are fields that an apply gives up and that stay, because other managers own
// them as well.
type SharedFields struct {
	fields *fieldpath.Set
	By     []string // managers
}

// None reports an empty set.
func (s SharedFields) None() bool { return s.fields == nil || s.fields.Empty() }

// Fields are their paths, such as .spec.template.spec.containers[name="web"].
func (s SharedFields) Fields() []string { return paths(s.fields) }

func paths(set *fieldpath.Set) (all []string) {
	if set != nil {
		for p := range set.All() {
			all = append(all, p.String())
		}
	}
	return all
}

// SharedBy compares who owned the fields of an object before an apply and after it, or
// after its dry run.
func SharedBy(before, after *unstructured.Unstructured) SharedFields {
	lost := fieldpath.NewSet()
	for _, entry := range before.GetManagedFields() {
		if ours(entry) {
			lost = lost.Union(setOf(entry))
		}
	}
	for _, entry := range after.GetManagedFields() {
		if ours(entry) {
			lost = lost.Difference(setOf(entry))
		}
	}
	s := SharedFields{fields: fieldpath.NewSet()}
	if lost.Empty() {
		return s
	}
	for _, entry := range after.GetManagedFields() {
		if ours(entry) || entry.Subresource != "" { // what scales has its replicas
			continue
		}
		held := setOf(entry).Intersection(lost)
		for p := range setOf(entry).All() { // with an item go all of its fields
			if isInItem(p, lost) {
				held.Insert(p.Copy())
			}
		}
		if !held.Empty() {
			s.fields, s.By = s.fields.Union(held), append(s.By, entry.Manager)
		}
	}
	slices.Sort(s.By)
	s.By = slices.Compact(s.By)
	return s
}

// isInItem reports a field of an item of a list that is in a set.
func isInItem(p fieldpath.Path, items *fieldpath.Set) bool {
	for n := 1; n < len(p); n++ {
		if p[n-1].Key != nil && items.Has(p[:n]) {
			return true
		}
	}
	return false
}

// Owned reports an object that we own fields of together with another manager.
func Owned(u *unstructured.Unstructured) bool {
	mine := fieldpath.NewSet()
	for _, entry := range u.GetManagedFields() {
		if ours(entry) {
			mine = mine.Union(setOf(entry))
		}
	}
	return slices.ContainsFunc(u.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return !ours(entry) && entry.Subresource == "" && !setOf(entry).Intersection(mine).Empty()
	})
}

func setOf(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	s := fieldpath.NewSet()
	if entry.FieldsV1 == nil || s.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return fieldpath.NewSet()
	}
	return s
}

// TakeOver makes stoke the only manager of the fields, so that the next apply removes
// the fields that it leaves out.
func (c *Cluster) TakeOver(ctx context.Context, current *unstructured.Unstructured, s SharedFields) error {
	return writeOwners(ctx, c, object.KeyOf(current), current, s.ownersAfterTakeOver)
}

// ownersAfterTakeOver returns the owners of all fields of an object once these are ours.
func (s SharedFields) ownersAfterTakeOver(current *unstructured.Unstructured) (entries []metav1.ManagedFieldsEntry, err error) {
	for _, entry := range current.GetManagedFields() {
		set := setOf(entry)
		switch {
		case ours(entry):
			set = set.Union(s.fields)
		case entry.Subresource == "":
			set = set.Difference(s.fields)
		default:
			entries = append(entries, entry)
			continue
		}
		if set.Empty() {
			continue
		}
		raw, err := set.ToJSON()
		if err != nil {
			return nil, fmt.Errorf("write the owners of fields: %w", err)
		}
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		entries = append(entries, entry)
	}
	return entries, nil
}

// Tools names the tools that people have used to apply an object that we never have
// applied: kubectl, Helm, Terraform. What controllers own is theirs.
func Tools(u *unstructured.Unstructured) (names []string) {
	for _, entry := range u.GetManagedFields() {
		if ours(entry) {
			return nil
		}
		if entry.Subresource == "" && isTool(entry.Manager) {
			names = append(names, entry.Manager)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func isTool(manager string) bool {
	manager = strings.ToLower(manager)
	tools := []string{"kubectl", "helm", "terraform", "hashicorp", "pulumi", "before-first-apply"}
	return slices.ContainsFunc(tools, func(tool string) bool {
		return manager == tool || strings.HasPrefix(manager, tool+"-") && !strings.HasSuffix(manager, "-controller")
	})
}

// Inherit makes stoke the manager of the fields that tools have applied, as csaupgrade
// does for kubectl: the next apply removes the fields that it leaves out.
func (c *Cluster) Inherit(ctx context.Context, u, current *unstructured.Unstructured, tools []string) error {
	return writeOwners(ctx, c, object.KeyOf(u), current, func(current *unstructured.Unstructured) ([]metav1.ManagedFieldsEntry, error) {
		current = current.DeepCopy()
		entries := current.GetManagedFields()
		for i := range entries {
			if slices.Contains(tools, entries[i].Manager) {
				entries[i].Operation = metav1.ManagedFieldsOperationUpdate // a server-side apply of a tool is taken over in the same way
			}
		}
		current.SetManagedFields(entries)
		err := csaupgrade.UpgradeManagedFields(current, sets.New(tools...), Manager)
		return current.GetManagedFields(), err
	})
}

// lastApplied is the annotation with the manifest that kubectl apply was given.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Inherited are the fields that the first apply after Inherit removes: fields that the
// tools own and the dry run of our apply does not. Where kubectl has noted its manifest,
// only the fields of the manifest count, and not what the API server has added.
func Inherited(current, result *unstructured.Unstructured, tools []string) []string {
	set, mine := fieldpath.NewSet(), fieldpath.NewSet()
	for _, entry := range current.GetManagedFields() {
		if entry.Subresource == "" && slices.Contains(tools, entry.Manager) {
			set = set.Union(setOf(entry))
		}
	}
	for _, entry := range result.GetManagedFields() {
		if ours(entry) {
			mine = mine.Union(setOf(entry))
		}
	}
	going := paths(set.Difference(mine).Leaves())
	given, err := object.FromText(current.GetAnnotations()[lastApplied])
	return slices.DeleteFunc(going, func(field string) bool {
		return strings.Contains(field, lastApplied) || err == nil && len(given.Object) > 0 && !object.HasField(given, field)
	})
}
