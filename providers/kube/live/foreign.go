package live

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/runtime/pattern"
)

// Foreign are additions of people to a declared object that are not declared
// themselves: items of its lists (an env, a container, or a port whose number was
// changed, which is another item next to ours), and fields of its pod template, such
// as hostNetwork. Additions of controllers, and defaults of the API, are not foreign.
func Foreign(u, current *unstructured.Unstructured) SharedFields {
	s := SharedFields{fields: fieldpath.NewSet()}
	begun := slices.ContainsFunc(current.GetManagedFields(), ours) // before our first apply, fields are inherited
	for _, entry := range current.GetManagedFields() {
		if ours(entry) || entry.Subresource != "" || !isTool(entry.Manager) {
			continue
		}
		set, added := setOf(entry), fieldpath.NewSet()
		for p := range set.All() {
			last := len(p) - 1
			if last > 0 && p[last].Key != nil && object.HasField(u, p[:last].String()) && !object.HasField(u, p.String()) {
				added.Insert(p.Copy())
			}
		}
		for p := range set.All() {
			if begun && !isBelow(p, added) && addedToTemplate(p, u, current) {
				added.Insert(p.Copy())
			}
		}
		for p := range set.All() {
			if isBelow(p, added) { // the items of a list go with the list
				s.fields.Insert(p.Copy())
			}
		}
		if !added.Empty() {
			s.fields, s.By = s.fields.Union(added), append(s.By, entry.Manager)
		}
	}
	return s
}

// ListUndeclared lists fields that people have set next to declared ones: they stay, and may be the
// reason why an apply is refused. Foreign has the others.
func ListUndeclared(u, current *unstructured.Unstructured) SharedFields {
	s := SharedFields{fields: fieldpath.NewSet()}
	for _, entry := range current.GetManagedFields() {
		if ours(entry) || entry.Subresource != "" || !isTool(entry.Manager) {
			continue
		}
		before := s.fields.Size()
		for p := range setOf(entry).All() {
			n := len(p)
			if n > 1 && *p[0].FieldName != "metadata" && object.HasField(u, p[:n-1].String()) && !object.HasField(u, p.String()) {
				s.fields.Insert(p.Copy())
			}
		}
		if s.fields.Size() > before {
			s.By = append(s.By, entry.Manager)
		}
	}
	return s
}

// templates are the paths of pod specifications in objects that make pods.
var templates = []string{".spec.template.spec", ".spec.jobTemplate.spec.template.spec"}

// addedToTemplate reports a field of the declared pod template of u that u does not
// declare. A default of the API counts only in a structure that is not declared
// either: a probe is removed with its defaults.
func addedToTemplate(p fieldpath.Path, u, current *unstructured.Unstructured) bool {
	field := p.String()
	if !slices.ContainsFunc(templates, func(at string) bool { return strings.HasPrefix(field, at+".") && object.HasField(u, at) }) {
		return false
	}
	last := p[len(p)-1]
	live, there := valueAt(current.Object, p)
	if last.FieldName == nil || !there || object.HasField(u, field) {
		return false
	}
	parent := p[:len(p)-1].String()
	if *last.FieldName == "serviceAccount" { // the API server copies it from serviceAccountName, and back where only this one is left
		return !object.HasField(u, parent+".serviceAccountName")
	}
	return !object.HasField(u, parent) || !isDefault(*last.FieldName, live)
}

// isDefault reports a value that the API sets in pod templates that leave it out.
func isDefault(field string, live any) bool {
	if m, ok := live.(map[string]any); ok && len(m) == 0 {
		return true // securityContext, resources
	}
	defaults := map[string][]any{
		"dnsPolicy": {"ClusterFirst"}, "restartPolicy": {"Always"}, "schedulerName": {"default-scheduler"},
		"terminationGracePeriodSeconds": {int64(30)}, "imagePullPolicy": {"IfNotPresent", "Always"},
		"terminationMessagePath": {"/dev/termination-log"}, "terminationMessagePolicy": {"File"}, "protocol": {"TCP"}, "scheme": {"HTTP"},
		"timeoutSeconds": {int64(1)}, "periodSeconds": {int64(10)}, "successThreshold": {int64(1)}, "failureThreshold": {int64(3)},
		"defaultMode": {int64(420)},
	}
	return slices.Contains(defaults[field], live)
}

