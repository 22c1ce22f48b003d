package plan

import (
	"sync"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/providers"
)

// TestNotesOfConcurrentReads has providers that make their notes from several
// goroutines of one call: none is lost, and each is given again with the answer
// that is kept.
func TestNotesOfConcurrentReads(t *testing.T) {
	const routines, each = 8, 5000
	addr := address.Resource{Type: "a", Name: "b"}.Instance(address.Key{})
	speak := func(note func(providers.Note)) {
		var all sync.WaitGroup
		for range routines {
			all.Go(func() {
				for range each {
					note(providers.Note{Text: "here"})
				}
			})
		}
		all.Wait()
	}
	r := newReads()
	r.all = true
	for name, read := range map[string]func(note func(providers.Note)){
		"object": func(note func(providers.Note)) {
			r.object(objectKey{addr: addr}, note, func(note func(providers.Note)) providers.ReadResponse {
				speak(note)
				return providers.ReadResponse{State: cty.EmptyObjectVal}
			})
		},
		"data": func(note func(providers.Note)) {
			r.data(addr, cty.EmptyObjectVal, note, func(note func(providers.Note)) providers.ReadDataResponse {
				speak(note)
				return providers.ReadDataResponse{State: cty.EmptyObjectVal}
			})
		},
	} {
		for _, when := range []string{"read", "kept"} {
			n := 0
			read(func(providers.Note) { n++ })
			if n != routines*each {
				t.Errorf("%s, %s: %d notes, want %d", name, when, n, routines*each)
			}
		}
	}
}
