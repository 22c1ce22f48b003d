package kubernetes

import (
	"context"
	"io"
	"net"
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

// frozen is a connection that reads nothing more once the channel is closed: pings are not
// answered.
type frozen struct {
	net.Conn
	ice <-chan struct{}
}

func (f frozen) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	select {
	case <-f.ice:
		select {} // until the test process ends
	default:
		return n, err
	}
}

// freezing freezes the first connection of a listener.
type freezing struct {
	net.Listener
	ice   <-chan struct{}
	taken atomic.Bool
}

func (f *freezing) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	if err == nil && f.taken.CompareAndSwap(false, true) {
		c = frozen{c, f.ice}
	}
	return c, err
}

// lossy is an HTTP/2 API server that loses the first request, and answers all others.
func lossy(lose func(*http.Request)) *httptest.Server {
	var lost atomic.Bool
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lost.CompareAndSwap(false, true) {
			lose(r)
			return
		}
		io.WriteString(w, r.Proto)
	}))
	server.EnableHTTP2 = true
	return server
}

// sendAgain sends a request to a started server that loses it, and returns how often the
// client waited before it got an answer.
func sendAgain(t *testing.T, server *httptest.Server, method string) (waits int) {
	t.Helper()
	r := &retrying{next: server.Client().Transport, waiting: func(_ context.Context, err error) { waits++; t.Log(err) }}
	r.patience.Store(int64(time.Minute))
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.RoundTrip(req)
	if err != nil {
		t.Fatalf("the request is not sent again: %v", err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "HTTP/2.0" || err != nil {
		t.Errorf("the answer is %q, %v, after %d waits", body, err, waits)
	}
	return waits
}

// TestLostHTTP2Connection: a request whose HTTP/2 connection no longer answers pings is
// sent again over another connection, also where it deletes or applies.
func TestLostHTTP2Connection(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPatch} {
		t.Run(method, func(t *testing.T) {
			ice := make(chan struct{})
			server := lossy(func(r *http.Request) {
				close(ice)
				<-r.Context().Done()
			})
			server.Listener = &freezing{Listener: server.Listener, ice: ice}
			server.StartTLS() // without Close, which would wait for the frozen connection
			server.Client().Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{SendPingTimeout: 100 * time.Millisecond, PingTimeout: 100 * time.Millisecond}
			if waits := sendAgain(t, server, method); waits == 0 {
				t.Error("the client did not wait")
			}
		})
	}
}

// TestAbortedHTTP2Stream: a request that the API server gave up, as it does when it is
// overloaded, is sent again.
func TestAbortedHTTP2Stream(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPatch} {
		t.Run(method, func(t *testing.T) {
			server := lossy(func(*http.Request) { panic(http.ErrAbortHandler) })
			server.StartTLS()
			defer server.Close()
			if waits := sendAgain(t, server, method); waits != 1 {
				t.Errorf("%d waits", waits)
			}
		})
	}
}
