package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/history"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// eventsOf returns the events of a history that are about usage.
func eventsOf(t *testing.T, h *history.File) (all []spec.Event) {
	t.Helper()
	for _, e := range eventsIn(t, h) {
		if e.Type == spec.EventUsage {
			all = append(all, e)
		}
	}
	return all
}

// eventsIn returns all events of a history.
func eventsIn(t *testing.T, h *history.File) (all []spec.Event) {
	t.Helper()
	var text strings.Builder
	if _, err := h.Send(&text, 0); err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(text.String())); ; {
		var e spec.Event
		if err := d.Decode(&e); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
}

// The status has the newest usage of each role that still reports, and the history
// at most one event of a role in a second.
func TestNewestUsage(t *testing.T) {
	c := newBench(t, 2).opened()
	if err := c.Begin(); err != nil {
		t.Fatal(err)
	}
	began := time.Unix(1000, 0)
	at := func(after time.Duration, role string, cpu float64) {
		server{c.Session}.takeUsage(began.Add(after), role, spec.Usage{CPU: cpu, Role: "forged", At: began.Add(time.Hour)})
	}
	at(0, "worker-0", 1)
	at(0, "worker-1", 2)
	c.Publish()
	first := c.Status().Usage
	at(500*time.Millisecond, "worker-0", 3)
	at(999*time.Millisecond, "worker-0", 4)
	at(time.Second, "worker-0", 5)
	at(20*time.Second, "coordinator", 6)
	c.Publish()
	if len(first) != 2 || first["worker-0"].CPU != 1 {
		t.Errorf("a published status has changed: %+v", first)
	}
	published := c.Status().Usage
	if len(published) != 3 || published["worker-0"].CPU != 5 || published["worker-1"].CPU != 2 || published["coordinator"].CPU != 6 {
		t.Errorf("usage %+v", published)
	}
	for name, u := range published {
		if u.Role != name || u.At.After(began.Add(time.Minute)) {
			t.Errorf("usage of %s: %+v", name, u)
		}
	}
	c.usages.drop(began.Add(30*time.Second + 1))
	c.Publish()
	if got := c.Status().Usage; len(got) != 2 || got["worker-0"].CPU != 5 || len(published) != 3 {
		t.Errorf("usage %+v", got)
	}
	got := ""
	for _, e := range eventsOf(t, c.history) {
		got += fmt.Sprintf("%s %g, ", e.Usage.Role, e.Usage.CPU)
		if e.Term != 1 || !e.Usage.At.IsZero() || e.Count != 0 {
			t.Errorf("event %+v", e)
		}
	}
	if want := "worker-0 1, worker-1 2, worker-0 5, coordinator 6, "; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	c.publish(spec.Succeeded)
	if got := c.Status().Usage; got != nil {
		t.Errorf("a run that is over has the usage %+v", got)
	}
}

// An event about usage that cannot be written does not end the run.
func TestUsageThatCannotBeWritten(t *testing.T) {
	b := newBench(t, 1)
	c := b.opened() // without Begin nothing can be written
	server{c.Session}.takeUsage(time.Now(), "worker-0", spec.Usage{CPU: 1})
	if c.Reason() != nil || c.Unwritten() || !strings.Contains(b.logs.String(), "not in the history") {
		t.Errorf("the run ends: %v, the log has %s", c.Reason(), b.logs.String())
	}
	if c.Publish(); c.Status().Usage["worker-0"].CPU != 1 {
		t.Errorf("usage %+v", c.Status().Usage)
	}
}

