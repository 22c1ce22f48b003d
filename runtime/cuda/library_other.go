//go:build !darwin && !linux

package cuda

import "errors"

var errSystem = errors.New("CUDA's libraries are loaded on Linux only")

func preload(string) error { return errSystem }

func cudnnVersion(string) (int, error) { return 0, errSystem }
