package state

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stokehq/stoke/modules/address"
	"github.com/zclconf/go-cty/cty"
)

var benchType = cty.Object(map[string]cty.Type{
	"id": cty.String, "input": cty.DynamicPseudoType, "output": cty.DynamicPseudoType, "triggers_replace": cty.DynamicPseudoType,
})

func benchObject(t testing.TB, i int) *Object {
	v := cty.ObjectVal(map[string]cty.Value{
		"id":    cty.StringVal(fmt.Sprintf("6f1c2d3e-0000-4000-8000-%012d", i)),
		"input": cty.StringVal("some input"), "output": cty.StringVal("some input"),
		"triggers_replace": cty.NullVal(cty.DynamicPseudoType),
	})
	o, err := NewObject(v, benchType, Meta{Provider: `provider["terraform.io/builtin/terraform"]`, Dependencies: []string{"terraform_data.parent"}})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// benchState has n objects: resources of their own, or one with count.
func benchState(t testing.TB, n int, count bool) *State {
	changes := make([]Change, n)
	for i := range changes {
		changes[i] = Change{Address: benchAddress(i, count), Object: benchObject(t, i)}
	}
	return New("lineage").WithChanges(changes, nil)
}

func benchAddress(i int, count bool) address.Instance {
	r := address.Resource{Type: "terraform_data", Name: "r"}
	if count {
		return r.Instance(address.IntKey(i))
	}
	r.Name = fmt.Sprint("r", i)
	return r.Instance(address.Key{})
}

func BenchmarkSnapshot(b *testing.B) {
	for _, count := range []bool{false, true} {
		for _, n := range []int{1000, 10000, 100000} {
			s := benchState(b, n, count)
			text := s.Encode(1)
			name := fmt.Sprintf("n=%d/count=%v", n, count)
			b.Run("read/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Decode("x", text); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("write/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					s.Encode(1)
				}
			})
			read, err := Decode("x", text)
			if err != nil {
				b.Fatal(err)
			}
			b.Run("rewrite/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					read.Encode(1)
				}
			})
		}
	}
}

// BenchmarkRun creates n objects and folds them, then opens the state with
// them still in the journal.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		var objects []*Object
		for i := range n {
			objects = append(objects, benchObject(b, i))
		}
		run := func(b *testing.B, m *memory) *Journal {
			j := begin(b, open(b, m))
			for i, o := range objects {
				record(b, j, fmt.Sprint(i), benchAddress(i, false), o, false)
			}
			return j
		}
		b.Run(fmt.Sprintf("records+fold/n=%d", n), func(b *testing.B) {
			for b.Loop() {
				closeJournal(b, run(b, newMemory()))
			}
		})
		m := newMemory()
		j := run(b, m)
		if err := j.Intent(b.Context(), Intent{ID: "open", Address: benchAddress(0, false), Action: Update, Durable: true}); err != nil {
			b.Fatal(err)
		}
		closeJournal(b, j)
		b.Run(fmt.Sprintf("replay/n=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(m.journal)))
			for b.Loop() {
				open(b, m)
			}
		})
	}
}

// record takes down one create.
func record(b testing.TB, j *Journal, id string, a address.Instance, o *Object, durable bool) {
	err := j.Intent(b.Context(), Intent{
		ID: id, Address: a, Action: Create, Planned: o.JSON, Provider: o.Provider, Dependencies: o.Dependencies, Durable: durable,
	})
	if err == nil {
		err = j.Result(b.Context(), Result{Intent: id, Changes: []Change{{Address: a, Object: o}}})
	}
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkRecord(b *testing.B) {
	j := begin(b, open(b, newMemory()))
	defer closeJournal(b, j)
	o := benchObject(b, 1)
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(5)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := int(n.Add(1))
			record(b, j, fmt.Sprint(i), benchAddress(i, true), o, false)
		}
	})
}
