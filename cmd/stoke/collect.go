package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// A command is short and keeps most of what it makes. Garbage is collected when the
// heap has leastHeap bytes, or when it has grown by leastPercent of the live heap,
// where that is more.
const (
	leastHeap    = 32 << 20
	leastPercent = 50
)

// collectLate sets when garbage is collected, unless GOGC or GOMEMLIMIT in the
// environment say it.
func collectLate() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(leastHeap)
	afterCollection(-1)
}

// afterCollection sets, after the next collection and each one that follows, by how
// many percent the heap may grow until the next; percent is the present value.
func afterCollection(percent int) {
	type canary struct{ _ [16]byte }
	runtime.AddCleanup(new(canary), func(percent int) {
		if next := heapGrowth(liveHeap()); next != percent {
			debug.SetGCPercent(next)
			debug.SetMemoryLimit(math.MaxInt64)
			percent = next
		}
		afterCollection(percent)
	}, percent)
}

// heapGrowth returns by how many percent a heap of so many live bytes may grow, in steps
// of leastPercent: each new value stops the program for a moment.
func heapGrowth(live uint64) int {
	if live == 0 || live >= leastHeap {
		return leastPercent
	}
	room := int(leastHeap*100/live) - 100
	return max(room/leastPercent*leastPercent, leastPercent)
}

// liveHeap returns the bytes that the last collection found in use.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
