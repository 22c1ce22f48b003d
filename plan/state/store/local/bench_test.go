package local

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stokehq/stoke/plan/state"
)

// BenchmarkRecord takes down creates, ten at a time: an intent and a result.
func BenchmarkRecord(b *testing.B) {
	for _, durable := range []bool{false, true} {
		b.Run(fmt.Sprintf("durable=%v", durable), func(b *testing.B) {
			f, err := state.Open(b.Context(), newStore(b, filepath.Join(b.TempDir(), "terraform.tfstate")))
			if err != nil {
				b.Fatal(err)
			}
			j, err := f.Begin(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			var n atomic.Int64
			b.SetParallelism(5) // per processor
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := int(n.Add(1))
					id := fmt.Sprint(i)
					err := j.Intent(b.Context(), state.Intent{
						ID: id, Address: instance(i), Action: state.Create, Planned: []byte(`{"name":null}`), Durable: durable,
					})
					if err == nil {
						err = j.Result(b.Context(), state.Result{Intent: id, Changes: []state.Change{change(i, id)}})
					}
					if err != nil {
						b.Error(err)
					}
				}
			})
			b.StopTimer()
			if err := j.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
