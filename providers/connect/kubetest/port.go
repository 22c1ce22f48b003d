package kubetest

import (
	"fmt"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// port is one on loopback that nobody else gets, also while its program is not
// running: a socket of ours is bound to it and does not listen. The program
// shares the port (SO_REUSEPORT) and gets all connections.
type port struct {
	socket int
	number int
}

func reserve() (port, error) {
	syscall.ForkLock.RLock()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return port{}, fmt.Errorf("reserve a port: %w", err)
	}
	p := port{socket: socket}
	if err := p.bind(); err != nil {
		unix.Close(socket)
		return port{}, fmt.Errorf("reserve a port: %w", err)
	}
	return p, nil
}

func (p *port) bind() error {
	if err := unix.SetsockoptInt(p.socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	if err := unix.Bind(p.socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	name, err := unix.Getsockname(p.socket)
	if err != nil {
		return err
	}
	p.number = name.(*unix.SockaddrInet4).Port
	return nil
}

func (p port) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

func (p port) release() { _ = unix.Close(p.socket) }
