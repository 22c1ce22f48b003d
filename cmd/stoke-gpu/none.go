//go:build !(cgo && linux)

package main

import "github.com/stokehq/stoke/runtime/gpu"

// openDriver returns none: NVIDIA's library can only be loaded by a build with cgo,
// on Linux.
func openDriver() (driver, gpu.Snapshot) {
	const why = "this build of stoke-gpu cannot load NVIDIA's library; \"make gpu\" builds the program for Linux"
	return nil, gpu.Snapshot{GPUs: []gpu.Reading{}, Absent: why}
}
