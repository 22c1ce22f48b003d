package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/transport"
)

const (
	firstPause = 100 * time.Millisecond // before a request is sent again, doubled each time
	lastPause  = 5 * time.Second
)

var dialer = (&net.Dialer{Timeout: dialTime, KeepAlive: 15 * time.Second}).DialContext

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
		if err == nil && !streams(req) {
			resp, err = readWhole(resp)
		}
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

// readWhole reads an answer to its end, so that an answer that breaks off is
// requested again, too. Lists come in pages.
func readWhole(resp *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// streams reports whether the answer to a request is a stream: a watch, a log.
func streams(req *http.Request) bool {
	watch := req.URL.Query().Get("watch")
	return watch != "" && watch != "false" && watch != "0" || strings.HasSuffix(req.URL.Path, "/log")
}

// unready reports an answer of an API server that starts or stops, or of a
// proxy in front of a missing one. Answers with a Retry-After are left to
// client-go, which waits for that time.
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

// passing reports whether an error may go away by itself. Names that do not
// resolve, certificates and credentials do not.
func passing(err error) bool {
	var e net.Error
	var unready *notReadyError
	var credential *NoCredentialError
	var plane *ControlPlaneError
	switch {
	case errors.As(err, &plane):
		return plane.passing()
	case errors.As(err, &credential), isCertificate(err):
		return false
	case errors.As(err, &unready), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	case errors.As(err, &e):
		return true
	}
	return isConnection(err) || isLostHTTP2(err)
}

// isLostHTTP2 reports a request whose HTTP/2 connection or stream ended: pings were not
// answered, the server closed the connection, or it gave up the request, as an overloaded
// API server does. net/http has no type for these errors.
func isLostHTTP2(err error) bool {
	text := err.Error()
	return strings.Contains(text, "http2: client connection lost") ||
		strings.Contains(text, "http2: server sent GOAWAY and closed the connection") ||
		strings.Contains(text, "INTERNAL_ERROR; received from peer") || strings.Contains(text, "REFUSED_STREAM; received from peer")
}
