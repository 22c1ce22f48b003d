package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestPluginRenewal: requests that are refused together share one new credential,
// and each is sent once more, not oftener; so it is the next time.
func TestPluginRenewal(t *testing.T) {
	const together = 8
	dir := t.TempDir()
	program, asked := filepath.Join(dir, "plugin"), filepath.Join(dir, "asked")
	script := "#!/bin/sh\necho >>" + asked + "\nn=$(wc -l <" + asked + ")\n" +
		`echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'$((n))'"}}'` + "\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var refused sync.WaitGroup
	var good string // the only token that is taken
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		mu.Lock()
		requests++
		ok, first := token == good, requests <= together
		mu.Unlock()
		if ok {
			return
		}
		if first { // none is answered before all are here
			refused.Done()
			refused.Wait()
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	a := &pluginAuth{next: http.DefaultTransport, plugin: newPlugin(&clientcmdapi.ExecConfig{Command: program}), forget: func() {}}
	for _, step := range []struct {
		good          string
		status        int
		runs, request int
	}{
		{"2", http.StatusOK, 2, 2 * together},
		{"3", http.StatusOK, 3, 2 * together}, // a second time in its life
		{"none", http.StatusUnauthorized, 4, 2 * together},
	} {
		mu.Lock()
		good, requests = step.good, 0
		mu.Unlock()
		refused.Add(together)
		var all sync.WaitGroup
		for range together {
			all.Go(func() {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := a.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
				if resp.StatusCode != step.status {
					t.Errorf("token %s: %s", step.good, resp.Status)
				}
			})
		}
		all.Wait()
		text, err := os.ReadFile(asked)
		if err != nil {
			t.Fatal(err)
		}
		if runs := strings.Count(string(text), "\n"); runs != step.runs || requests != step.request {
			t.Errorf("token %s: the plugin ran %d times for %d requests; want %d, %d", step.good, runs, requests, step.runs, step.request)
		}
	}
}

// TestPluginThatHangs: the caller hears of a plugin that takes long, and one that never
// answers is ended.
func TestPluginThatHangs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the plugins are shell scripts")
	}
	p := newPlugin(&clientcmdapi.ExecConfig{Command: "/bin/sh", Args: []string{"-c", "sleep 600"}})
	heard := make(chan error, 1)
	p.slow, p.waiting = time.Millisecond, func(_ context.Context, err error) { heard <- err }
	ctx, stop := context.WithCancel(t.Context())
	var slow error
	done := make(chan error)
	go func() {
		_, err := p.get(ctx)
		done <- err
	}()
	if slow = <-heard; !errors.As(slow, new(*SlowPluginError)) || !strings.Contains(slow.Error(), "the credential plugin /bin/sh has not answered") {
		t.Errorf("it waits for %v", slow)
	}
	stop()
	<-done
	p = newPlugin(p.config)
	p.limit = time.Millisecond
	_, err := p.get(t.Context())
	if summary, detail := Describe(err); summary != "No credential for the cluster" || !strings.Contains(detail, "did not answer within 1ms") {
		t.Errorf("%s: %s", summary, detail)
	}
}
