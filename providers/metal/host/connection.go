package host

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Dial opens a connection from the machine to an address as it is called there.
func Dial(ctx context.Context, m Machine, network, address string) (net.Conn, error) {
	d, ok := m.(interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	})
	if !ok {
		return nil, fmt.Errorf("%s: nothing can be dialled from there", m.Name())
	}
	return d.DialContext(ctx, network, address)
}

// Forget drops the unusable connection to the machine: the next command dials
// again. Running commands are lost.
func Forget(m Machine) {
	if f, ok := m.(interface{ Forget() }); ok {
		f.Forget()
	}
}

// DialContext opens a connection from the machine.
func (r *Remote) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return r.Pool.DialContext(ctx, r.Target, network, address)
}

// Forget drops the connection to the machine.
func (r *Remote) Forget() { r.Pool.Forget(r.Target) }

func (r *Remote) identity() string {
	id := ""
	for _, hop := range r.Target.Hops {
		id += fmt.Sprintf("%q %d ", hop.Address, hop.Port)
	}
	return id + fmt.Sprintf("%q %d", r.Target.Address, r.Target.Port)
}

// limited does something on a machine that may have gone: when the limit
// strikes, its connection is dropped, because a dead one would not even end
// what is cancelled.
func limited(ctx context.Context, m Machine, limit time.Duration, do func(context.Context)) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNotAnswered)
	defer cancel()
	dropped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(dropped)
		Forget(m)
	})
	do(ctx)
	if !stop() {
		<-dropped
	}
}
