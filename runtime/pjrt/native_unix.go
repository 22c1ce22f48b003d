//go:build darwin || linux

package pjrt

import (
	"unsafe"

	"github.com/ebitengine/purego"
)

// loadSymbol opens a shared library, for good, and returns the address of one
// of its functions. The library's other names stay its own.
func loadSymbol(path, name string) (uintptr, error) {
	library, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, err
	}
	return purego.Dlsym(library, name)
}

// invoke calls a C function of one argument. The argument escapes to the heap:
// SyscallN is marked uintptrescapes, and the conversion is in its call.
func invoke(function uintptr, argument unsafe.Pointer) uintptr {
	result, _, _ := purego.SyscallN(function, uintptr(argument))
	return result
}

// newCallback returns a C function that calls f. It is never freed.
func newCallback(f func(a, b uintptr) uintptr) uintptr { return purego.NewCallback(f) }
