package wire

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ofSameUser reports whether the process at the other end is this user's, as
// the kernel says.
func ofSameUser(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	var perr error
	err = raw.Control(func(fd uintptr) { peer, perr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return err == nil && perr == nil && int(peer.Uid) == os.Geteuid()
}
