package object

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fields is what all managers of an object together own, as its managedFields
// say: "f:spec" for a field, `k:{"name":"x"}` for the item of a list that has
// keys, `v:"x"` for a member of a set, "." for the field itself. A list
// without such parts is one value.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/
type fields map[string]fields

// fieldsOf merges an object's managedFields.
func fieldsOf(u *unstructured.Unstructured) fields {
	all := fields{}
	for _, entry := range u.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		var one fields
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &one) == nil {
			all.merge(one)
		}
	}
	return all
}

func (f fields) merge(other fields) {
	for k, v := range other {
		if mine, ok := f[k]; ok && mine != nil {
			mine.merge(v)
			continue
		}
		if v == nil {
			v = fields{}
		}
		f[k] = v
	}
}

// Project is what a live object has where want says something: what others
// wrote beside it, and what the API server added, is left out; so is what want
// has and live lacks. Lists whose items have keys are matched by these. The
// result shares parts with live.
func Project(live, want *unstructured.Unstructured) map[string]any {
	return projectMap(live.Object, want.Object, fieldsOf(live))
}

func projectMap(live, want map[string]any, f fields) map[string]any {
	out := make(map[string]any, len(want))
	for k, w := range want {
		if l, ok := live[k]; ok {
			out[k] = project(l, w, f["f:"+k])
		}
	}
	return out
}

func project(live, want any, f fields) any {
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok || len(l) > 0 && f != nil && len(f) == 0 {
			return live // another type, or a map that is one value
		}
		return projectMap(l, w, f)
	case []any:
		l, ok := live.([]any)
		if !ok {
			return live
		}
		return projectList(l, w, f)
	}
	return live
}

func projectList(live, want []any, f fields) any {
	keyed, set := map[string]fields{}, false
	for part, below := range f {
		if key, ok := strings.CutPrefix(part, "k:"); ok {
			keyed[key] = below
		}
		set = set || strings.HasPrefix(part, "v:")
	}
	switch {
	case len(keyed) > 0:
		return projectItems(live, want, keyed)
	case set:
		out := []any{}
		for _, w := range want {
			if slices.ContainsFunc(live, func(l any) bool { return canonical(l) == canonical(w) }) {
				out = append(out, w)
			}
		}
		return out
	}
	return live
}

// projectItems matches the items of want with those of live that have the same
// keys; a key that want leaves out was set by the API server.
func projectItems(live, want []any, keyed map[string]fields) any {
	keys := map[string]bool{}
	below := make(map[string]fields, len(keyed))
	for text, f := range keyed {
		var key map[string]any
		if json.Unmarshal([]byte(text), &key) != nil {
			continue
		}
		for name := range key {
			keys[name] = true
		}
		below[canonical(key)] = f
	}
	sorted := slices.Sorted(maps.Keys(keys))
	index := make(map[string][]map[string]any, len(live)) // by the first key, so that long lists stay cheap
	for _, l := range live {
		if item, ok := l.(map[string]any); ok {
			at := canonical(item[sorted[0]])
			index[at] = append(index[at], item)
		}
	}
	out := []any{}
	for _, w := range want {
		item, ok := w.(map[string]any)
		if !ok {
			continue
		}
		candidates := index[canonical(item[sorted[0]])]
		if item[sorted[0]] == nil {
			candidates = nil
			for _, l := range live {
				if m, ok := l.(map[string]any); ok {
					candidates = append(candidates, m)
				}
			}
		}
		for _, l := range candidates {
			if agree(l, item, sorted) {
				out = append(out, projectMap(l, item, below[canonical(pick(l, sorted))]))
				break
			}
		}
	}
	return out
}

func agree(live, want map[string]any, keys []string) bool {
	for _, k := range keys {
		if w, ok := want[k]; ok && canonical(w) != canonical(live[k]) {
			return false
		}
	}
	return true
}

func pick(item map[string]any, keys []string) map[string]any {
	out := make(map[string]any, len(keys))
	for _, k := range keys {
		if v, ok := item[k]; ok {
			out[k] = v
		}
	}
	return out
}

func canonical(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// FinalizedBy finds who set a finalizer; "" where that is not known.
func FinalizedBy(u *unstructured.Unstructured, finalizer string) string {
	for _, entry := range u.GetManagedFields() {
		var f fields
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &f) != nil {
			continue
		}
		if _, ok := f["f:metadata"]["f:finalizers"]["v:"+canonical(finalizer)]; ok {
			return entry.Manager
		}
	}
	return ""
}

// TakenBy finds who set a field by a subresource, such as an autoscaler that
// scales: "" for nobody.
func TakenBy(u *unstructured.Unstructured, subresource string, path ...string) string {
	for _, entry := range u.GetManagedFields() {
		if entry.Subresource != subresource || entry.FieldsV1 == nil {
			continue
		}
		var f fields
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &f) != nil {
			continue
		}
		found := true
		for _, p := range path {
			if f, found = f["f:"+p]; !found {
				break
			}
		}
		if found {
			return entry.Manager
		}
	}
	return ""
}
