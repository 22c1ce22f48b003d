package object

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Key names an object of one cluster. Its text is
// "apps/v1/Deployment/default/web", without the namespace where there is none.
type Key struct {
	schema.GroupVersionKind
	Namespace, Name string
}

// KeyOf is the key of an object.
func KeyOf(u *unstructured.Unstructured) Key {
	return Key{u.GroupVersionKind(), u.GetNamespace(), u.GetName()}
}

func (k Key) String() string {
	parts := []string{k.GroupVersion().String(), k.Kind}
	if k.Namespace != "" {
		parts = append(parts, k.Namespace)
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

// ParseKey reads the text of a key. Which of the two a name is that follows the
// kind can only be told with the version before it: groups have a dot or are
// one of the old ones, versions begin with a v and a digit.
func ParseKey(text string) (Key, error) {
	parts := strings.Split(text, "/")
	var k Key
	switch {
	case len(parts) >= 3 && isVersion(parts[0]):
		k.Version, parts = parts[0], parts[1:]
	case len(parts) >= 4 && isVersion(parts[1]):
		k.Group, k.Version, parts = parts[0], parts[1], parts[2:]
	default:
		return Key{}, fmt.Errorf("%q is no object: want VERSION/KIND/NAME or GROUP/VERSION/KIND/NAMESPACE/NAME, such as apps/v1/Deployment/default/web", text)
	}
	k.Kind, parts = parts[0], parts[1:]
	switch len(parts) {
	case 1:
		k.Name = parts[0]
	case 2:
		k.Namespace, k.Name = parts[0], parts[1]
	default:
		return Key{}, fmt.Errorf("%q names more than a namespace and a name", text)
	}
	if k.Kind == "" || k.Name == "" {
		return Key{}, fmt.Errorf("%q lacks a kind or a name", text)
	}
	return k, nil
}

func isVersion(s string) bool {
	return len(s) > 1 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9'
}

// Compare orders keys by their parts.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Group, other.Group), cmp.Compare(k.Version, other.Version), cmp.Compare(k.Kind, other.Kind),
		cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}

// Trial is a name like the given one that no object is likely to have, to ask
// what would come of an object that was not there.
func Trial(name string) string {
	const suffix = "-stoke-trial"
	return name[:min(len(name), 63-len(suffix))] + suffix
}
