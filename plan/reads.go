package plan

import (
	"slices"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/providers"
)

// objectKey names a stored object.
type objectKey struct {
	addr    address.Instance
	deposed string
}

// reads is what several attempts at one plan have read, so that each object is
// read once, and which objects the next attempt is to read. A nil *reads keeps
// nothing and reads everything.
type reads struct {
	all  bool               // read everything
	only map[objectKey]bool // else only these

	mu      sync.Mutex
	objects map[objectKey]readObject
	sources map[address.Instance]readSource
}

type readObject struct {
	resp  providers.ReadResponse
	notes []providers.Note
}

type readSource struct {
	config cty.Value
	resp   providers.ReadDataResponse
	notes  []providers.Note
}

// notes are the notes of one call, which may make them from several goroutines.
type notes struct {
	mu   sync.Mutex
	list []providers.Note
}

func (n *notes) add(note providers.Note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, note)
}

// snapshot returns the notes so far. Notes that arrive after the call has returned
// are left out.
func (n *notes) snapshot() []providers.Note {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}

func newReads() *reads {
	return &reads{only: map[objectKey]bool{}, objects: map[objectKey]readObject{}, sources: map[address.Instance]readSource{}}
}

// object reads an object, unless it was read before or reads leaves it out.
// Notes that the provider makes while it reads are given again with the answer.
func (r *reads) object(key objectKey, note func(providers.Note), read func(note func(providers.Note)) providers.ReadResponse) (resp providers.ReadResponse, wanted bool) {
	if r == nil {
		return read(note), true
	}
	r.mu.Lock()
	known, ok := r.objects[key]
	r.mu.Unlock()
	switch {
	case ok:
	case !r.all && !r.only[key]:
		return resp, false
	default:
		var made notes
		known.resp = read(made.add)
		known.notes = made.snapshot()
		r.mu.Lock()
		r.objects[key] = known
		r.mu.Unlock()
	}
	for _, n := range known.notes {
		note(n)
	}
	return known.resp, true
}

// data reads a data source, unless it was read with the same configuration.
func (r *reads) data(addr address.Instance, config cty.Value, note func(providers.Note), read func(note func(providers.Note)) providers.ReadDataResponse) providers.ReadDataResponse {
	if r == nil {
		return read(note)
	}
	r.mu.Lock()
	known, ok := r.sources[addr]
	r.mu.Unlock()
	if !ok || !known.config.RawEquals(config) {
		known = readSource{config: config}
		var made notes
		known.resp = read(made.add)
		known.notes = made.snapshot()
		r.mu.Lock()
		r.sources[addr] = known
		r.mu.Unlock()
	}
	for _, n := range known.notes {
		note(n)
	}
	return known.resp
}