// valueAt returns the value at a path.
func valueAt(at any, p fieldpath.Path) (any, bool) {
	for _, e := range p {
		switch below := at.(type) {
		case map[string]any:
			if e.FieldName == nil {
				return nil, false
			}
			v, ok := below[*e.FieldName]
			if !ok {
				return nil, false
			}
			at = v
		case []any:
			n := -1
			if e.Key != nil {
				n = slices.IndexFunc(below, func(v any) bool { return matchesItem(v, e) })
			}
			if n < 0 {
				return nil, false
			}
			at = below[n]
		default:
			return nil, false
		}
	}
	return at, true
}

// WithForeign is u with the additions of people to it.
func WithForeign(u, current *unstructured.Unstructured) *unstructured.Unstructured {
	s := Foreign(u, current)
	if s.None() {
		return u
	}
	u, current = u.DeepCopy(), current.DeepCopy()
	for p := range s.fields.All() {
		if live, ok := valueAt(current.Object, p); ok {
			add(u.Object, live, p)
		}
	}
	return u
}

// add puts the value of a path at that path of to, and returns to. Values that are
// there stay.
func add(to, live any, p fieldpath.Path) any {
	switch e := p[0]; {
	case e.FieldName != nil:
		below, ok := to.(map[string]any)
		have, there := below[*e.FieldName]
		switch {
		case !ok:
		case len(p) > 1 && there:
			below[*e.FieldName] = add(have, live, p[1:])
		case len(p) > 1 && p[1].FieldName != nil:
			below[*e.FieldName] = add(map[string]any{}, live, p[1:])
		case len(p) == 1 && !there:
			below[*e.FieldName] = live
		}
	case e.Key != nil:
		below, ok := to.([]any)
		switch mine := slices.IndexFunc(below, func(v any) bool { return matchesItem(v, e) }); {
		case !ok:
		case len(p) > 1 && mine >= 0:
			below[mine] = add(below[mine], live, p[1:])
		case len(p) == 1 && mine < 0:
			return append(below, live)
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

// Blocks reports that an apply was refused for a list of added items, or for a structure
// of added fields: a probe has one handler, and ours is another one.
func (s SharedFields) Blocks(err error) bool {
	if s.None() {
		return false
	}
	causes, found := refusedFields(err), false
	for p := range s.fields.All() { // to the end: All allows no other
		if isBelow(p, s.fields) {
			continue
		}
		around := withoutItems(p.String())
		if p[len(p)-1].FieldName != nil {
			around = around[:strings.LastIndex(around, ".")]
		}
		found = found || slices.ContainsFunc(causes, func(field string) bool { return strings.HasPrefix(field+".", around+".") })
	}
	return found
}

// StillIn names those of the fields that another object has, too, with the values that
// they have in before.
func (s SharedFields) StillIn(before, after *unstructured.Unstructured) (names []string) {
	if s.None() {
		return nil
	}
	for p := range s.fields.All() {
		had, was := valueAt(before.Object, p)
		has, is := valueAt(after.Object, p)
		if !isBelow(p, s.fields) && was && is && value.Equals(value.NewValueInterface(had), value.NewValueInterface(has)) {
			names = append(names, p.String())
		}
	}
	return names
}

// Items are the additions, such as .spec.ports[port=81,protocol="TCP"], without the
// fields of added items and structures.
func (s SharedFields) Items() (all []string) {
	for p := range s.fields.All() {
		if !isBelow(p, s.fields) {
			all = append(all, p.String())
		}
	}
	return all
}

// isBelow reports a path that begins with another path of a set.
func isBelow(p fieldpath.Path, set *fieldpath.Set) bool {
	for n := 1; n < len(p); n++ {
		if set.Has(p[:n]) {
			return true
		}
	}
	return false
}

// refusedFields are the fields that an apply was refused for, such as .spec.ports.name,
// without the items of lists that they are in.
func refusedFields(err error) (fields []string) {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, withoutItems("."+cause.Field))
	}
	return fields
}

// withoutItems leaves out which items of lists a path leads through.
func withoutItems(path string) string { return oneItem.ReplaceAllString(path, "") }

var oneItem = pattern.New(`\[[^\]]*\]`)
