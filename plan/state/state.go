package state

import (
	"slices"
	"sync"

	"github.com/stokehq/stoke/modules/address"
)

// State is everything that is known to exist at one moment. It is immutable;
// to read it takes no copying and may be done by many goroutines at once.
type State struct {
	core *core
	at   uint64 // sequence number of the last record that it shows
	own  *layer // what With laid over it; nil for none
}

// core is what the states of one file share: an immutable base and, over it,
// what changed, each change with the number of the record that made it.
type core struct {
	base *snapshot

	mu      sync.RWMutex
	changed map[address.Instance][]version
	touched map[address.Resource][]address.Key // of changed, each once
	outputs []outputsVersion
	checks  []checksVersion
}

// slot is the stored data of one address. It is immutable.
type slot struct {
	current *Object
	deposed map[string]*Object
}

type version struct {
	at uint64
	slot
}

type outputsVersion struct {
	at uint64
	m  map[string]Output
}

// layer is a private overlay.
type layer struct {
	changed map[address.Instance]slot
	touched map[address.Resource][]address.Key
	outputs map[string]Output // nil: as below
}

func newCore(base *snapshot) *core {
	return &core{
		base:    base,
		changed: map[address.Instance][]version{},
		touched: map[address.Resource][]address.Key{},
	}
}

// New is an empty state of the given lineage, for callers without a file.
func New(lineage string) *State {
	return &State{core: newCore(&snapshot{lineage: lineage})}
}

// Lineage names the history that this state belongs to.
func (s *State) Lineage() string { return s.core.base.lineage }

// Serial is the number of the snapshot below; it grows when a journal that
// changed something is folded.
func (s *State) Serial() uint64 { return s.core.base.serial }

// Unfolded reports whether the snapshot says that a journal belongs to it,
// without which it is not the whole state.
func (s *State) Unfolded() bool { return s.core.base.version == versionOpen }

// Seq is the number of the last record of the journal that the state shows, 0
// without a journal. Lineage, Serial and Seq together name one state.
func (s *State) Seq() uint64 { return s.at }

// Current is the object under a, nil if it does not exist.
func (s *State) Current(a address.Instance) *Object { return s.slot(a).current }

// Deposed holds the objects under a that wait to be deleted, by their keys.
// The map is shared and must not be changed.
func (s *State) Deposed(a address.Instance) map[string]*Object { return s.slot(a).deposed }

// Outputs are the root module's outputs. The map is shared and must not be
// changed.
func (s *State) Outputs() map[string]Output {
	if s.own != nil && s.own.outputs != nil {
		return s.own.outputs
	}
	s.core.mu.RLock()
	defer s.core.mu.RUnlock()
	for i := len(s.core.outputs) - 1; i >= 0; i-- {
		if v := s.core.outputs[i]; v.at <= s.at {
			return v.m
		}
	}
	return s.core.base.outputs
}

func (s *State) slot(a address.Instance) slot {
	if s.own != nil {
		if e, ok := s.own.changed[a]; ok {
			return e
		}
	}
	if s.at > 0 {
		if e, ok := s.core.changedSlot(a, s.at); ok {
			return e
		}
	}
	return s.core.base.slot(a)
}

func (c *core) changedSlot(a address.Instance, at uint64) (slot, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	vs := c.changed[a]
	for i := len(vs) - 1; i >= 0; i-- {
		if vs[i].at <= at {
			return vs[i].slot, true
		}
	}
	return slot{}, false
}

// apply adds the changes of record number at.
func (c *core) apply(at uint64, changes []Change, outputs map[string]Output) {
	if len(changes) == 0 && outputs == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range changes {
		vs := c.changed[ch.Address]
		var old slot
		if len(vs) > 0 {
			old = vs[len(vs)-1].slot
		} else {
			old = c.base.slot(ch.Address)
			c.touched[ch.Address.Resource] = append(c.touched[ch.Address.Resource], ch.Address.Key)
		}
		c.changed[ch.Address] = append(vs, version{at, old.withChange(ch)})
	}
	if outputs != nil {
		c.outputs = append(c.outputs, outputsVersion{at, outputs})
	}
}

func (e slot) empty() bool { return e.current == nil && len(e.deposed) == 0 }

func (e slot) withChange(ch Change) slot {
	if ch.Deposed == "" {
		return slot{ch.Object, e.deposed}
	}
	m := make(map[string]*Object, len(e.deposed)+1)
	for k, o := range e.deposed {
		m[k] = o
	}
	if ch.Object == nil {
		delete(m, ch.Deposed)
	} else {
		m[ch.Deposed] = ch.Object
	}
	return slot{e.current, m}
}

// WithChanges returns the state with changes over it that belong to no journal, such
// as what a refresh found. It costs as much as the changes, including changes
// of earlier calls. nil outputs stay as they are.
func (s *State) WithChanges(changes []Change, outputs map[string]Output) *State {
	l := &layer{changed: map[address.Instance]slot{}, touched: map[address.Resource][]address.Key{}, outputs: outputs}
	if s.own != nil {
		for a, e := range s.own.changed {
			l.changed[a] = e
		}
		for r, ks := range s.own.touched {
			l.touched[r] = slices.Clip(ks)
		}
		if outputs == nil {
			l.outputs = s.own.outputs
		}
	}
	n := &State{s.core, s.at, l}
	for _, ch := range changes {
		old := n.slot(ch.Address)
		if _, ok := l.changed[ch.Address]; !ok {
			l.touched[ch.Address.Resource] = append(l.touched[ch.Address.Resource], ch.Address.Key)
		}
		l.changed[ch.Address] = old.withChange(ch)
	}
	return n
}

// Keys lists the keys of a resource's instances in order, those included that
// have deposed objects only. It costs as much as there are.
func (s *State) Keys(r address.Resource) []address.Key {
	keys := s.core.base.keys(r)
	touched := s.changedKeys(r)
	if len(touched) == 0 {
		return keys
	}
	keys = append(keys, touched...)
	slices.SortFunc(keys, address.Key.Compare)
	keys = slices.Compact(keys)
	return slices.DeleteFunc(keys, func(k address.Key) bool { return s.slot(r.Instance(k)).empty() })
}

// changedKeys lists the keys of the instances that changed, some of them twice and
// some of them after this state.
func (s *State) changedKeys(r address.Resource) []address.Key {
	var keys []address.Key
	if s.own != nil {
		keys = append(keys, s.own.touched[r]...)
	}
	if s.at > 0 {
		s.core.mu.RLock()
		defer s.core.mu.RUnlock()
		keys = append(keys, s.core.touched[r]...)
	}
	return keys
}

// Instances lists all addresses in order, those included that have deposed
// objects only.
func (s *State) Instances() []address.Instance {
	var out []address.Instance
	for _, r := range s.Resources() {
		for _, k := range s.Keys(r) {
			out = append(out, r.Instance(k))
		}
	}
	return out
}

// Resources lists the resources that have instances, in order.
func (s *State) Resources() []address.Resource {
	base := s.core.base.resources
	out := make([]address.Resource, 0, len(base))
	for i := range base {
		out = append(out, base[i].addr)
	}
	n := len(out)
	if s.own != nil {
		for r := range s.own.touched {
			out = append(out, r)
		}
	}
	if s.at > 0 {
		s.core.mu.RLock()
		for r := range s.core.touched {
			out = append(out, r)
		}
		s.core.mu.RUnlock()
	}
	if len(out) == n {
		return out
	}
	slices.SortFunc(out, address.Resource.Compare)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(r address.Resource) bool {
		return len(s.changedKeys(r)) > 0 && len(s.Keys(r)) == 0
	})
}
