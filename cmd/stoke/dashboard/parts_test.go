package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers"
)

// TestScreensReadOnlyTheirPart holds how much of histories each screen reads: lists none,
// and no screen the JSON of events.
func TestScreensReadOnlyTheirPart(t *testing.T) {
	f := someRuns()
	s := open(t, f)
	asked := func(r *fakeRun) (all []providers.RunMetrics) {
		r.mu.Lock()
		defer r.mu.Unlock()
		all, r.asked = r.asked, nil
		for i := range all {
			if !all[i].Brief {
				t.Errorf("request %d asks for JSON", i)
			}
		}
		return all
	}
	for _, path := range []string{"/runs", "/workers", "/cluster", "/new", of("/compare", f.runs[0]), of("/worker?role=worker-0", f.runs[0])} {
		s.get(path)
		for _, r := range f.runs {
			if all := asked(r); len(all) != 0 {
				t.Errorf("%s reads the history of %s: %+v", path, r.address, all)
			}
		}
	}
	ended := f.runs[0]
	for range 3 {
		s.get(of("/run", ended))
		s.get(of("/data/series", ended))
		s.get(of("/data/series?of=roles", ended))
		s.get(of("/data/series?role=worker-0", ended))
	}
	all := asked(ended)
	slices.SortFunc(all, func(a, b providers.RunMetrics) int {
		return strings.Compare(fmt.Sprint(a.Usage, a.Role), fmt.Sprint(b.Usage, b.Role))
	})
	if len(all) != 3 || all[0].Usage != providers.WithoutUsage || all[1].Role != "" || all[2].Role != "worker-0" || all[2].Usage != providers.OnlyUsage {
		t.Errorf("a run is read with %+v", all)
	}
	s.get("/data/workers")
	live := f.runs[2]
	if all := asked(live); len(all) == 0 || all[0].Usage != providers.OnlyUsage || time.Since(all[0].Since) > 2*cardTime {
		t.Errorf("cards read %+v", all)
	}
	if all := asked(ended); len(all) != 0 {
		t.Errorf("cards read an ended run: %+v", all)
	}
}

// TestHistoriesAreBounded adds ten times the events, and finds as many points.
func TestHistoriesAreBounded(t *testing.T) {
	points := func(steps int) (n int) {
		r := newRun("long", 3, 0.1)
		r.train(0, steps)
		feeds := newFeeds()
		defer feeds.close()
		for _, p := range []part{ofRun, ofRoles, ofCards, {usage: true, role: "worker-1"}} {
			one, release := feeds.open(row{Entry: Entry{Address: "x"}, run: r}, p)
			if err := one.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, c := range one.set.All() {
				n += len(c.Points)
			}
			n += len(one.events)
			release()
		}
		return n
	}
	if few, many := points(4000), points(40_000); many > 2*few {
		t.Errorf("%d points of 4,000 steps, %d of 40,000", few, many)
	}
}

// The page of a draft has the end of a long plan, with its errors, and says that it failed.
func TestFormShowsTheEndOfAPlan(t *testing.T) {
	f := someRuns()
	f.planned, f.unplanned = 200_000, errors.New("the plan failed")
	s := open(t, f)
	answer, err := s.client.PostForm(s.base+"/new", url.Values{"label": {"digits"}, "kind": {"model"}, "model": {"mlp"}, "do": {"plan"}})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	page := html.UnescapeString(string(body))
	if err != nil || len(page) > 2*longestPlan || !strings.Contains(page, "Plan: 1 to add of resource") ||
		!strings.Contains(page, "the plan failed") || strings.Contains(page, "Valid together") {
		t.Errorf("%v: a long plan that failed has %d bytes: %.20000s", err, len(page), page)
	}
}

// The cards of a run that has ended have the samples of its last minutes, however long
// ago these were.
func TestCardsOfAnEndedRun(t *testing.T) {
	f := someRuns()
	ended := f.runs[0]
	day := 24 * time.Hour
	ended.status.Started, ended.status.Ended = ended.status.Started.Add(-day), ended.status.Ended.Add(-day)
	for i := range ended.events {
		ended.events[i].Time = ended.events[i].Time.Add(-day)
	}
	s := open(t, f)
	var charts map[string][]curve
	if err := json.Unmarshal([]byte(s.get("/data/workers?run="+keyOf(ended.address))), &charts); err != nil {
		t.Fatal(err)
	}
	if len(charts[keyOf(ended.address)]) == 0 {
		t.Errorf("the charts are %v", charts)
	}
	if all := ended.asked; len(all) != 1 || !all[0].Since.Equal(ended.status.Ended.Add(-cardTime)) {
		t.Errorf("cards read %+v of a run that ended at %v", all, ended.status.Ended)
	}
}

// TestNetworkIsCounted shows a network only where the machine counts it.
func TestNetworkIsCounted(t *testing.T) {
	role := providers.RunRole{Name: "worker-0", Phase: "running", Address: "10.0.0.7", Usage: &providers.RunUsage{CPU: 1, Received: 2048, Network: true}}
	is := roleOf("a", "a", &role, time.Now())
	if in, out := is.Cells["received_per_second"].Text, is.Cells["sent_per_second"].Text; in != "2.0 KiB/s" || out != "0 B/s" {
		t.Errorf("received %s, sent %s", in, out)
	}
	if is.Cells["address"].Text != "10.0.0.7" {
		t.Errorf("the address is %s", is.Cells["address"].Text)
	}
	role.Usage.Network, role.Address = false, ""
	is = roleOf("a", "a", &role, time.Now())
	for _, key := range []string{"received_per_second", "sent_per_second", "address"} {
		if is.Cells[key] != none {
			t.Errorf("%s is %s", key, is.Cells[key].Text)
		}
	}
}
