package state

import (
	"slices"

	"github.com/stokehq/stoke/modules/address"
)

// snapshot is one decoded snapshot. It is immutable.
type snapshot struct {
	lineage   string
	serial    uint64
	resources []*resource // in address order, each once
	index     map[address.Resource]*resource
	outputs   map[string]Output
	extra     []member // top-level members that stoke does not know
}

// resource is all that is stored of one resource.
type resource struct {
	addr  address.Resource
	slots []keyed // in key order, each key once
}

type keyed struct {
	key address.Key
	slot
}

func (s *snapshot) slot(a address.Instance) slot {
	r := s.index[a.Resource]
	if r == nil {
		return slot{}
	}
	i, ok := slices.BinarySearchFunc(r.slots, a.Key, func(e keyed, k address.Key) int { return e.key.Compare(k) })
	if !ok {
		return slot{}
	}
	return r.slots[i].slot
}

func (s *snapshot) keys(r address.Resource) []address.Key {
	res := s.index[r]
	if res == nil {
		return nil
	}
	keys := make([]address.Key, len(res.slots))
	for i := range res.slots {
		keys[i] = res.slots[i].key
	}
	return keys
}
