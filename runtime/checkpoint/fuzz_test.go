package checkpoint

import (
	"encoding/json"
	"testing"

	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/model"
)

// FuzzManifest reads whatever a manifest's place holds: it is refused, or its
// parts make up one vector and its ledger can be read.
func FuzzManifest(f *testing.F) {
	for _, m := range []Manifest{
		{Step: 1, Run: "x", Records: 4, Parts: []Part{{Name: "a", To: 4, Vectors: 1}}},
		{Step: 1, Records: 4, Parts: []Part{{Name: "a", To: 4, Vectors: 1}, {Name: "b", From: 4, To: 6, Vectors: 2}}},
		{Parts: []Part{{Name: "../a", To: -4, Vectors: 1 << 62}}},
	} {
		text, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var m Manifest
		if json.Unmarshal(text, &m) != nil {
			if _, err := parse(text); err == nil {
				t.Fatal("read what is no JSON")
			}
			return
		}
		text, err := m.encode() // or nothing would get past its checksum
		if err != nil {
			return
		}
		m, err = parse(text)
		if err != nil {
			return
		}
		at := 0
		for _, p := range m.Parts {
			if p.From != at || p.Bytes() <= 0 {
				t.Fatalf("part %+v after %d", p, at)
			}
			at = p.To
		}
		if at > model.MaxParameters {
			t.Fatalf("%d values", at)
		}
		ledger.Load(m.Records, m.Whole, m.Ledger) // refuses, or not
	})
}
