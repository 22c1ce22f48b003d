//go:build !linux

package wire

import (
	"errors"
	"net"
)

// Only Linux has memory without a name that a process can give to another one with
// its size sealed: elsewhere all bodies travel through the socket.

type handle struct{}

func (*handle) close() {}

func newMemory(int) ([]byte, *handle, error) { return nil, nil, errors.ErrUnsupported }

func (*handle) mapMemory(least, most int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapMemory([]byte) {}

func readShared(c *net.UnixConn, p []byte, _ *segment) (int, error) { return c.Read(p) }

func writeShared(c *net.UnixConn, p []byte, _ *handle) (int, error) { return c.Write(p) }
