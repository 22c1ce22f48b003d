package state

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// FuzzSnapshot feeds anything to Decode. What it accepts must be JSON, and
// must survive being written and read again.
func FuzzSnapshot(f *testing.F) {
	f.Add(readTestdata(f))
	f.Add([]byte(`{"version":4,"serial":1,"lineage":"l","outputs":{"a":{"value":{"value":1,"type":"number"},"type":"dynamic"}}}`))
	f.Add([]byte(`{"version":5,"resources":[{"mode":"data","type":"a","name":"b","provider":"p","instances":[{"attributes_flat":{"a":"b"}}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode("x", data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatal("what was read is not JSON")
		}
		text := s.Encode(s.Serial())
		n, err := Decode("again", text)
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if a, b := describeState(s, nil), describeState(n, nil); a != b {
			t.Fatalf("%s\nbecame\n%s", a, b)
		}
		if again := n.Encode(n.Serial()); !bytes.Equal(again, text) {
			t.Fatalf("%s\nbecame\n%s", text, again)
		}
		for _, a := range s.Instances() {
			if o := s.Current(a); o != nil {
				_, _ = o.Value(cty.DynamicPseudoType)
				_, _ = o.Value(cty.Object(map[string]cty.Type{"name": cty.DynamicPseudoType, "big": cty.Number}))
			}
		}
	})
}

// FuzzJournal feeds anything to Open as a journal: whole, or as the payload of
// a record, which checksums would keep from being seen.
func FuzzJournal(f *testing.F) {
	m := died(f, nil)
	f.Add(m.journal, uint8(0))
	frames, _, _ := splitFrames(m.journal)
	for _, fr := range frames {
		f.Add(fr.payload, uint8(fr.kind))
	}
	head := frames[0].payload
	f.Fuzz(func(t *testing.T, data []byte, k uint8) {
		n := m.revive()
		n.journal = data
		if k > 0 {
			n.journal = appendFrame(appendFrame(nil, 0, kindHeader, head), 1, kind(k), data)
		}
		file, err := Open(t.Context(), n)
		if err != nil {
			return
		}
		want := describeState(file.State(), file.Open())
		j := begin(t, file)
		closeJournal(t, j)
		again := open(t, n)
		if got := describeState(again.State(), again.Open()); got != want {
			t.Fatalf("%s\nbecame\n%s", want, got)
		}
	})
}
