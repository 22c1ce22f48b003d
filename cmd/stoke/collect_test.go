package main

import "testing"

// TestHeapGrowth checks by how much a heap may grow: to leastHeap, or by half.
func TestHeapGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 50, 1 << 20: 3100, 8 << 20: 300, 16 << 20: 100, 17 << 20: 50, 31 << 20: 50, 32 << 20: 50, 1 << 40: 50} {
		if got := heapGrowth(live); got != want {
			t.Errorf("a heap of %d live bytes grows by %d %%, want %d", live, got, want)
		}
	}
}
