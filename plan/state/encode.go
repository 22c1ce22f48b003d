package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stokehq/stoke/modules/address"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// terraformVersion is what a snapshot names as its writer: the Terraform that
// stoke is compatible with.
const terraformVersion = "1.11.4"

// Encode writes the state as a snapshot of version 4 with the given serial.
// Objects that did not change are copied from the text they were read from.
func (s *State) Encode(serial uint64) []byte { return s.encode(serial).raw }

// encode writes the state and returns the snapshot that decode would read, with
// the same objects.
func (s *State) encode(serial uint64) *snapshot {
	base := s.core.base
	n := &snapshot{
		version: versionFolded,
		lineage: base.lineage,
		serial:  serial,
		outputs: s.Outputs(),
		checks:  s.CheckResults(),
		extra:   base.extra,
	}
	w := &writer{buf: make([]byte, 0, s.sizeEstimate()), indent: true}
	w.open('{')
	w.name("version")
	n.versionAt = len(w.buf)
	w.buf = append(w.buf, '0'+versionFolded)
	w.stringMember("terraform_version", terraformVersion)
	w.unsignedMember("serial", serial)
	w.stringMember("lineage", base.lineage)
	w.outputsMember("outputs", n.outputs)
	w.name("resources")
	w.open('[')
	addrs := s.Resources()
	n.index = make(map[address.Resource]*resource, len(addrs))
	n.resources = make([]*resource, 0, len(addrs))
	for _, a := range addrs {
		r := s.resource(a)
		n.index[a] = r
		n.resources = append(n.resources, r)
		w.resource(r)
	}
	w.close(']')
	w.checksMember("check_results", n.checks)
	for _, m := range n.extra {
		w.rawMember(m.name, m.raw)
	}
	w.close('}')
	w.buf = append(w.buf, '\n')
	n.raw = w.buf
	return n
}

// sizeEstimate guesses how long the encoded state will be.
func (s *State) sizeEstimate() int {
	n := len(s.core.base.raw) + 4096
	s.core.mu.RLock()
	defer s.core.mu.RUnlock()
	n += 768 * len(s.core.changed)
	if s.own != nil {
		n += 768 * len(s.own.changed)
	}
	return n
}

// resource is all there is of one resource.
func (s *State) resource(a address.Resource) *resource {
	r := &resource{addr: a}
	if old := s.core.base.index[a]; old != nil {
		if len(s.changedKeys(a)) == 0 {
			return old
		}
		r.extra = old.extra
	}
	keys := s.Keys(a)
	r.slots = make([]keyed, 0, len(keys))
	for _, k := range keys {
		r.slots = append(r.slots, keyed{k, s.slot(a.Instance(k))})
	}
	return r
}

// resource writes a resource: once per provider that its objects belong to.
func (w *writer) resource(r *resource) {
	var list []stored
	var providers []string
	add := func(in stored) {
		list = append(list, in)
		if !slices.Contains(providers, in.object.Provider) {
			providers = append(providers, in.object.Provider)
		}
	}
	for _, e := range r.slots {
		if e.current != nil {
			add(stored{key: e.key, object: e.current})
		}
		for _, d := range sortedKeys(e.deposed) {
			add(stored{e.key, d, e.deposed[d]})
		}
	}
	for i, p := range providers {
		w.next()
		w.open('{')
		w.optional("module", string(r.addr.Module))
		w.stringMember("mode", mode(r.addr.Mode))
		w.stringMember("type", r.addr.Type)
		w.stringMember("name", r.addr.Name)
		if i == 0 {
			for _, m := range r.extra {
				w.rawMember(m.name, m.raw)
			}
		}
		w.stringMember("provider", p)
		w.name("instances")
		w.open('[')
		for _, in := range list {
			if in.object.Provider == p {
				w.next()
				w.storedInstance(in)
			}
		}
		w.close(']')
		w.close('}')
	}
}

func (w *writer) storedInstance(in stored) {
	if t := in.object.text; t.raw != nil && t.key == in.key && t.deposed == in.deposed {
		w.buf = append(w.buf, t.raw...)
		return
	}
	w.instance(in)
}

func mode(m address.Mode) string {
	if m == address.Data {
		return "data"
	}
	return "managed"
}

func sortedKeys[V any](m map[string]V) []string {
	if len(m) == 0 {
		return nil
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}

func (w *writer) outputsMember(name string, outputs map[string]Output) {
	w.name(name)
	w.open('{')
	for _, k := range sortedKeys(outputs) {
		w.name(k)
		w.output(outputs[k])
	}
	w.close('}')
}

// output writes an output that checkOutputs has passed.
func (w *writer) output(o Output) {
	value, ty, err := encodeValue(o.Value)
	if err != nil {
		panic("state: an output that cannot be stored: " + err.Error())
	}
	w.open('{')
	w.rawMember("value", value)
	w.rawMember("type", ty)
	w.trueMember("sensitive", o.Sensitive)
	w.close('}')
}

func encodeValue(v cty.Value) (value, ty []byte, err error) {
	switch {
	case v == cty.NilVal:
		return nil, nil, errors.New("there is no value")
	case v.ContainsMarked():
		return nil, nil, errors.New("the value is marked")
	case !v.IsWhollyKnown():
		return nil, nil, errors.New("the value is not wholly known")
	}
	if ty, err = ctyjson.MarshalType(v.Type()); err == nil {
		value, err = ctyjson.Marshal(v, v.Type())
	}
	return value, ty, err
}

// checkOutputs reports outputs that cannot be stored.
func checkOutputs(outputs map[string]Output) error {
	for _, name := range sortedKeys(outputs) {
		if _, _, err := encodeValue(outputs[name].Value); err != nil {
			return fmt.Errorf("store output %s: %w", name, err)
		}
	}
	return nil
}
