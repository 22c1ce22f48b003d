package object

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// HasField reports whether an object has a field that is named as in conflicts of an
// apply, such as .spec.template.spec.containers[name="web"].image. The names of
// keys may have dots and slashes themselves (.data.nginx.conf), so that the
// object tells where they end.
func HasField(u *unstructured.Unstructured, field string) bool { return hasField(u.Object, field) }

func hasField(at any, field string) bool {
	if field == "" {
		return true
	}
	switch at := at.(type) {
	case map[string]any:
		name, ok := strings.CutPrefix(field, ".")
		if !ok {
			return false
		}
		for k, v := range at {
			if rest, ok := strings.CutPrefix(name, k); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') && hasField(v, rest) {
				return true
			}
		}
	case []any:
		key, rest, ok := item(field)
		if !ok {
			return false
		}
		for _, v := range at {
			if key.matches(v) && hasField(v, rest) {
				return true
			}
		}
	}
	return false
}

// itemKey picks items of a list: by the values of fields in canonical JSON, or
// by that of the item itself under the name "".
type itemKey map[string]string

func (k itemKey) matches(v any) bool {
	if want, ok := k[""]; ok {
		return canonical(v) == want
	}
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for name, want := range k {
		if have, ok := m[name]; ok && canonical(have) != want { // a key that is left out was set by the API server
			return false
		}
	}
	return true
}

// item takes the key of an item from the beginning of a field: [name="web"],
// [containerPort=80,protocol="TCP"], or [="x"] for the member of a set.
func item(field string) (key itemKey, rest string, ok bool) {
	rest, ok = strings.CutPrefix(field, "[")
	key = itemKey{}
	for ok {
		var name string
		if name, rest, ok = strings.Cut(rest, "="); !ok {
			break
		}
		from := json.NewDecoder(strings.NewReader(rest))
		var value any
		if from.Decode(&value) != nil {
			return nil, "", false
		}
		key[name] = canonical(value)
		rest = rest[from.InputOffset():]
		if after, more := strings.CutPrefix(rest, ","); more {
			rest = after
			continue
		}
		rest, ok = strings.CutPrefix(rest, "]")
		return key, rest, ok
	}
	return nil, "", false
}
