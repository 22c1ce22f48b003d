package state

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/stokehq/stoke/modules/address"
)

// snapshot is one decoded snapshot. It is immutable.
type snapshot struct {
	raw       []byte // the text
	version   int    // of the format: versionFolded or versionOpen
	versionAt int    // where in raw its one digit is
	lineage   string
	serial    uint64
	resources []*resource // in address order, each once
	index     map[address.Resource]*resource
	outputs   map[string]Output
	checks    []CheckResult
	extra     []member // top-level members that stoke does not know

	key           []byte // of the journal; nil: none
	keyAt, keyEnd int    // where in raw the member is that holds it; both 0: none
}

// resource is all that is stored of one resource.
type resource struct {
	addr  address.Resource
	slots []keyed  // in key order, each key once
	extra []member // members that stoke does not know
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

// withVersion returns the snapshot's text with another format version and without the
// journal's key.
func (s *snapshot) withVersion(version int) []byte {
	b := make([]byte, 0, len(s.raw))
	for _, part := range s.parts(version) {
		b = append(b, part...)
	}
	return b
}

// sum is the digest of the snapshot's text as if it had version 4.
func (s *snapshot) sum() string {
	h := sha256.New()
	for _, part := range s.parts(versionFolded) {
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// parts is the text that as returns, in pieces.
func (s *snapshot) parts(version int) [][]byte {
	digit := []byte{byte('0' + version)}
	if s.keyEnd == 0 {
		return [][]byte{s.raw[:s.versionAt], digit, s.raw[s.versionAt+1:]}
	}
	if s.versionAt > s.keyAt {
		return [][]byte{s.raw[:s.keyAt], s.raw[s.keyEnd:s.versionAt], digit, s.raw[s.versionAt+1:]}
	}
	return [][]byte{s.raw[:s.versionAt], digit, s.raw[s.versionAt+1 : s.keyAt], s.raw[s.keyEnd:]}
}
