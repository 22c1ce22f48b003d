package wire

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"runtime"
)

// Processes of one machine have their frames in a Unix socket beside the TCP
// one: the kernel moves large frames several times as fast through it. It is
// found by its name, which follows from the run's token and the TCP address, in
// Linux's abstract namespace: it vanishes with its process. Where it cannot be
// had, or connections are encrypted, there is TCP.

// localBuffer is how much of a frame may be under way in the kernel.
const localBuffer = 1 << 20

// localName is the name of the socket beside an address; "": it has none.
func (c Credentials) localName(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	if runtime.GOOS != "linux" || !ok || !tcp.IP.IsLoopback() || c.Network || c.Certificate != nil || c.Key != nil {
		return ""
	}
	h := sha256.Sum256([]byte("stoke local socket\n" + c.Token + "\n" + address.String()))
	return "@stoke-" + hex.EncodeToString(h[:16])
}

// listenLocal opens the socket beside a listener; nil: there is none.
func (c Credentials) listenLocal(l net.Listener) net.Listener {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil
	}
	name := c.localName(tcp.Addr())
	if name == "" {
		return nil
	}
	local, err := net.Listen("unix", name)
	if err != nil { // another process still has it: TCP does as well
		return nil
	}
	return local
}

// dialLocal connects to the socket beside an address; nil: nobody listens there.
func (c Credentials) dialLocal(ctx context.Context, address string) net.Conn {
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil // TCP will say so
	}
	name := c.localName(tcp)
	if name == "" {
		return nil
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", name)
	if err != nil {
		return nil
	}
	if !ofSameUser(conn.(*net.UnixConn)) { // the name is no secret once its process is gone
		conn.Close()
		return nil
	}
	return conn
}

// widen lets more of a large frame be under way, as far as the system allows.
func widen(c net.Conn) {
	if local, ok := c.(*net.UnixConn); ok {
		local.SetWriteBuffer(localBuffer) // as far as it goes
	}
}
