package coordinator

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/certificate"
	"github.com/stokehq/stoke/runtime/history"
	"github.com/stokehq/stoke/runtime/spec"
)

// begun starts a run whose workers do not come until the test lets them.
func begun(t *testing.T, s spec.Spec) (b *bench, done chan spec.Status) {
	t.Helper()
	b = newBench(t, s, linear{})
	return b, b.begin()
}

// begin starts the coordinator alone.
func (b *bench) begin() (done chan spec.Status) {
	done = make(chan spec.Status, 1)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		st, err := Run(b.ctx, b.options)
		if err != nil {
			b.t.Error(err)
		}
		done <- st
	}()
	b.t.Cleanup(func() { b.cancel(); <-stopped })
	return done
}

func TestAPIWantsTheToken(t *testing.T) {
	b, _ := begun(t, pointsSpec())
	base := "http://" + b.options.API.Addr().String()
	for _, path := range []string{api.PathStatus, api.PathMetrics, api.PathLedger, api.PathStop, api.PathLive, "/", "/nowhere"} {
		for _, header := range []string{"", "Bearer", "Bearer wrong", token, "Basic " + token} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				request, err := http.NewRequest(method, base+path, strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Authorization", header)
				answer, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if answer.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s %s with %q: %s", method, path, header, answer.Status)
				}
			}
		}
	}
}

func TestAPIFollowsARun(t *testing.T) {
	s := pointsSpec()
	b, done := begun(t, s)
	c := api.New("http://"+b.options.API.Addr().String(), token, nil)
	defer c.Close()
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Minute)
	defer cancel()
	first, err := c.Metrics(ctx, 0, 30*time.Second)
	if err != nil || len(first) == 0 || first[0].Type != spec.EventRestore {
		t.Fatalf("first events %+v, %v", first, err)
	}
	st, err := c.Status(ctx)
	if err != nil || st.Phase != spec.Running || st.Workers != 0 {
		t.Errorf("status %+v, %v", st, err)
	}
	for name, bad := range map[string]string{
		"no JSON": "{", "unknown": `{"wrokers": 2}`, "none": `{"workers": 0}`, "huge": `{"workers": 99999999}`, "wrong type": `{"workers": "2"}`,
		"long": `{"workers": ` + strings.Repeat(" ", 1<<20) + "2}",
	} {
		request, err := http.NewRequest(http.MethodPost, "http://"+b.options.API.Addr().String()+api.PathLive, strings.NewReader(bad))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode/100 != 4 {
			t.Errorf("%s: %s", name, answer.Status)
		}
	}
	go b.work(ctx, 0) // ends with ctx, or when it is told to leave
	seen, last := first[len(first)-1].Number, first[0]
	updates := 0
	for last.Type != spec.EventEnd {
		events, err := c.Metrics(ctx, seen, 10*time.Second)
		if err != nil {
			break // the run is over
		}
		for _, e := range events {
			if e.Number != seen+1 {
				t.Fatalf("event %d follows %d", e.Number, seen)
			}
			seen, last = e.Number, e
			if e.Type == spec.EventUpdate {
				updates++
			}
		}
	}
	if end := <-done; end.Phase != spec.Succeeded || end.Step != 36 {
		t.Errorf("status %+v", end)
	}
	// What the API could not deliver any more is in the file.
	h, err := history.Open(b.options.Folder.Metrics(), func(spec.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	var rest bytes.Buffer
	if _, err := h.Send(&rest, seen); err != nil {
		t.Fatal(err)
	}
	if got := updates + strings.Count(rest.String(), `"type":"update"`); got != 36 {
		t.Errorf("%d updates seen", got)
	}
}

// A run with a certificate of its own answers to those who know it, over TLS,
// and a client never shows its token to anybody else.
func TestAPIWithACertificate(t *testing.T) {
	made, err := certificate.Make("run")
	if err != nil {
		t.Fatal(err)
	}
	other, err := certificate.Make("run")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, pointsSpec(), linear{})
	b.options.Credentials.Key, b.options.Credentials.Certificate = made, &made.Pin
	b.begin()
	at := b.options.API.Addr().String()
	ask := func(base string, pin *certificate.Pin) error {
		c := api.New(base, token, pin)
		defer c.Close()
		_, err := c.Status(b.ctx)
		return err
	}
	if err := ask("https://"+at, &made.Pin); err != nil {
		t.Error("the run's own client:", err)
	}
	for name, err := range map[string]error{
		"plain":                       ask("http://"+at, nil),
		"plain, though it has a pin":  ask("http://"+at, &made.Pin),
		"another run's certificate":   ask("https://"+at, &other.Pin),
		"a name instead of loopback":  ask("http://localhost.example:1", nil),
		"an address of the network":   ask("http://192.0.2.1:1", nil),
		"https without a certificate": ask("https://"+at, nil),
	} {
		if err == nil {
			t.Errorf("%s: answered", name)
		}
	}
}
