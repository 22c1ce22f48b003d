package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/runtime/pattern"
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

// Foreign are items that people have added by hand to lists that are declared, and that
// are not declared themselves: an env, a container, or a port whose number was changed,
// which is another item next to ours. What controllers add is theirs.
func Foreign(u, current *unstructured.Unstructured) SharedFields {
	s := SharedFields{fields: fieldpath.NewSet()}
	for _, entry := range current.GetManagedFields() {
		if ours(entry) || entry.Subresource != "" || !isTool(entry.Manager) {
			continue
		}
		items := fieldpath.NewSet()
		for p := range setOf(entry).All() {
			last := len(p) - 1
			if last > 0 && p[last].Key != nil && object.Has(u, p[:last].String()) && !object.Has(u, p.String()) {
				items.Insert(p.Copy())
			}
		}
		if items.Empty() {
			continue
		}
		for p := range setOf(entry).All() {
			if isInItem(p, items) {
				s.fields.Insert(p.Copy())
			}
		}
		s.fields, s.By = s.fields.Union(items), append(s.By, entry.Manager)
	}
	return s
}

// WithForeign is u with the items that people have added by hand to its lists.
func WithForeign(u, current *unstructured.Unstructured) *unstructured.Unstructured {
	s := Foreign(u, current)
	if s.None() {
		return u
	}
	u = u.DeepCopy()
	for p := range s.fields.All() {
		if p[len(p)-1].Key != nil {
			add(u.Object, current.DeepCopy().Object, p)
		}
	}
	return u
}

// add puts the item of a path into the list that to has there.
func add(to, from any, p fieldpath.Path) any {
	if len(p) == 0 {
		return to
	}
	switch e := p[0]; {
	case e.FieldName != nil:
		below, ok := to.(map[string]any)
		live, too := from.(map[string]any)
		if ok && too && below[*e.FieldName] != nil {
			below[*e.FieldName] = add(below[*e.FieldName], live[*e.FieldName], p[1:])
		}
	case e.Key != nil:
		below, ok := to.([]any)
		live, too := from.([]any)
		at := slices.IndexFunc(live, func(v any) bool { return matchesItem(v, e) })
		switch mine := slices.IndexFunc(below, func(v any) bool { return matchesItem(v, e) }); {
		case !ok || !too || at < 0:
		case mine >= 0:
			below[mine] = add(below[mine], live[at], p[1:])
		case len(p) == 1:
			return append(below, live[at])
		}
	}
	return to
}

// matchesItem reports the item of a list that a path's element names.
func matchesItem(v any, e fieldpath.PathElement) bool {
	item, ok := v.(map[string]any)
	return ok && !slices.ContainsFunc(*e.Key, func(f value.Field) bool {
		have, there := item[f.Name]
		return !there || !value.Equals(value.NewValueInterface(have), f.Value)
	})
}

// Blocks reports that an apply was refused for the lists of the items.
func (s SharedFields) Blocks(err error) bool {
	lists := refusedLists(err)
	return !s.None() && slices.ContainsFunc(s.Items(), func(item string) bool {
		return slices.Contains(lists, withoutItems(item))
	})
}

// Items are the items among the fields, such as .spec.ports[port=81,protocol="TCP"].
func (s SharedFields) Items() (all []string) {
	for p := range s.fields.All() {
		if p[len(p)-1].Key != nil {
			all = append(all, p.String())
		}
	}
	return all
}

// refusedLists are the lists that an apply was refused for, such as spec.ports.
func refusedLists(err error) (lists []string) {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		if at := strings.LastIndex(cause.Field, "["); at > 0 {
			lists = append(lists, withoutItems("."+cause.Field[:at]))
		}
	}
	return lists
}

// withoutItems leaves out which items of lists a path leads through.
func withoutItems(path string) string { return oneItem.ReplaceAllString(path, "") }

var oneItem = pattern.New(`\[[^\]]*\]`)

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
		return strings.Contains(field, lastApplied) || err == nil && len(given.Object) > 0 && !object.Has(given, field)
	})
}
