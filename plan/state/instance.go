package state

import (
	"encoding/base64"
	"math"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/stokehq/stoke/modules/address"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// maxIndex is the largest instance key that is a number.
const maxIndex = math.MaxInt32

// stored is one element of a resource's "instances": an object, and where in
// the resource it belongs.
type stored struct {
	key     address.Key
	deposed string
	object  *Object
}

// instance writes an object as an element of "instances". Snapshots and
// records of the journal both hold objects in this form.
func (w *writer) instance(in stored) {
	o := in.object
	w.open('{')
	w.key(in.key)
	if o.Tainted {
		w.stringMember("status", "tainted")
	}
	w.optional("deposed", in.deposed)
	w.unsignedMember("schema_version", uint64(o.SchemaVersion))
	if o.JSON != nil {
		w.rawMember("attributes", o.JSON)
	}
	w.pathsMember("sensitive_attributes", o.Sensitive)
	w.base64Member("private", o.Private)
	w.stringsMember("dependencies", o.Dependencies)
	w.trueMember("create_before_destroy", o.CreateBeforeDestroy && in.deposed == "")
	for _, m := range o.extra {
		w.rawMember(m.name, m.raw)
	}
	w.close('}')
}

// intern keeps one copy of strings that occur thousands of times, by their
// text in the file.
type intern map[string]string

// internString reads a string and keeps only one copy of equal ones.
func (s *scanner) internString(strings intern) string {
	if s.peek() != '"' || s.err != nil {
		s.expected("a string")
		return ""
	}
	start := s.pos
	escaped := s.skipString()
	if s.err != nil {
		return ""
	}
	raw := s.buf[start:s.pos]
	if v, ok := strings[string(raw)]; ok {
		return v
	}
	v := string(raw[1 : len(raw)-1])
	if escaped {
		s.pos = start
		v = s.str()
	}
	strings[string(raw)] = v
	return v
}

// instance reads an element of "instances".
func (s *scanner) instance(strings intern) stored {
	in := stored{object: &Object{}}
	o := in.object
	start := s.pos
	s.members(func(name []byte, _ int) {
		switch string(name) {
		case "index_key":
			in.key = s.key()
		case "status":
			in.object.Tainted = s.status()
		case "deposed":
			in.deposed = s.optionalStr()
		case "schema_version":
			o.SchemaVersion = s.schemaVersion()
		case "attributes":
			o.JSON = s.attributes()
		case "sensitive_attributes":
			o.Sensitive = s.paths(strings)
		case "private":
			o.Private = s.base64()
		case "dependencies":
			o.Dependencies = s.strings(strings)
		case "create_before_destroy":
			o.CreateBeforeDestroy = !s.null() && s.boolean()
		default:
			o.extra = s.extraMember(o.extra, name)
		}
	})
	if s.err == nil && o.JSON == nil && !hasMember(o.extra, flatAttributes) {
		s.fail(start, "the instance has no attributes")
	}
	return in
}

// extraMember takes down a member that stoke does not know.
func (s *scanner) extraMember(list []member, name []byte) []member {
	return append(list, member{string(name), s.raw()})
}

func hasMember(list []member, name string) bool {
	for i := range list {
		if list[i].name == name {
			return true
		}
	}
	return false
}

// key reads an instance key: a whole number, a string, or null for none.
func (s *scanner) key() address.Key {
	switch c := s.peek(); {
	case c == '"':
		return address.StringKey(s.str())
	case c == 'n':
		s.null()
		return address.Key{}
	case c >= '0' && c <= '9':
		start := s.pos
		n := s.unsigned()
		if n > maxIndex {
			s.fail(start, "the instance key %d is larger than any count", n)
		}
		return address.IntKey(int(n))
	}
	s.expected("an instance key (a whole number or a string)")
	return address.Key{}
}

func (s *scanner) status() bool {
	start := s.pos
	switch v := s.optionalStr(); v {
	case "tainted":
		return true
	case "":
	default:
		s.fail(start, "the status %q is unknown", clip([]byte(v)))
	}
	return false
}

// optionalStr reads a string, or null as "".
func (s *scanner) optionalStr() string {
	if s.null() {
		return ""
	}
	return s.str()
}

func (s *scanner) schemaVersion() int64 {
	start := s.pos
	n := s.unsigned()
	if n > math.MaxInt64 {
		s.fail(start, "the schema version %d is too large", n)
	}
	return int64(n)
}

func (s *scanner) attributes() []byte {
	if s.null() {
		return nil
	}
	if s.peek() != '{' {
		s.expected("an object of attributes")
		return nil
	}
	return s.raw()
}

func (s *scanner) base64() []byte {
	if s.null() {
		return nil
	}
	start := s.pos
	text := s.strBytes("a string")
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		s.fail(start, "the string is not base64")
		return nil
	}
	return b
}

func (s *scanner) strings(strings intern) []string {
	if s.null() {
		return nil
	}
	var list []string
	s.array(func() { list = append(list, s.internString(strings)) })
	return list
}

// paths reads attribute paths.
func (s *scanner) paths(strings intern) []cty.Path {
	if s.null() {
		return nil
	}
	var list []cty.Path
	s.array(func() {
		p := cty.Path{}
		s.array(func() { p = append(p, s.step(strings)) })
		list = append(list, p)
	})
	return list
}

// step reads one step of a path: {"type":"get_attr","value":"name"} or
// {"type":"index","value":{"value":0,"type":"number"}}.
func (s *scanner) step(strings intern) cty.PathStep {
	start := s.pos
	var kind string
	var value []byte
	at := 0
	s.members(func(name []byte, offset int) {
		switch string(name) {
		case "type":
			kind = s.internString(strings)
		case "value":
			at = s.pos
			value = s.raw()
		default:
			s.fail(offset, "a step of a path has no member %q", clip(name))
		}
	})
	if s.err != nil {
		return nil
	}
	sub := &scanner{buf: value}
	var step cty.PathStep
	switch {
	case value == nil:
		s.fail(start, "the step of the path has no value")
	case kind == "get_attr":
		step = cty.GetAttrStep{Name: sub.internString(strings)}
	case kind == "index":
		step = cty.IndexStep{Key: sub.indexKey()}
	default:
		s.fail(start, "the step of the path has the unknown type %q", clip([]byte(kind)))
	}
	if sub.err != nil {
		s.fail(at+sub.err.offset, "%s", sub.err.reason)
	}
	return step
}

func (s *scanner) indexKey() cty.Value {
	start := s.pos
	var kind string
	var value []byte
	s.members(func(name []byte, offset int) {
		switch string(name) {
		case "type":
			kind = s.str()
		case "value":
			value = s.raw()
		default:
			s.fail(offset, "an index has no member %q", clip(name))
		}
	})
	var ty cty.Type
	switch kind {
	case "string":
		ty = cty.String
	case "number":
		ty = cty.Number
	}
	if ty != cty.NilType && value != nil && s.err == nil {
		if v, err := ctyjson.Unmarshal(value, ty); err == nil && !v.IsNull() {
			return v
		}
	}
	s.fail(start, "the index is neither a string nor a number")
	return cty.NilVal
}

// checkName fails unless name is a name as configurations have them.
func (s *scanner) checkName(offset int, what, name string) {
	if s.err == nil && !plainName(name) && !hclsyntax.ValidIdentifier(name) {
		s.fail(offset, "%q is no %s", clip([]byte(name)), what)
	}
}

// plainName reports whether name is one of the names that almost all are; to
// ask hclsyntax takes a hundred times as long.
func plainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != ""
}
