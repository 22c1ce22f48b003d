package kubernetes

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// TestFollowedMetricsEnd has a coordinator that lingers behind the end of its
// run: whoever follows its events is done, and waits for none.
func TestFollowedMetricsEnd(t *testing.T) {
	update := func(n int64) spec.Event { return spec.Event{Number: n, Type: spec.EventUpdate} }
	end := func(n int64) spec.Event { return spec.Event{Number: n, Type: spec.EventEnd} }
	for _, tt := range []struct {
		name   string
		after  int64
		phases []spec.Phase // one answer each; the last one stays
		events []spec.Event
		want   []int64
		long   int // how many requests wait for an event that is to come
	}{
		{"ended", 0, []spec.Phase{spec.Succeeded}, []spec.Event{update(1), end(2)}, []int64{1, 2}, 0},
		{"ended without an event", 0, []spec.Phase{spec.Failed}, []spec.Event{update(1)}, []int64{1}, 0},
		{"nothing is left", 2, []spec.Phase{spec.Stopped}, []spec.Event{update(1), end(2)}, nil, 0},
		{"ends meanwhile", 0, []spec.Phase{spec.Running, spec.Succeeded}, []spec.Event{update(1), end(2)}, []int64{1, 2}, 1},
		{"goes on behind an end", 0, []spec.Phase{spec.Running, spec.Running, spec.Stopped}, []spec.Event{end(1), update(2), end(3)}, []int64{1, 2, 3}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked, long := 0, 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case api.PathStatus:
					_ = json.NewEncoder(w).Encode(spec.Status{Phase: tt.phases[min(asked, len(tt.phases)-1)]})
					asked++
				case api.PathMetrics:
					wait, _ := strconv.ParseFloat(r.FormValue("wait"), 64)
					if time.Duration(wait*float64(time.Second)) > poll {
						long++
					}
					after, _ := strconv.ParseInt(r.FormValue("after"), 10, 64)
					given := 0
					for _, e := range tt.events {
						if e.Number > after && given == 0 { // one at a time
							_ = json.NewEncoder(w).Encode(e)
							given++
						}
					}
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(s.Close)
			client := api.New(s.URL, "0123456789abcdef0123456789abcdef", nil)
			t.Cleanup(client.Close)
			var got []int64
			last, over, err := (&session{Client: client, pod: "coordinator"}).events(t.Context(), tt.after, true, func(e spec.Event) error {
				got = append(got, e.Number)
				return nil
			})
			if err != nil || !over || !slices.Equal(got, tt.want) || last != tt.events[len(tt.events)-1].Number {
				t.Errorf("events %v to %d, over: %v, %v", got, last, over, err)
			}
			if long != tt.long {
				t.Errorf("%d requests waited long, want %d", long, tt.long)
			}
			why := errors.New("enough")
			if _, _, err := (&session{Client: client, pod: "coordinator"}).events(t.Context(), 0, false, func(spec.Event) error { return why }); !errors.Is(err, why) {
				t.Errorf("whoever has enough is told %v", err)
			}
		})
	}
}

// The coordinator's usage has the name of its pod's role, as statuses have it.
func TestUsageOfTheCoordinator(t *testing.T) {
	for _, asked := range []string{"", "coordinator", "coordinator-0", "worker-0"} {
		var roles []string
		want, event := inPods(run.EventFilter{Role: asked}, func(e spec.Event) error {
			roles = append(roles, e.Usage.Role)
			return nil
		})
		for _, role := range []string{"coordinator", "worker-0"} {
			e := spec.Event{Number: 1, Type: spec.EventUsage, Usage: &spec.Usage{Role: role}}
			if !want.Accepts(e) {
				continue
			}
			if err := event(e); err != nil || e.Usage.Role != role {
				t.Errorf("%v, and the event is changed: %+v", err, e.Usage)
			}
		}
		is := map[string]string{"": "coordinator-0 worker-0", "worker-0": "worker-0"}[asked]
		if is == "" {
			is = "coordinator-0"
		}
		if got := strings.Join(roles, " "); got != is {
			t.Errorf("asked for %q: %s", asked, got)
		}
	}
}
