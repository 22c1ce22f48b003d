package cpu_test

import (
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
)

func TestDenseGradients(t *testing.T) {
	for name, m := range map[string]*model.Model{
		"narrow":          network([]int{7}, dense("out", classes)),
		"narrow in chain": network([]int{7}, dense("a", 5), dense("out", classes)),
		"wide":            network([]int{6}, dense("a", 40), rectify, dense("out", classes)),
		"several tiles":   network([]int{70}, dense("a", 4), dense("b", 200), dense("out", classes)),
	} {
		t.Run(name, func(t *testing.T) { checkGradients(t, m, 1, 1, 0.5, 2) })
	}
}

// The forward side against its definition, written out.
func TestDenseOutputs(t *testing.T) {
	m := network([]int{2}, dense("out", classes))
	r := build(t, m, engine.Options{Threads: 1, MicroBatch: 2})
	// weight[input][unit], then biases
	if err := r.Put(0, 0, []float32{1, 2, 3, 10, 20, 30, 0.5, 0, -1}); err != nil {
		t.Fatal(err)
	}
	got := predict(t, r, rows(2, 1, 2, -1, 1))
	want := []float32{21.5, 42, 62, 9.5, 18, 26}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("outputs %v, want %v", got, want)
		}
	}
}
