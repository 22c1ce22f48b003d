package api

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// asked is a request as a coordinator gets it.
type asked struct{ method, path, token, body string }

// coordinator answers every request alike and keeps the last one.
func coordinator(t *testing.T, status int, answer string) (*Client, *asked) {
	t.Helper()
	last := new(asked)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*last = asked{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), string(body)}
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	c := New(s.URL+"/", "secret", nil)
	t.Cleanup(c.Close)
	return c, last
}

func TestRequestsCarryTokenAndBody(t *testing.T) {
	ctx := t.Context()
	for name, tt := range map[string]struct {
		do     func(*Client) error
		answer string
		want   asked
	}{
		"status": {func(c *Client) error {
			s, err := c.Status(ctx)
			if s.Step != 7 {
				t.Errorf("status %+v", s)
			}
			return err
		}, `{"step": 7}`, asked{"GET", "/v1/status", "Bearer secret", ""}},
		"ledger": {func(c *Client) error {
			l, err := c.Ledger(ctx)
			if l.Records != 5 {
				t.Errorf("ledger %+v", l)
			}
			return err
		}, `{"records": 5}`, asked{"GET", "/v1/ledger", "Bearer secret", ""}},
		"metrics": {func(c *Client) error {
			events, err := c.Metrics(ctx, 3, 1500*time.Millisecond)
			if len(events) != 2 || events[1].Number != 5 {
				t.Errorf("events %+v", events)
			}
			return err
		}, "{\"n\": 4}\n{\"n\": 5}\n", asked{"GET", "/v1/metrics?after=3&wait=1.5", "Bearer secret", ""}},
		"change": {func(c *Client) error { return c.Change(ctx, spec.LiveChange{Workers: new(3)}) },
			"", asked{"POST", "/v1/live", "Bearer secret", `{"workers":3}`}},
		"model": {func(c *Client) error {
			body, err := c.Model(ctx)
			if err != nil {
				return err
			}
			defer body.Close()
			if data, err := io.ReadAll(body); err != nil || string(data) != "tar" {
				t.Errorf("model %q, %v", data, err)
			}
			return nil
		}, "tar", asked{"GET", "/v1/model", "Bearer secret", ""}},
		"collected": {func(c *Client) error { return c.Collected(ctx) }, "", asked{"POST", "/v1/collected", "Bearer secret", ""}},
		"usage": {func(c *Client) error {
			return c.Usage(ctx, spec.UsageReport{Role: "ps", Index: 2, Usage: spec.Usage{CPU: 0.5, Read: spec.Flow{Bytes: 3, PerSecond: 1.5}}})
		}, "", asked{"POST", "/v1/usage", "Bearer secret",
			`{"role":"ps","index":2,"usage":{"cpu":0.5,"read":{"bytes":3,"bytes_per_second":1.5}}}`}},
		"stop": {func(c *Client) error { return c.Stop(ctx) }, "", asked{"POST", "/v1/stop", "Bearer secret", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			c, last := coordinator(t, http.StatusOK, tt.answer)
			if err := tt.do(c); err != nil {
				t.Fatal(err)
			}
			if *last != tt.want {
				t.Errorf("asked %+v, want %+v", *last, tt.want)
			}
		})
	}
}

func TestAnswersThatAreNoSuccess(t *testing.T) {
	c, _ := coordinator(t, http.StatusUnauthorized, `{"summary": "No access", "detail": "The token is another run's."}`)
	var f Failure
	if _, err := c.Status(t.Context()); !errors.As(err, &f) || f.Summary != "No access" {
		t.Errorf("a failure is told as %v", err)
	}
	for answer, status := range map[string]int{"<html>": http.StatusBadGateway, `{}`: http.StatusNotFound} {
		c, _ := coordinator(t, status, answer)
		if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), http.StatusText(status)) {
			t.Errorf("%d with %q is told as %v", status, answer, err)
		}
	}
	c, _ = coordinator(t, http.StatusOK, `{"step":`)
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), PathStatus) {
		t.Errorf("half an answer is told as %v", err)
	}
	c, _ = coordinator(t, http.StatusOK, "{\"n\": 1}\n{\"n\":")
	if events, err := c.Metrics(t.Context(), 0, 0); err == nil || len(events) != 1 {
		t.Errorf("half an event is told as %v, behind %v", err, events)
	}
}

// The token never leaves the machine in the clear.
func TestTokenIsNotSentInTheClear(t *testing.T) {
	for _, base := range []string{"http://192.0.2.1:1", "http://example.org:1", "https://127.0.0.1:1", "ftp://127.0.0.1:1", "://"} {
		c := New(base, "secret", nil)
		sent := 0
		c.http.Transport = tripper(func(*http.Request) (*http.Response, error) {
			sent++
			return nil, errors.New("sent")
		})
		if err := c.Stop(t.Context()); err == nil || sent > 0 {
			t.Errorf("%s: %v, sent %d times", base, err, sent)
		}
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
