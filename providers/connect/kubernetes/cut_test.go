package kubernetes

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// TestCutCommand: a command whose connection ends without the command's status
// has not succeeded; one whose status came has.
func TestCutCommand(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		want   error
	}{
		"cut":   {"", io.ErrUnexpectedEOF},
		"ended": {`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
					t.Error(err)
					return
				}
				streams := make(chan httpstream.Stream, 2)
				conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
					go func() { <-replied; streams <- s }()
					return nil
				})
				if conn == nil {
					return
				}
				defer conn.Close()
				for range 2 { // of errors, and of the output
					s := <-streams
					if s.Headers().Get("streamType") == "error" {
						io.WriteString(s, test.status)
					}
					if test.status != "" {
						s.Close()
					}
				}
			}))
			defer server.Close()
			at, err := url.Parse(server.URL + "/exec")
			if err != nil {
				t.Fatal(err)
			}
			// With a way of its own, SPDY alone is spoken.
			c := &Client{endpoint: &endpoint{name: "test", config: &rest.Config{Host: server.URL, Dial: dialer}}}
			run, err := c.Executor(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			if err := run.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard}); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}
