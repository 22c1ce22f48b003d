package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// maxGreeting is how many connections may be at their handshake at a time:
// what strangers can make a role hold.
const maxGreeting = 256

// Serve greets each client and calls handle for the clients of the run, each in
// a goroutine of its own, until ctx is done. It then closes the listener and
// every connection, and returns after the last client has ended: nil, or the
// error that ended it. refused is called for clients that were rejected.
func (c Credentials) Serve(ctx context.Context, l net.Listener, handle func(*Conn, Hello), refused func(error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	if err := c.Secure(l); err != nil {
		return err
	}
	greeting := make(chan struct{}, maxGreeting)
	if local := c.listenLocal(l); local != nil {
		stop := context.AfterFunc(ctx, func() { local.Close() })
		defer stop()
		defer local.Close() // for AfterFunc may not have begun when the other listener is closed
		serving.Go(func() {
			if err := c.serve(ctx, local, greeting, &serving, handle, refused); err != nil {
				refused(err) // the other one goes on
			}
		})
	}
	return c.serve(ctx, l, greeting, &serving, handle, refused)
}

// serve is Serve for one listener.
func (c Credentials) serve(ctx context.Context, l net.Listener, greeting chan struct{}, serving *sync.WaitGroup, handle func(*Conn, Hello), refused func(error)) error {
	for {
		raw, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				raw.Close()
			}
			return nil
		case passing(err):
			refused(fmt.Errorf("accept: %w", err))
			time.Sleep(50 * time.Millisecond) // others give back what there is too little of
			continue
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		}
		select {
		case greeting <- struct{}{}:
		case <-ctx.Done():
			raw.Close()
			return nil
		}
		serving.Go(func() {
			defer raw.Close()
			stop := context.AfterFunc(ctx, func() { raw.Close() })
			defer stop()
			conn, hello, err := c.accept(ctx, raw)
			<-greeting
			if err != nil {
				if ctx.Err() == nil {
					refused(err)
				}
				return
			}
			defer conn.Close()
			handle(conn, hello)
		})
	}
}

// passing errors of Accept are about one connection, or go away.
func passing(err error) bool {
	for _, e := range []error{syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Secure refuses to listen for others on the network without a certificate.
func (c Credentials) Secure(l net.Listener) error {
	if err := secure(l.Addr(), c.Key != nil); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}

// Listener is l for other protocols than this one (HTTP): with TLS where the
// run has a certificate.
func (c Credentials) Listener(l net.Listener) (net.Listener, error) {
	if err := c.Secure(l); err != nil {
		return nil, err
	}
	if c.Key == nil {
		return l, nil
	}
	config := c.Key.Server()
	config.NextProtos = []string{"h2", "http/1.1"}
	return tls.NewListener(l, config), nil
}
