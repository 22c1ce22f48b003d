package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
)

// A run is short and keeps most of what it makes. Below firstCollection bytes
// looking for garbage costs time and saves nobody anything; beyond it the heap
// may grow by gcPercent between two collections.
const (
	firstCollection = 40 << 20
	gcPercent       = 50
)

// collectLate sets when garbage is collected, unless GOGC or GOMEMLIMIT in the
// environment say it.
func collectLate() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(firstCollection)
	type canary struct{ _ [16]byte }
	runtime.AddCleanup(new(canary), func(percent int) { // after the first collection
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(math.MaxInt64)
	}, gcPercent)
}
