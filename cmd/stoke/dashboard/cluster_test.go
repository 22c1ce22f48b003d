package dashboard

import (
	"context"
	"errors"
	"fmt"
	"html"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers"
)

func TestClusterIsLive(t *testing.T) {
	f := someRuns()
	s := open(t, f)
	events := s.events("/live/cluster")
	first := events("cluster")
	f.runs[2].mu.Lock()
	f.runs[2].status.Ended = time.Now()
	f.runs[2].mu.Unlock()
	if next := events("cluster"); next == first {
		t.Errorf("the version is %s again", next)
	}
	if text := s.events("/live/cluster")("cluster"); text == first {
		t.Errorf("a new viewer has the old version %s", text)
	}
}

// One run of each place is asked, not each run, and places with the same ID are shown once.
func TestSurveysAreShared(t *testing.T) {
	f := someRuns()
	var asked atomic.Int32
	for i, r := range f.runs {
		r.status.Where = fmt.Sprint("training/", i%2)
		r.survey = func() providers.RunSurvey { asked.Add(1); return clusterOf(nil) }
	}
	f.runs[0].survey = nil // it has ended: a live run of its place is asked
	s := open(t, f)
	for range 3 {
		if n := strings.Count(s.get("/cluster"), `class="place"`); n != 1 {
			t.Errorf("%d places are shown, want 1", n)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("%d surveys were read, want 2", n)
	}
}

// brokenRun has a survey that fails.
type brokenRun struct{ *fakeRun }

func (brokenRun) Survey(context.Context) (providers.RunSurvey, error) {
	return providers.RunSurvey{}, errors.New("the API server <b>refuses</b>")
}

func TestClusterTellsFailures(t *testing.T) {
	f := someRuns()
	s := open(t, f)
	rows := []row{{Entry: Entry{Address: "train_experiment.a"}, run: brokenRun{f.runs[2]}, status: providers.RunStatus{Where: "far/default"}}}
	all := s.server.surveys.read(t.Context(), rows, time.Minute)
	if len(all) != 1 || all[0].key != "far/default" || all[0].err == nil {
		t.Errorf("surveys are %+v", all)
	}
}

// A failed reading is repeated soon, and leaves the last numbers on the page.
func TestFailedSurveyKeepsTheLast(t *testing.T) {
	c := &surveyCell{took: time.Hour}
	if c.pause() != longestPause {
		t.Errorf("a slow survey pauses for %v", c.pause())
	}
	c.is = surveyed{key: "far", err: errors.New("timeout"), known: time.Now(), survey: providers.RunSurvey{
		Place: "far", ID: "far", Nodes: []providers.RunNode{{Name: "node-1", Phase: "ready", CPU: 4}},
	}}
	if c.pause() != failurePause {
		t.Errorf("a failed survey pauses for %v", c.pause())
	}
	v := failedPlace(c.is, newOwners(nil, nil), time.Now())
	if len(v.Nodes) != 1 || !strings.Contains(v.Error, "timeout") || !strings.Contains(v.Error, clock(c.is.known)) {
		t.Errorf("the place is %+v", v)
	}
}

// This machine has no requests: its runs are counted by what they use, its GPUs by their
// slots, and roles that wait say for what.
func TestThisMachine(t *testing.T) {
	f := someRuns()
	for _, r := range f.runs {
		r.status.Where = "this machine"
		for i := range r.status.Roles {
			r.status.Roles[i].Node = "here"
		}
	}
	f.runs[3].status.Roles[2].Reason = `waits for a GPU: GPU 0: run "w4", process 12`
	f.runs[2].survey = func() providers.RunSurvey {
		return providers.RunSurvey{Place: "this machine", ID: "this machine", IsHere: true, Nodes: []providers.RunNode{{
			Name: "here", Phase: "ready", CPU: 16, Memory: 64 << 30, GPUs: 2, GPUModel: "NVIDIA A100",
			Holders: []providers.RunHolder{{GPU: "GPU 0, NVIDIA A100", By: `run "w4", process 12`}, {GPU: "GPU 1, NVIDIA A100"}},
		}}}
	}
	for i, r := range f.runs {
		if i != 2 {
			r.survey = f.runs[2].survey
		}
	}
	s := open(t, f)
	body := s.get("/cluster")
	checkPage(t, "/cluster", body)
	body = html.UnescapeString(body)
	for _, want := range []string{"this machine", "of 16", "1 of 2", `run "w4", process 12`, ">free<", "6 roles: CPU ", "worker-0</a></th>", `GPU 0: run "w4"`, "waits for 4 × 1 GPU"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %q: %s", want, body)
		}
	}
}

