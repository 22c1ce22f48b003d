package stablehlotest

import (
	"runtime"
	"sync"
)

// parallel calls work for parts of 0…n, one for each processor, and waits.
func parallel(n int, work func(from, to int)) {
	parts := min(runtime.GOMAXPROCS(0), n)
	var group sync.WaitGroup
	for i := range parts {
		group.Go(func() { work(i*n/parts, (i+1)*n/parts) })
	}
	group.Wait()
}
