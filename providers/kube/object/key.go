package object

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Key names an object of one cluster: group, kind, namespace and name are its
// identity, which String tells. The version is only how to ask for it, and may
// be empty, which is the cluster's preferred one.
type Key struct {
	schema.GroupVersionKind
	Namespace, Name string
}

// KeyOf is the key of an object.
func KeyOf(u *unstructured.Unstructured) Key {
	return Key{u.GroupVersionKind(), u.GetNamespace(), u.GetName()}
}

// String is the identity as text, such as "apps/Deployment/default/web" or
// "ConfigMap/default/web", without the namespace where there is none.
func (k Key) String() string {
	var parts []string
	for _, part := range []string{k.Group, k.Kind, k.Namespace} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(append(parts, k.Name), "/")
}

// Title is what sentences call the object: "Deployment default/web".
func (k Key) Title() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// ParseKey reads the text of a key, with the version or without it. Kinds begin
// with a capital or have a group with a dot; versions begin with a v and a
// digit.
func ParseKey(text string) (Key, error) {
	parts := strings.Split(text, "/")
	var k Key
	if first := parts[0]; !isVersion(first) && (strings.Contains(first, ".") || first != "" && first[0] >= 'a' && first[0] <= 'z') {
		k.Group, parts = first, parts[1:]
	}
	if len(parts) > 2 && isVersion(parts[0]) {
		k.Version, parts = parts[0], parts[1:]
	}
	switch len(parts) {
	case 2:
		k.Kind, k.Name = parts[0], parts[1]
	case 3:
		k.Kind, k.Namespace, k.Name = parts[0], parts[1], parts[2]
		if k.Namespace == "" {
			return Key{}, fmt.Errorf("%q has an empty namespace: leave it out where the kind has none", text)
		}
	default:
		return Key{}, fmt.Errorf("%q is not an object: want KIND/NAME or GROUP/KIND/NAMESPACE/NAME, such as "+
			"apps/Deployment/default/web", text)
	}
	if k.Kind == "" || k.Name == "" || k.Group == "" && isVersion(k.Kind) {
		return Key{}, fmt.Errorf("%q lacks a kind or a name", text)
	}
	return k, nil
}

func isVersion(s string) bool {
	return len(s) > 1 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9'
}

// Compare orders keys by their parts.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Group, other.Group), cmp.Compare(k.Kind, other.Kind),
		cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}

// Trial is a name like the given one that no object is likely to have, to ask
// what would come of an object that was not there.
func Trial(name string) string {
	const suffix = "-stoke-trial"
	return name[:min(len(name), 63-len(suffix))] + suffix
}
