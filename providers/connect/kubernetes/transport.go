package kubernetes

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/client-go/transport"
)

const (
	firstPause = 100 * time.Millisecond // before a request is sent again, doubled each time
	lastPause  = 5 * time.Second
)

var dialer = (&net.Dialer{Timeout: dialTime, KeepAlive: 15 * time.Second}).DialContext

// pingIdle finds peers that vanished without closing: their connections would
// be used for a quarter of an hour.
func pingIdle(t *http.Transport) {
	if h2, err := http2.ConfigureTransports(t); err == nil { // it fails where it is configured already
		h2.ReadIdleTimeout, h2.PingTimeout = 15*time.Second, 10*time.Second
	}
}

// wrapped puts what logs in by tokens and passwords around the transport.
func wrapped(config *transport.Config, base http.RoundTripper) (http.RoundTripper, error) {
	return transport.HTTPWrappersForConfig(config, base)
}

// retrying repeats requests that did not reach the API server, or that it was
// not ready for, for as long as patience says. That is done for those alone
// which may be repeated: an apply, a read and a delete ask for a state of
// things.
type retrying struct {
	next     http.RoundTripper
	patience atomic.Int64 // nanoseconds; 0 until the API server has answered once
	waiting  func(context.Context, error)
}

// errNotReady is an answer that says to come back.
type notReadyError struct{ status string }

func (e *notReadyError) Error() string { return "the API server answers " + e.status }

func (r *retrying) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, began, pause := req.Context(), time.Now(), firstPause
	for {
		resp, err := r.next.RoundTrip(req)
		problem := err
		if err == nil && unready(resp) {
			problem = &notReadyError{resp.Status}
		}
		if problem == nil || ctx.Err() != nil || !repeatable(req) || !passing(problem) || time.Since(began) > time.Duration(r.patience.Load()) {
			return resp, err
		}
		if resp != nil {
			io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
			resp.Body.Close()
		}
		if r.waiting != nil {
			r.waiting(ctx, problem)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		pause = min(2*pause, lastPause)
		if req.GetBody != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			req = req.Clone(ctx)
			req.Body = body
		}
	}
}

// unready is what an API server answers that starts or stops, and what stands
// before one that is not there. It names no time to come back, for which
// client-go would wait.
func unready(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return resp.Header.Get("Retry-After") == ""
	}
	return false
}

func repeatable(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return req.Body == nil || req.GetBody != nil
	}
	return false
}

// passing tells what may be otherwise in a moment from what will not: names
// that do not resolve, certificates, credentials.
func passing(err error) bool {
	var e net.Error
	var unready *notReadyError
	var credential *NoCredentialError
	switch {
	case errors.As(err, &credential), isCertificate(err):
		return false
	case errors.As(err, &unready), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	case errors.As(err, &e):
		return true
	}
	return isConnection(err)
}
