package address

import (
	"strconv"
	"strings"
)

// Mode tells managed resources from data sources.
type Mode uint8

const (
	Managed Mode = iota
	Data
)

// Key is an instance key: none, a number (count), a string (for_each), or [*]
// for all instances while they are not known. The zero value is the missing
// key. Keys compare with ==.
type Key struct {
	kind uint8 // 0 none, 1 number, 2 string, 3 any
	num  int
	str  string
}

// IntKey is the key of one instance of a count.
func IntKey(i int) Key { return Key{kind: 1, num: i} }

// StringKey is the key of one instance of a for_each.
func StringKey(s string) Key { return Key{kind: 2, str: s} }

// AnyKey stands for all instances of something whose count or for_each is not
// known yet. It is written [*].
func AnyKey() Key { return Key{kind: 3} }

// IsAny reports whether the key is AnyKey.
func (k Key) IsAny() bool { return k.kind == 3 }

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.kind == 0 }

// Int returns the number of a count key.
func (k Key) Int() (int, bool) { return k.num, k.kind == 1 }

// Str returns the string of a for_each key.
func (k Key) Str() (string, bool) { return k.str, k.kind == 2 }

// String renders the key as it follows a name: "", [3] or ["a"].
func (k Key) String() string {
	switch k.kind {
	case 1:
		return "[" + strconv.Itoa(k.num) + "]"
	case 2:
		return "[" + Quote(k.str) + "]"
	case 3:
		return "[*]"
	}
	return ""
}

// Compare orders keys: none, numbers ascending, strings ascending, any.
func (k Key) Compare(o Key) int {
	switch {
	case k.kind != o.kind:
		return int(k.kind) - int(o.kind)
	case k.kind == 1:
		return k.num - o.num
	}
	return strings.Compare(k.str, o.str)
}

// Module is the path of a module instance as it is written, such as
// `module.a[0].module.b`. The root is "".
type Module string

// Child returns the path of a module called from m.
func (m Module) Child(name string, key Key) Module {
	s := "module." + name + key.String()
	if m == "" {
		return Module(s)
	}
	return m + "." + Module(s)
}

// Resource is a resource or data source of one module instance, without its
// instance keys. It is comparable.
type Resource struct {
	Module Module
	Mode   Mode
	Type   string
	Name   string
}

// Instance returns one instance of the resource.
func (r Resource) Instance(k Key) Instance { return Instance{r, k} }

// String renders the address as it is written, e.g. module.a.data.t.n.
func (r Resource) String() string {
	var b strings.Builder
	b.Grow(len(r.Module) + len(r.Type) + len(r.Name) + 8)
	if r.Module != "" {
		b.WriteString(string(r.Module))
		b.WriteByte('.')
	}
	if r.Mode == Data {
		b.WriteString("data.")
	}
	b.WriteString(r.Type)
	b.WriteByte('.')
	b.WriteString(r.Name)
	return b.String()
}

// Compare orders resources by module, then managed before data, type, name.
func (r Resource) Compare(o Resource) int {
	if c := r.Module.Compare(o.Module); c != 0 {
		return c
	}
	if r.Mode != o.Mode {
		return int(r.Mode) - int(o.Mode)
	}
	if c := strings.Compare(r.Type, o.Type); c != 0 {
		return c
	}
	return strings.Compare(r.Name, o.Name)
}

// Instance is one resource instance. It is comparable.
type Instance struct {
	Resource
	Key Key
}

// String renders the address as it is written, e.g. metal_node.gpu["x"].
func (i Instance) String() string { return i.Resource.String() + i.Key.String() }

// Compare orders instances by resource, then key.
func (i Instance) Compare(o Instance) int {
	if c := i.Resource.Compare(o.Resource); c != 0 {
		return c
	}
	return i.Key.Compare(o.Key)
}
