package session

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/api"
)

// FuzzAPI sends whatever somebody may send, with the token and without: the
// answer is a success, or a failure that says what was wrong; nothing is
// changed without the token, and nothing by what is refused.
func FuzzAPI(f *testing.F) {
	for _, path := range []string{api.PathStatus, api.PathMetrics + "?after=1&wait=0", api.PathPrometheus, api.PathLedger, api.PathLive, api.PathUsage, api.PathStop, "/", "/v1/../v1/live"} {
		for _, body := range []string{"", "{}", `{"workers":3}`, `{"workers":-1,"deadline":"2h"}`, `{"checkpoint_keep":1e9}`, `{"role":"worker","usage":{"cpu":1}}`, `[1]`, "\x00"} {
			f.Add(true, http.MethodPost, path, body)
		}
		f.Add(false, http.MethodGet, path, "")
	}
	c := newBench(f, 2).opened()
	if err := c.Begin(); err != nil {
		f.Fatal(err)
	}
	c.Publish()
	changes := 0
	go func() { // as loop does
		for e := range c.events {
			c.handle(e)
		}
	}()
	settled := func() { // all that was sent before is done
		c.Do(context.Background(), func() { changes = len(c.heard) })
	}
	handler := server{c.Session}.routes()
	f.Fuzz(func(t *testing.T, known bool, method, path, body string) {
		target, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(path, "/") || strings.Contains(target.RawQuery, "wait") {
			return
		}
		request, err := http.NewRequestWithContext(context.Background(), method, "http://x", strings.NewReader(body))
		if err != nil {
			return
		}
		request.URL.Path, request.URL.RawQuery = target.Path, target.RawQuery
		if known {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		settled()
		before, had := c.Spec, changes
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		settled()
		switch {
		case !known && (answer.Code != http.StatusUnauthorized || changes != had):
			t.Errorf("%s %q without the token: %d", method, path, answer.Code)
		case answer.Code/100 != 2 && c.Spec != before:
			t.Errorf("%s %q with %q was refused with %d, and changed the run", method, path, body, answer.Code)
		case answer.Code >= 500:
			t.Errorf("%s %q with %q: %d %s", method, path, body, answer.Code, answer.Body)
		}
		if answer.Code == http.StatusUnprocessableEntity || answer.Code == http.StatusUnauthorized {
			var failure api.Failure
			if err := json.Unmarshal(answer.Body.Bytes(), &failure); err != nil || failure.Summary == "" || failure.Detail == "" {
				t.Errorf("%s %q with %q: an answer that says nothing: %s", method, path, body, answer.Body)
			}
		}
		if len(c.Spec.Validate()) > 0 {
			t.Errorf("%s %q with %q left a spec that is not valid", method, path, body)
		}
	})
}