// Reports reach the status and the history by the API, and the coordinator's own by
// a channel.
func TestUsageIsReported(t *testing.T) {
	b := newBench(t, 2)
	b.options.Spec.ParameterServer.Replicas = 1
	own := make(chan spec.Usage, 1)
	b.options.Usage = own
	w := b.opened()
	b.begin(w)
	sent := spec.Usage{CPU: 1.25, Memory: 77, Limit: 99, Received: spec.Flow{Bytes: 1, PerSecond: 2}, Sent: spec.Flow{Bytes: 3, PerSecond: 4},
		Read: spec.Flow{Bytes: 5, PerSecond: 6}, Written: spec.Flow{Bytes: 7, PerSecond: 8}, Processes: 3, Partly: "a reason"}
	own <- spec.Usage{CPU: 0.5}
	client := b.client()
	for _, r := range []spec.UsageReport{{Role: "worker", Index: 1, Usage: sent}, {Role: "ps", Usage: spec.Usage{CPU: 2}}} {
		if err := client.Usage(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	var got map[string]spec.Usage
	for end := time.Now().Add(time.Minute); len(got) != 3; time.Sleep(time.Millisecond) {
		st, err := client.Status(t.Context())
		if err != nil || time.Now().After(end) {
			t.Fatalf("usage %+v, %v", st.Usage, err)
		}
		got = st.Usage
	}
	is := got["worker-1"]
	is.Role, is.At = "", time.Time{}
	if !reflect.DeepEqual(is, sent) || got["ps-0"].CPU != 2 || got["coordinator"].CPU != 0.5 {
		t.Errorf("usage %+v", got)
	}
	if events := eventsOf(t, w.history); len(events) != 3 {
		t.Errorf("events %+v", events)
	}
}

// What is not a report of a role of the run is refused, and changes nothing.
func TestUsageIsRefused(t *testing.T) {
	c := newBench(t, 2).opened()
	if err := c.Begin(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() { // as loop does
		defer close(ended)
		for {
			select {
			case e := <-c.events:
				c.handle(e)
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() { close(done); <-ended })
	handler := server{c.Session}.routes()
	post := func(authorization, body string) (int, api.Failure) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, api.PathUsage, strings.NewReader(body))
		request.Header.Set("Authorization", authorization)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		var f api.Failure
		if answer.Code/100 != 2 {
			if err := json.Unmarshal(answer.Body.Bytes(), &f); err != nil {
				t.Errorf("%.100q: %v", body, err)
			}
		}
		return answer.Code, f
	}
	for body, want := range map[string]int{
		"":                                      http.StatusBadRequest,
		"[]":                                    http.StatusBadRequest,
		`{"role":"worker","sample":1}`:          http.StatusBadRequest,
		`{"role":"worker","usage":{"cpu":NaN}}`: http.StatusBadRequest,
		`{"role":"worker","usage":{"cpu":1e999}}`:                                        http.StatusBadRequest,
		`{"role":"worker","usage":{"memory_bytes":1e30}}`:                                http.StatusBadRequest,
		`{"role":"worker","usage":{"partly":"` + strings.Repeat("x", usageBytes) + `"}}`: http.StatusBadRequest,
		`{"role":"worker","usage":{"cpu":-1}}`:                                           http.StatusUnprocessableEntity,
		`{"role":"worker","usage":{"memory_bytes":-1}}`:                                  http.StatusUnprocessableEntity,
		`{"role":"worker","usage":{"read":{"bytes":-1}}}`:                                http.StatusUnprocessableEntity,
		`{"role":"worker","index":2,"usage":{"cpu":1}}`:                                  http.StatusUnprocessableEntity,
		`{"role":"worker","index":-1,"usage":{"cpu":1}}`:                                 http.StatusUnprocessableEntity,
		`{"role":"ps","index":1,"usage":{"cpu":1}}`:                                      http.StatusUnprocessableEntity,
		`{"role":"coordinator","usage":{"cpu":1}}`:                                       http.StatusUnprocessableEntity,
		`{"role":"worker-0","usage":{"cpu":1}}`:                                          http.StatusUnprocessableEntity,
		`{"role":"","usage":{"cpu":1}}`:                                                  http.StatusUnprocessableEntity,
	} {
		if code, f := post("Bearer "+token, body); code != want || f.Summary == "" || f.Detail == "" {
			t.Errorf("%.100q: %d %v, want %d", body, code, f, want)
		}
	}
	if code, _ := post("Bearer nothing", `{"role":"worker","usage":{"cpu":1}}`); code != http.StatusUnauthorized {
		t.Errorf("without the token: %d", code)
	}
	if events := eventsOf(t, c.history); len(events) != 0 || len(c.usages.newest) != 0 {
		t.Errorf("usage %v, events %+v", c.usages.newest, events)
	}
	if code, f := post("Bearer "+token, `{"role":"worker","index":1,"usage":{"cpu":1}}`); code != http.StatusNoContent {
		t.Errorf("a report: %d %v", code, f)
	}
	surplus := `{"role":"worker","index":2,"usage":{"cpu":1}}`
	c.Do(t.Context(), func() { c.members[Seat{Role: wire.RoleWorker, Index: 2}] = new(Member) })
	if code, f := post("Bearer "+token, surplus); code != http.StatusNoContent {
		t.Errorf("a report of a surplus member: %d %v", code, f)
	}
	if len(c.usages.newest) != 2 {
		t.Errorf("usage %v", c.usages.newest)
	}
}

// After the run's end reports change nothing, and are no error.
func TestUsageAfterTheEnd(t *testing.T) {
	b := newBench(t, 1)
	b.options.Linger = time.Hour
	w := b.opened()
	ended := b.begin(w)
	client := b.client()
	if err := client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until("waiting for the run's results to be collected", 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := client.Usage(ctx, spec.UsageReport{Role: "worker", Usage: spec.Usage{CPU: 1}}); err != nil {
		t.Error(err)
	}
	if err := client.Collected(ctx); err != nil {
		t.Error(err)
	}
	if st := <-ended; st.Phase != spec.Stopped || st.Usage != nil || len(eventsOf(t, w.history)) != 0 {
		t.Errorf("status %+v", st)
	}
	var refused api.Failure
	if err := client.Usage(ctx, spec.UsageReport{Role: "worker"}); err == nil || errors.As(err, &refused) {
		t.Errorf("an API that is gone answers %v", err)
	}
}
