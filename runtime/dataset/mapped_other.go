//go:build !linux

package dataset

import "os"

// mapped is a file whose pages are mapped: only on Linux.
type mapped struct{ *os.File }

func mapFile(*os.File, int64) *mapped { return nil }

func (*mapped) close() {}

func (*mapped) load([]int64, int) {}

func (*mapped) isCopied() bool { return false }
