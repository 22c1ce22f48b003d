package source

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	usualTries = 3
	usualWait  = 500 * time.Millisecond
)

// persist does what may fail for reasons that pass, until it succeeds, fails
// for another reason, or was tried often enough. It waits in between, longer
// each time.
func persist(ctx context.Context, tries int, wait time.Duration, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if err == nil || !passing(err) || try >= tries || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait *= 4
	}
}

// statusError is an answer that is none.
type statusError struct {
	text string
	code int
}

func (e *statusError) Error() string { return e.text }

// errStalled: the connection is open but idle.
var errStalled = errors.New("the server has stopped sending")

// passing reports whether an error may be another time's success: what the
// network does to a connection, and servers that have too much to do.
func passing(err error) bool {
	var status *statusError
	var lookup *net.DNSError
	var network *net.OpError
	switch {
	case errors.As(err, &status):
		return status.code >= 500 || status.code == http.StatusTooManyRequests
	case errors.As(err, &lookup):
		return !lookup.IsNotFound
	case errors.Is(err, errStalled), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return true
	}
	return errors.As(err, &network)
}