// Pods of two clusters, and of two namespaces, may have the same name and node: each belongs
// to its own run. Numbers of a survey that is not whole are bounds.
func TestPodsOfOneName(t *testing.T) {
	var rows []row
	var places []surveyed
	for _, at := range []struct{ place, pod string }{{"east", "lab/web-0"}, {"east", "other/web-0"}, {"west", "lab/web-0"}} {
		address := "kube_manifest." + at.place + "_" + at.pod
		rows = append(rows, row{Entry: Entry{Address: address}, run: newRun("x", 1, 0.1), status: providers.RunStatus{Run: address, Phase: "running",
			Roles: []providers.RunRole{{Name: "web-0", Node: "node-1", Pod: at.pod}}}})
		places = append(places, surveyed{key: address, survey: providers.RunSurvey{Place: at.place, ID: at.place}})
	}
	own := newOwners(rows, places)
	for _, place := range []string{"east", "west"} {
		is := providers.RunSurvey{Place: place, ID: place, Nodes: []providers.RunNode{{Name: "node-1", Phase: "ready", CPU: 8, Tenants: []providers.RunTenant{
			{Name: "lab/web-0", CPU: 1}, {Name: "other/web-0", CPU: 2},
		}}}}
		want := []userView{{keyOf("kube_manifest.east_other/web-0"), "kube_manifest.east_other/web-0", "other/web-0: CPU 2"},
			{keyOf("kube_manifest.east_lab/web-0"), "kube_manifest.east_lab/web-0", "lab/web-0: CPU 1"}}
		others := ""
		if place == "west" {
			want, others = []userView{{keyOf("kube_manifest.west_lab/web-0"), "kube_manifest.west_lab/web-0", "lab/web-0: CPU 1"}}, "1 other pod: CPU 2"
		}
		v := placeOf(is, own, time.Now())
		if n := v.Nodes[0]; !slices.Equal(n.Users, want) || n.Others != others || v.CPU != "3 of 8" || n.CPU != "3 of 8" {
			t.Errorf("%s: CPU %s, %+v", place, v.CPU, n)
		}
		is.Partly = "Only pods of one namespace are counted."
		if v := placeOf(is, own, time.Now()); v.CPU != "at least 3 of 8" || v.Nodes[0].CPU != "at least 3 of 8" || v.GPUs != "at least 0" {
			t.Errorf("%s: a survey in parts has CPU %s, GPUs %s, %+v", place, v.CPU, v.GPUs, v.Nodes[0])
		}
	}
}

// A cluster with many nodes and pods has a page of bounded size, and all of them are counted.
func TestLargeClusterIsBounded(t *testing.T) {
	is := providers.RunSurvey{Place: "large", ID: "large"}
	var rows []row
	for i := range 30 {
		rows = append(rows, row{Entry: Entry{Address: fmt.Sprintf("train_experiment.r[%d]", i)}, run: newRun("x", 1, 0.1), status: providers.RunStatus{Run: fmt.Sprint("run-", i), Trains: true}})
	}
	for i := range 3 * maxNodes {
		n := providers.RunNode{Name: fmt.Sprintf("node-%04d", i), Phase: "ready", CPU: 64, GPUs: 8}
		for run := range 30 {
			n.Tenants = append(n.Tenants, providers.RunTenant{Name: fmt.Sprintf("ns/pod-%d-%d", i, run), Run: fmt.Sprint("run-", run), CPU: 1})
		}
		is.Nodes = append(is.Nodes, n)
		is.Pending = append(is.Pending, providers.RunTenant{Name: "ns/waits", GPUs: 1})
	}
	v := placeOf(is, newOwners(rows, nil), time.Now())
	if len(v.Nodes) != maxNodes || v.Left != 2*maxNodes || len(v.Waiting) != maxWaiting || v.More != 3*maxNodes-maxWaiting {
		t.Errorf("%d nodes, %d left; %d wait, %d more", len(v.Nodes), v.Left, len(v.Waiting), v.More)
	}
	if n := v.Nodes[0]; len(n.Users) != maxTenants || n.Others != "18 other runs" || n.CPU != "30 of 64" {
		t.Errorf("the first node is %+v", n)
	}
	if want := processors(3*maxNodes*30) + " of " + processors(3*maxNodes*64); v.CPU != want {
		t.Errorf("CPU %s, want %s", v.CPU, want)
	}
}
