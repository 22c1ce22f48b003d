package program

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"golang.org/x/sys/unix"
)

// Ports that HoldPort chooses from: below the ports that Linux gives to outgoing
// connections (from 32768) and Kubernetes to services (from 30000).
const (
	firstPort  = 20_000
	lastPort   = 29_999
	portsTried = 100
)

// Port is a TCP port of this machine. Another process gets it only if the process
// binds it with SO_REUSEADDR, as PyTorch, TensorFlow and JAX do.
type Port struct {
	Number int
	fd     int
	once   sync.Once
}

// HoldPort holds a port, or any free one where number is 0. A port that is taken is
// a *StartError with ErrPort.
func HoldPort(number int) (*Port, error) {
	if number != 0 {
		return holdPort(number)
	}
	var err error
	for range portsTried {
		var p *Port
		if p, err = holdPort(firstPort + rand.IntN(lastPort-firstPort+1)); err == nil {
			return p, nil
		}
	}
	return nil, err
}

// holdPort binds the port without SO_REUSEADDR, which fails where another process
// has it, and allows others to share it only then. It does not listen: a connection
// before the rank listens is refused, and the rank's peers try again.
func holdPort(number int) (*Port, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: number})
		if err == nil {
			err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
				unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
		}
		if err == nil {
			return &Port{Number: number, fd: fd}, nil
		}
		unix.Close(fd)
	}
	e := &StartError{Kind: ErrPort, What: fmt.Sprintf("the port %d cannot be used", number), Err: err}
	if errors.Is(err, unix.EADDRINUSE) {
		e.What, e.Err = fmt.Sprintf("the port %d is taken by another process", number), nil
		e.Advice = "choose another port, or end that process"
	}
	return nil, e
}

// Release gives the port back. A rank that listens on it keeps it.
func (p *Port) Release() { p.once.Do(func() { unix.Close(p.fd) }) }
