//go:build !linux

package wire

import "net"

// ofSameUser is for systems without abstract sockets: it rejects all.
func ofSameUser(*net.UnixConn) bool { return false }
