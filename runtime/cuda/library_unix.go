//go:build darwin || linux

package cuda

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// preload loads a library by its path and shows its names to all libraries that
// are loaded after it, so that a library which asks for it by its name has it.
func preload(path string) error {
	if _, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
		return fmt.Errorf("load %s: %w", path, err)
	}
	return nil
}

// cudnnVersion returns the version of a cuDNN: 91900 is 9.19.0.
func cudnnVersion(path string) (int, error) {
	library, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return 0, fmt.Errorf("load %s: %w", path, err)
	}
	function, err := purego.Dlsym(library, "cudnnGetVersion")
	if err != nil {
		return 0, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	version, _, _ := purego.SyscallN(function)
	return int(version), nil
}
