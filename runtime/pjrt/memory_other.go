//go:build !linux

package pjrt

import "errors"

func mapMemory(int) ([]byte, error) { return nil, errors.New("pinned memory is for Linux only") }

func unmapMemory([]byte) error { return nil }
