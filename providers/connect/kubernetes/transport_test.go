package kubernetes

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestCutAnswers: an API server that goes away in the middle of an answer is
// asked again; what was not asked for twice is an error, and a stream is passed
// on as it comes.
func TestCutAnswers(t *testing.T) {
	const text = "the whole of it"
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "15")
		if asked.Add(1)%2 == 0 {
			io.WriteString(w, text)
			return
		}
		io.WriteString(w, text[:5])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler) // cuts the connection
	}))
	defer server.Close()
	r := &retrying{next: http.DefaultTransport}
	r.patience.Store(int64(time.Minute))
	ask := func(method, path string) (string, error) {
		t.Helper()
		asked.Store(0)
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: r}).Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return string(body), err
	}
	if got, err := ask(http.MethodGet, "/api/v1/pods"); got != text || err != nil || asked.Load() != 2 {
		t.Errorf("a list is %q, %v, after %d requests", got, err, asked.Load())
	}
	if got, err := ask(http.MethodPost, "/api/v1/pods"); err == nil || asked.Load() != 1 {
		t.Errorf("a create is %q, after %d requests", got, asked.Load())
	}
	for _, path := range []string{"/api/v1/pods?watch=true", "/api/v1/namespaces/a/pods/b/log"} {
		if got, err := ask(http.MethodGet, path); !strings.HasPrefix(text, got) || got == text || err == nil || asked.Load() != 1 {
			t.Errorf("%s is %q, %v, after %d requests", path, got, err, asked.Load())
		}
	}
}
