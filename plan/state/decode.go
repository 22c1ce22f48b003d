package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stokehq/stoke/modules/address"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

const (
	versionFolded = 4 // Terraform's
	versionOpen   = 5 // the same with an open journal
)

// Decode reads a snapshot; path names it in errors. A snapshot whose journal is
// open (version 5) is read as it is, without the content of the journal.
func Decode(path string, data []byte) (*State, error) {
	snap, err := decode(path, data)
	if err != nil {
		return nil, err
	}
	return &State{core: newCore(snap)}, nil
}

// decode reads a snapshot. Objects keep their text in data, which must not be
// changed afterwards.
func decode(path string, data []byte) (*snapshot, error) {
	d := &decoder{scanner: scanner{buf: data}, snap: &snapshot{raw: data}, strings: intern{}}
	if len(data) == 0 {
		return nil, &CorruptError{path, 0, "the file is empty, which a state never is: restore it from a backup, or " +
			"remove it to start over"}
	}
	d.checkUTF8()
	d.file()
	d.end()
	if d.err == nil && d.snap.version == 0 {
		d.fail(0, "it has no member \"version\": this is not a state")
	}
	if d.err != nil && d.versionNumber == 0 {
		d.versionNumber = findVersion(data)
	}
	if v := d.versionNumber; v > versionOpen {
		return nil, &NewerVersionError{path, v, versionFolded}
	} else if v > 0 && v < versionFolded {
		return nil, &OlderVersionError{path, v}
	}
	if d.err != nil {
		return nil, &CorruptError{path, int64(d.err.offset), d.err.reason}
	}
	return d.snap, nil
}

type decoder struct {
	scanner
	snap          *snapshot
	versionNumber int64
	strings       intern
}

func (d *decoder) file() {
	var list []entry
	d.members(func(name []byte, offset int) {
		switch string(name) {
		case "version":
			d.version()
		case keyMember:
			d.key(offset)
		case "terraform_version":
			d.optionalStr()
		case "serial":
			d.snap.serial = d.unsigned()
		case "lineage":
			d.snap.lineage = d.optionalStr()
		case "outputs":
			d.snap.outputs = d.outputs()
		case "resources":
			if !d.null() {
				d.array(func() { list = append(list, d.resource()) })
			}
		case "check_results":
			d.snap.checks = d.checkResults()
		default:
			d.snap.extra = d.extraMember(d.snap.extra, name)
		}
	})
	if d.err == nil {
		d.assemble(list)
	}
}

func (d *decoder) version() {
	start := d.pos
	n := d.unsigned()
	if d.err != nil {
		return
	}
	if n == 0 || n > 1<<31 {
		d.fail(start, "the format version %d makes no sense", n)
		return
	}
	d.versionNumber = int64(n)
	if n > versionOpen || n < versionFolded {
		d.fail(start, "format version %d", n) // decode says it better
		return
	}
	d.snap.version, d.snap.versionAt = int(n), start
}

// findVersion looks for the version of a snapshot that makes no sense, as a
// newer format might not; 0 if there is none.
func findVersion(data []byte) int64 {
	d := &decoder{scanner: scanner{buf: data}, snap: &snapshot{}}
	d.object(func(name []byte, _ int) {
		if string(name) == "version" {
			d.version()
		} else {
			d.skip()
		}
	})
	return d.versionNumber
}

func (d *decoder) outputs() map[string]Output {
	if d.null() {
		return nil
	}
	m := map[string]Output{}
	d.object(func(name []byte, offset int) {
		n := string(name)
		if _, ok := m[n]; ok {
			d.fail(offset, "the output %q is given twice", clip(name))
			return
		}
		m[n] = d.output()
	})
	return m
}

// output reads {"value":…,"type":…,"sensitive":…}.
func (s *scanner) output() Output {
	var out Output
	var value, ty []byte
	start := s.pos
	s.members(func(name []byte, _ int) {
		switch string(name) {
		case "value":
			value = s.raw()
		case "type":
			ty = s.raw()
		case "sensitive":
			out.Sensitive = !s.null() && s.boolean()
		default:
			s.skip()
		}
	})
	if s.err != nil {
		return out
	}
	if value == nil || ty == nil {
		s.fail(start, "the output lacks its value or type")
		return out
	}
	v, err := decodeValue(value, ty)
	if err != nil {
		s.fail(start, "the output does not decode: %s", err)
	}
	out.Value = v
	return out
}

