package kubernetes

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/streaming/pkg/httpstream"
)

// slow is a dialer, and a connection that closes.
type slow struct {
	httpstream.Connection
	opens, closed chan struct{}
}

func (s *slow) Dial(...string) (httpstream.Connection, string, error) {
	<-s.opens
	return s, "v1", nil
}

func (s *slow) Close() error {
	close(s.closed)
	return nil
}

// TestDiallingHearsItsContext: who stops does not wait for the connection, which
// is closed when it comes after all.
func TestDiallingHearsItsContext(t *testing.T) {
	s := &slow{opens: make(chan struct{}), closed: make(chan struct{})}
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if conn, _, err := (hearing{ctx, s}).Dial("v1"); conn != nil || !errors.Is(err, stop) {
		t.Errorf("%v, %v", conn, err)
	}
	close(s.opens)
	select {
	case <-s.closed:
	case <-time.After(time.Minute):
		t.Error("the connection that came late was not closed")
	}
	if conn, protocol, err := (hearing{t.Context(), s}).Dial("v1"); conn == nil || protocol != "v1" || err != nil {
		t.Errorf("%v, %q, %v", conn, protocol, err)
	}
}
