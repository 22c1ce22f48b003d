//go:build e2e && linux

package podtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// dialTime is how long a connection through a proxy may take.
const dialTime = 30 * time.Second

// proxy connects the clients of a listener with another server.
type proxy struct {
	listener net.Listener
	// serve answers one connection until ctx ends, and may return before.
	serve func(ctx context.Context, in net.Conn) error

	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func newProxy(listener net.Listener, serve func(context.Context, net.Conn) error) *proxy {
	p := &proxy{listener: listener, serve: serve}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.all.Go(p.run)
	return p
}

func (p *proxy) run() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return // it is closed
		}
		p.all.Go(func() {
			defer in.Close()
			stop := context.AfterFunc(p.ctx, func() { in.Close() })
			defer stop()
			_ = p.serve(p.ctx, in) // whoever called sees that the connection ends
		})
	}
}

// close ends all connections.
func (p *proxy) close() {
	p.cancel()
	_ = p.listener.Close()
	p.all.Wait()
}

// forward connects with an address of this machine's own network.
func forward(address string) func(context.Context, net.Conn) error {
	return func(ctx context.Context, in net.Conn) error {
		d := net.Dialer{Timeout: dialTime}
		out, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return join(ctx, in, in, out)
	}
}

// connect connects as an HTTP proxy does that is asked by CONNECT, with
// addresses of a network.
func connect(n *network) func(context.Context, net.Conn) error {
	return func(ctx context.Context, in net.Conn) error {
		reader := bufio.NewReader(in)
		request, err := http.ReadRequest(reader)
		if err != nil {
			return err
		}
		if request.Method != http.MethodConnect {
			_, err := fmt.Fprint(in, "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
			return errors.Join(err, fmt.Errorf("it is asked for %s", request.Method))
		}
		timed, cancel := context.WithTimeout(ctx, dialTime)
		defer cancel()
		out, err := n.dial(timed, request.Host)
		if err != nil {
			_, failed := fmt.Fprint(in, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
			return errors.Join(err, failed)
		}
		if _, err := fmt.Fprint(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			out.Close()
			return err
		}
		return join(ctx, in, reader, out)
	}
}

// join copies both ways until both sides have said all, or one is cut off. What
// in says is read from reader.
func join(ctx context.Context, in net.Conn, reader io.Reader, out net.Conn) error {
	defer out.Close()
	stop := context.AfterFunc(ctx, func() { out.Close() })
	defer stop()
	there := make(chan error, 1)
	go func() { there <- flow(out, reader) }()
	err := flow(in, out)
	if err != nil {
		in.Close() // the other way ends, too
	}
	return errors.Join(err, <-there)
}

// flow copies until the source has said all, and tells the sink so.
func flow(to net.Conn, from io.Reader) error {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		return half.CloseWrite()
	}
	return errors.Join(err, to.Close())
}
