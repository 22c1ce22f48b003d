package supervisor

import (
	"fmt"
	"net"
	"os"

	"github.com/stokehq/stoke/runtime/spec"
)

// ports are the run's listeners. The supervisor opens them and hands them to
// the roles, so that addresses stay as they are when a role is restarted, and
// whoever connects meanwhile just waits.
type ports struct {
	workers, api *net.TCPListener
	servers      []*net.TCPListener
}

func listen(servers int) (*ports, error) {
	p := new(ports)
	open := func() *net.TCPListener {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil
		}
		return l
	}
	p.workers, p.api = open(), open()
	ok := p.workers != nil && p.api != nil
	for range servers {
		l := open()
		ok = ok && l != nil
		p.servers = append(p.servers, l)
	}
	if !ok {
		p.close()
		return nil, fmt.Errorf("open %d ports on loopback: the system gives no more", servers+2)
	}
	return p, nil
}

func (p *ports) all() []*net.TCPListener {
	return append([]*net.TCPListener{p.workers, p.api}, p.servers...)
}

func (p *ports) close() {
	for _, l := range p.all() {
		if l != nil {
			l.Close()
		}
	}
}

func (p *ports) endpoints() spec.Endpoints {
	e := spec.Endpoints{Coordinator: p.workers.Addr().String()}
	for _, l := range p.servers {
		e.Servers = append(e.Servers, l.Addr().String())
	}
	return e
}

// files duplicates listeners for a child.
func files(listeners ...*net.TCPListener) ([]*os.File, error) {
	var out []*os.File
	for _, l := range listeners {
		f, err := l.File()
		if err != nil {
			closeAll(out)
			return nil, fmt.Errorf("hand a port on: %w", err)
		}
		out = append(out, f)
	}
	return out, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// apiURL returns where the coordinator answers.
func (p *ports) apiURL() string { return "http://" + p.api.Addr().String() }
