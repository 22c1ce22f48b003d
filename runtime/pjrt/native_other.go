//go:build !darwin && !linux

package pjrt

import (
	"errors"
	"runtime"
	"unsafe"
)

// loadSymbol reports that plugins cannot be loaded here.
func loadSymbol(path, _ string) (uintptr, error) {
	return 0, errors.New("PJRT plugins are loaded on Linux and macOS only, and this is " + runtime.GOOS)
}

// invoke is never reached, as no plugin is loaded.
func invoke(uintptr, unsafe.Pointer) uintptr { panic("pjrt: no plugin is loaded") }

func newCallback(func(a, b uintptr) uintptr) uintptr { panic("pjrt: no plugin is loaded") }