func decodeValue(value, ty []byte) (v cty.Value, err error) {
	defer func() { // of go-cty, on types no program ever wrote
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	t, err := ctyjson.UnmarshalType(ty)
	if err != nil {
		return cty.NilVal, err
	}
	if v, err = ctyjson.Unmarshal(value, t); err != nil {
		return cty.NilVal, err
	}
	// A null that never had a type is stored as null of type dynamic.
	if t != cty.DynamicPseudoType && !v.Type().Equals(t) {
		return cty.NilVal, errors.New("its type is not wholly known")
	}
	return v, nil
}

// storedObject is a stored object and the offset where it was found.
type storedObject struct {
	stored
	at int
}

// entry is one element of "resources". A resource has several when its
// objects belong to different providers.
type entry struct {
	addr  address.Resource
	list  []storedObject
	extra []member
}

func (d *decoder) resource() entry {
	var e entry
	var provider string
	var mode, ty, name string
	start := d.pos
	d.members(func(member []byte, _ int) {
		at := d.pos
		switch string(member) {
		case "module":
			if d.null() {
				return
			}
			m := d.internString(d.strings)
			if m != "" && !strings.HasPrefix(m, "module.") {
				d.fail(at, "%q is no module's address", clip([]byte(m)))
			}
			e.addr.Module = address.Module(m)
		case "mode":
			mode = d.str()
		case "type":
			ty = d.internString(d.strings)
			d.checkName(at, "type", ty)
		case "name":
			name = d.str()
			d.checkName(at, "name", name)
		case "provider":
			provider = d.internString(d.strings)
		case "instances":
			if !d.null() {
				d.array(func() {
					at := d.pos
					e.list = append(e.list, storedObject{d.storedInstance(), at})
				})
			}
		default:
			e.extra = d.extraMember(e.extra, member)
		}
	})
	switch {
	case d.err != nil:
		return e
	case mode == "data":
		e.addr.Mode = address.Data
	case mode != "managed":
		d.fail(start, "the resource's mode is %q and neither \"managed\" nor \"data\"", clip([]byte(mode)))
	}
	if ty == "" || name == "" || provider == "" {
		d.fail(start, "the resource lacks its type, name or provider")
	}
	if provider == "provider.terraform" { // as Terraform 0.12 has it
		provider = `provider["terraform.io/builtin/terraform"]`
	}
	e.addr.Type, e.addr.Name = ty, name
	for i := range e.list {
		e.list[i].object.Provider = provider
	}
	return e
}

func (d *decoder) storedInstance() stored {
	start := d.pos
	in := d.instance(d.strings)
	if d.err == nil {
		in.object.text = text{d.buf[start:d.pos:d.pos], in.key, in.deposed}
	}
	return in
}

// assemble puts the entries in order and finds duplicates.
func (d *decoder) assemble(list []entry) {
	snap := d.snap
	snap.index = make(map[address.Resource]*resource, len(list))
	all := make(map[address.Resource]*entry, len(list))
	for i := range list {
		e := &list[i]
		if len(e.list) == 0 {
			continue
		}
		if first := all[e.addr]; first != nil {
			first.list = append(first.list, e.list...)
			continue
		}
		all[e.addr] = e
		r := &resource{addr: e.addr, extra: e.extra}
		snap.index[e.addr] = r
		snap.resources = append(snap.resources, r)
	}
	for _, r := range snap.resources {
		d.place(r, all[r.addr])
	}
	slices.SortFunc(snap.resources, func(a, b *resource) int { return a.addr.Compare(b.addr) })
}

// place puts the objects of an entry into the slots of its resource.
func (d *decoder) place(r *resource, e *entry) {
	byKey := func(a, b storedObject) int { return cmp.Or(a.key.Compare(b.key), a.at-b.at) }
	if !slices.IsSortedFunc(e.list, byKey) {
		slices.SortFunc(e.list, byKey)
	}
	r.slots = make([]keyed, 0, len(e.list))
	for _, in := range e.list {
		if n := len(r.slots); n == 0 || r.slots[n-1].key != in.key {
			r.slots = append(r.slots, keyed{key: in.key})
		}
		k := &r.slots[len(r.slots)-1]
		switch {
		case in.deposed == "" && k.current == nil:
			k.current = in.object
		case in.deposed != "" && k.deposed[in.deposed] == nil:
			if k.deposed == nil {
				k.deposed = map[string]*Object{}
			}
			k.deposed[in.deposed] = in.object
		default:
			d.fail(in.at, "%s is there twice", describe(r.addr.Instance(in.key), in.deposed))
			return
		}
	}
}

// describe names an object for people.
func describe(a address.Instance, deposed string) string {
	if deposed == "" {
		return a.String()
	}
	return a.String() + " (deposed object " + deposed + ")"
}
