package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/stokehq/stoke/modules/address"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Meta is the stored data of an object besides its attributes. A caller that
// stores an object again (after a refresh or an update) starts from its old
// Meta, so that members that only a newer version or another program knows, such
// as a resource's identity, are kept. Terraform drops those it does not know.
type Meta struct {
	// Provider is the provider's configuration that made the object, as
	// version 4 writes it: provider["registry.terraform.io/stokehq/train"],
	// maybe with a module's path before it and an alias after it.
	Provider            string
	Tainted             bool
	SchemaVersion       int64
	Sensitive           []cty.Path // paths of the attributes to mark
	Private             []byte     // the provider's own bytes
	Dependencies        []string   // addresses of resources, without instance keys
	CreateBeforeDestroy bool

	extra []member // members of the stored instance that stoke does not know
}

// flatAttributes is the member that held the attributes up to Terraform 0.11.
const flatAttributes = "attributes_flat"

// Object is one stored object. It is immutable, pointers to it are shared:
// nothing in it may be changed. Make one with NewObject or, from JSON without
// its schema, with RawObject.
type Object struct {
	Meta
	// JSON holds the attributes exactly as they are stored. Where the schema
	// says "dynamic", a value is {"value":…,"type":…}.
	JSON []byte

	text  text // what it was read from
	value atomic.Pointer[decoded]
}

// member is a JSON member that is carried over untouched.
type member struct {
	name string
	raw  []byte
}

// text is how an object is stored in a snapshot, if it is: it is written back
// as it was as long as it stays where it was.
type text struct {
	raw     []byte
	key     address.Key
	deposed string
}

type decoded struct {
	ty cty.Type
	v  cty.Value
}

// NewObject encodes v, which must be wholly known, unmarked and of the
// schema's implied type ty. The value is kept, so that Value costs nothing.
func NewObject(v cty.Value, ty cty.Type, m Meta) (*Object, error) {
	if v.IsMarked() || v.ContainsMarked() {
		return nil, errors.New("encode object: the value is marked")
	}
	if !v.IsWhollyKnown() {
		return nil, errors.New("encode object: the value is not wholly known")
	}
	js, err := ctyjson.Marshal(v, ty)
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	o := RawObject(js, m)
	o.value.Store(&decoded{ty, v})
	return o, nil
}

// RawObject is an object whose attributes are given as JSON. They replace those
// in the flat form that the object m is of may have had.
func RawObject(js []byte, m Meta) *Object {
	if js != nil && hasMember(m.extra, flatAttributes) {
		m.extra = slices.DeleteFunc(slices.Clone(m.extra), func(e member) bool { return e.name == flatAttributes })
	}
	return &Object{Meta: m, JSON: js}
}

// Value decodes the attributes as a value of the schema's implied type ty,
// unmarked. It decodes once and is safe for concurrent use. The error says
// that the stored attributes do not conform to ty: the provider has to
// upgrade them first.
func (o *Object) Value(ty cty.Type) (cty.Value, error) {
	if d := o.value.Load(); d != nil && d.ty.Equals(ty) {
		return d.v, nil
	}
	if o.JSON == nil {
		return cty.DynamicVal, errors.New("decode object: its attributes are in the flat form of Terraform 0.11")
	}
	v, err := decodeAttributes(o.JSON, ty)
	if err != nil {
		return cty.DynamicVal, fmt.Errorf("decode object: %w", err)
	}
	o.value.Store(&decoded{ty, v})
	return v, nil
}

// WithMeta returns a copy of the object whose Meta change has altered.
func (o *Object) WithMeta(change func(*Meta)) *Object {
	c := &Object{Meta: o.Meta, JSON: o.JSON}
	c.value.Store(o.value.Load())
	change(&c.Meta)
	return c
}

// WithTainted returns the object with the mark that it must be replaced, or
// without it.
func (o *Object) WithTainted(tainted bool) *Object {
	if o.Tainted == tainted {
		return o
	}
	return o.WithMeta(func(m *Meta) { m.Tainted = tainted })
}

// WithDependencies returns the object with other dependencies.
func (o *Object) WithDependencies(deps []string) *Object {
	return o.WithMeta(func(m *Meta) { m.Dependencies = deps })
}

// Equal reports whether both objects would be stored as equal texts, except for
// white space. Nil equals nil only.
func (o *Object) Equal(p *Object) bool {
	if o == p || o == nil || p == nil {
		return o == p
	}
	if o.Provider != p.Provider || o.Tainted != p.Tainted || o.SchemaVersion != p.SchemaVersion ||
		o.CreateBeforeDestroy != p.CreateBeforeDestroy || !bytes.Equal(o.Private, p.Private) {
		return false
	}
	return equalStrings(o.Dependencies, p.Dependencies) && equalPaths(o.Sensitive, p.Sensitive) &&
		equalMembers(o.extra, p.extra) && equalJSON(o.JSON, p.JSON)
}

func equalStrings(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func equalPaths(a, b []cty.Path) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equals(b[i]) {
			return false
		}
	}
	return true
}

func equalMembers(a, b []member) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].name != b[i].name || !equalJSON(a[i].raw, b[i].raw) {
			return false
		}
	}
	return true
}

// Content is all of the object in one text, the same whenever and wherever the
// object is: for telling whether it has changed.
func (o *Object) Content() []byte {
	plain := &Object{Meta: o.Meta, JSON: o.JSON}
	var compact bytes.Buffer
	if json.Compact(&compact, o.JSON) == nil {
		plain.JSON = compact.Bytes() // whoever wrote the state last has laid it out in their own way
	}
	w := &writer{}
	w.open('{')
	w.stringMember("provider", o.Provider)
	w.close('}')
	w.instance(stored{object: plain})
	return w.buf
}
