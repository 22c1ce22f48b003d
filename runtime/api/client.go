package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/certificate"
	"github.com/stokehq/stoke/runtime/spec"
)

// maxAnswer bounds what a coordinator may answer: it is never near it.
const maxAnswer = 16 << 20

// The paths of the coordinator's HTTP API. Every request carries the run's
// token as "Authorization: Bearer …".
const (
	PathStatus  = "/v1/status"  // GET: Status
	PathMetrics = "/v1/metrics" // GET ?after=N&wait=SECONDS: Events after number N, one per line; waits for the first
	// PathPrometheus, GET: the status for Prometheus, in its text format 0.0.4.
	PathPrometheus = "/metrics"

	PathLedger = "/v1/ledger" // GET: Ledger
	PathLive   = "/v1/live"   // POST LiveChange
	PathStop   = "/v1/stop"   // POST: ends the run as stopped, after a checkpoint
	PathUsage  = "/v1/usage"  // POST UsageReport, of a worker or server about itself
	// PathCode, GET: the snapshot of a program's code as a tar stream, by its hash.
	PathCode = "/v1/code/{hash}"

	// PathModel, GET: the finished model as a tar stream, laid out as in a run's
	// folder: checkpoints/final-term-…/ with its parts, then its manifest. A
	// stream that breaks off ends in an error of the connection; 404 while there
	// is no finished model.
	PathModel = "/v1/model"
	// PathCollected, POST: whoever wanted something of a run that is over has it:
	// its coordinator need not linger. 409 while the run is not over.
	PathCollected = "/v1/collected"
)

// Failure is the body of every answer that is no success.
type Failure struct {
	Summary string `json:"summary"`
	Detail  string `json:"detail"`
	File    string `json:"file,omitempty"`
}

func (f Failure) Error() string { return f.Summary + ". " + f.Detail }

// Client talks to a running run.
type Client struct {
	base, token string
	encrypted   bool
	http        *http.Client
}

// New makes a client for the API at base ("http://127.0.0.1:PORT"). A run that
// has a certificate of its own is spoken to with TLS ("https://…") and pin; one
// that has none is at a loopback address, since the token would be read by
// others elsewhere.
func New(base, token string, pin *certificate.Pin) *Client {
	transport := &http.Transport{
		Proxy:           nil, // the API is on loopback, or where the launcher forwards it
		IdleConnTimeout: 30 * time.Second,
	}
	if pin != nil {
		transport.TLSClientConfig = pin.Client()
	}
	return &Client{base: strings.TrimSuffix(base, "/"), token: token, encrypted: pin != nil, http: &http.Client{Transport: transport}}
}

// DialWith makes connections by dial in place of the address's: to a run whose
// API is reached by way of something else.
func (c *Client) DialWith(dial func(context.Context) (net.Conn, error)) *Client {
	c.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	return c
}

// safe refuses to send the token where others could read it.
func (c *Client) safe() error {
	address, err := url.Parse(c.base)
	if err != nil {
		return fmt.Errorf("the API's address: %w", err)
	}
	if c.encrypted && address.Scheme == "https" {
		return nil
	}
	if ip := net.ParseIP(address.Hostname()); !c.encrypted && address.Scheme == "http" && ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("the API at %s: want https with the run's certificate, or http at a loopback address", c.base)
}

// Close lets idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks how the run stands.
func (c *Client) Status(ctx context.Context) (spec.Status, error) {
	var s spec.Status
	err := c.call(ctx, http.MethodGet, PathStatus, nil, &s)
	return s, err
}

// Ledger asks which records have been committed.
func (c *Client) Ledger(ctx context.Context) (spec.Ledger, error) {
	var l spec.Ledger
	err := c.call(ctx, http.MethodGet, PathLedger, nil, &l)
	return l, err
}

// Metrics returns the events after number n, waiting up to wait for the first.
func (c *Client) Metrics(ctx context.Context, n int64, wait time.Duration) ([]spec.Event, error) {
	path := fmt.Sprintf("%s?after=%d&wait=%g", PathMetrics, n, wait.Seconds())
	body, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var events []spec.Event
	decoder := json.NewDecoder(io.LimitReader(body, 4*maxAnswer))
	for {
		var e spec.Event
		switch err := decoder.Decode(&e); err {
		case nil:
			events = append(events, e)
		case io.EOF:
			return events, nil
		default:
			return events, fmt.Errorf("read events: %w", err)
		}
	}
}

// Change applies live changes.
func (c *Client) Change(ctx context.Context, l spec.LiveChange) error {
	return c.call(ctx, http.MethodPost, PathLive, l, nil)
}

// Usage sends what the process of a role takes from its machine.
func (c *Client) Usage(ctx context.Context, r spec.UsageReport) error {
	return c.call(ctx, http.MethodPost, PathUsage, r, nil)
}

// Stop asks the run to end; it returns before the run has.
func (c *Client) Stop(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, PathStop, nil, nil)
}

// Code returns the snapshot of a program's code as a tar stream, by its hash. The
// caller closes it.
func (c *Client) Code(ctx context.Context, hash string) (io.ReadCloser, error) {
	return c.do(ctx, http.MethodGet, strings.Replace(PathCode, "{hash}", url.PathEscape(hash), 1), nil)
}

// Model gives the finished model as a tar stream (see PathModel), which the
// caller closes. It is whole only where it was read to its end without an error.
// The error is a Failure while there is no finished model.
func (c *Client) Model(ctx context.Context) (io.ReadCloser, error) {
	return c.do(ctx, http.MethodGet, PathModel, nil)
}

// Collected tells a coordinator that lingers after the run's end that it may go.
func (c *Client) Collected(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, PathCollected, nil, nil)
}

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	body, err := c.do(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("read answer of %s: %w", path, err)
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, path string, in any) (io.ReadCloser, error) {
	if err := c.safe(); err != nil {
		return nil, err
	}
	var payload io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("write request of %s: %w", path, err)
		}
		payload = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, payload)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	var failure Failure
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<16)).Decode(&failure); err != nil || failure.Summary == "" {
		return nil, fmt.Errorf("%s %s: %s", method, path, answer.Status)
	}
	return nil, failure
}
