package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/oauth2"

	"github.com/stokehq/stoke/plan/state/backend"
)

// gcsClient speaks Cloud Storage's JSON protocol:
// https://cloud.google.com/storage/docs/json_api/v1
//
// Four requests of it are all that a state needs. Google's own library brings
// gRPC, xDS and OpenTelemetry along: 30 MB of program and 20 MB of memory for
// every command, whatever backend it uses. Tests hold this client and Google's
// against each other.
type gcsClient struct {
	http   *retryablehttp.Client
	origin string // such as "https://storage.googleapis.com"
	path   string // of the protocol, such as "/storage/v1/"
	caller string
	key    []byte // the customer's, nil for none
}

func newGCSClient(ctx context.Context, c backend.Config, tries patience) (*gcsClient, error) {
	g := &gcsClient{origin: "https://storage.googleapis.com", path: "/storage/v1/", caller: c.Caller}
	if endpoint := c.String("storage_custom_endpoint"); endpoint != "" {
		if err := g.move(endpoint); err != nil {
			return nil, fmt.Errorf("storage_custom_endpoint: %w", err)
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // sums are of what is stored
	g.http = &retryablehttp.Client{
		HTTPClient: &http.Client{Transport: wholeAnswers{transport}},
		RetryMax:   tries.attempts - 1, RetryWaitMin: tries.first, RetryWaitMax: tries.most,
		CheckRetry: gcsAgain, Backoff: retryablehttp.DefaultBackoff, ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	if emulator := c.Getenv("STORAGE_EMULATOR_HOST"); emulator != "" { // which asks for nobody
		if !strings.Contains(emulator, "://") {
			emulator = "http://" + emulator
		}
		return g, g.move(emulator)
	}
	source, err := gcsTokens(ctx, c)
	if err != nil {
		return nil, err
	}
	g.http.HTTPClient.Transport = &oauth2.Transport{Source: source, Base: g.http.HTTPClient.Transport}
	return g, nil
}

// move takes another place for the service. Terraform's documentation has
// addresses end in "/storage/v1/b".
func (g *gcsClient) move(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%q is not an address such as https://storage.googleapis.com/storage/v1/b", address)
	}
	g.origin = u.Scheme + "://" + u.Host
	if p := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/b"); p != "" {
		g.path = p + "/"
	}
	return nil
}

func (g *gcsClient) close() error {
	g.http.HTTPClient.CloseIdleConnections()
	return nil
}

// gcsRequest is one request.
type gcsRequest struct {
	method string
	upload bool
	path   string // after the protocol's, escaped
	query  url.Values
	kind   string // of the body
	body   []byte
	keyed  bool // the customer's key goes along
}

// gcsError is an answer that is none of success.
type gcsError struct {
	status  int
	message string // the service's
}

func (e *gcsError) Error() string {
	text := fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}

// gcsMessage finds the service's words in the body of an answer.
func gcsMessage(body []byte) string {
	var answer struct{ Error struct{ Message string } }
	if json.Unmarshal(body, &answer) == nil && answer.Error.Message != "" {
		return strings.TrimSuffix(answer.Error.Message, ".")
	}
	if text := strings.TrimSpace(string(body)); len(text) < 200 && !strings.ContainsAny(text, "<{") {
		return text
	}
	return ""
}

// do asks; answers that are none of success are a *gcsError.
func (g *gcsClient) do(ctx context.Context, r gcsRequest) (http.Header, []byte, error) {
	address := g.origin + g.path + r.path
	if r.upload {
		address = g.origin + "/upload" + g.path + r.path
	}
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	var body any
	if r.body != nil {
		body = r.body
	}
	q, err := retryablehttp.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, nil, err
	}
	if g.caller != "" {
		q.Header.Set("User-Agent", g.caller)
	}
	if r.kind != "" {
		q.Header.Set("Content-Type", r.kind)
	}
	if r.keyed && g.key != nil {
		sum := sha256.Sum256(g.key)
		q.Header.Set("X-Goog-Encryption-Algorithm", "AES256")
		q.Header.Set("X-Goog-Encryption-Key", base64.StdEncoding.EncodeToString(g.key))
		q.Header.Set("X-Goog-Encryption-Key-Sha256", base64.StdEncoding.EncodeToString(sum[:]))
	}
	resp, err := g.http.Do(q)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, nil, &gcsError{status: resp.StatusCode, message: gcsMessage(data)}
	}
	return resp.Header, data, nil
}

// gcsAgain tells whether a request is worth another try. All of them can be
// repeated: writes have a condition, or leave nothing behind to be lost.
func gcsAgain(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		var refused *oauth2.RetrieveError
		var other *gcsError
		switch {
		case errors.As(err, &refused) && refused.Response != nil:
			return worthWaiting(refused.Response.StatusCode), nil
		case errors.As(err, &other): // of the service for tokens
			return worthWaiting(other.status), nil
		}
		return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	}
	return worthWaiting(resp.StatusCode), nil
}

// worthWaiting are the statuses that Google calls transient.
func worthWaiting(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500 && status != http.StatusNotImplemented
}

// wholeAnswers reads answers to their end before the caller sees them, so that
// a request whose answer breaks off is repeated.
type wholeAnswers struct{ next http.RoundTripper }

// RoundTrip asks and reads the answer.
func (w wholeAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(resp.Body)
	if err2 := resp.Body.Close(); err == nil {
		err = err2
	}
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// CloseIdleConnections is what http.Client looks for.
func (w wholeAnswers) CloseIdleConnections() {
	if c, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
