//go:build !linux

package local

import "errors"

// guard does nothing where locks that belong to an open file do not exist: a
// lock of the process would be lost whenever the snapshot is read.
type guard struct{}

var errGuarded = errors.New("another program has locked the file")

func newGuard(string) (*guard, error) { return &guard{}, nil }

func (g *guard) release() {}
