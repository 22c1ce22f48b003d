package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	compute "google.golang.org/api/compute/v1"
	file "google.golang.org/api/file/v1"
	"google.golang.org/api/option"

	"github.com/stokehq/stoke/providers"
)

// answering is services whose answers these are, one after another, the last one for
// ever; asked are the paths that were asked for.
func answering(t *testing.T, answers ...string) (c *Cloud, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		text := answers[min(len(paths), len(answers)-1)]
		paths = append(paths, r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		if status, body, failed := strings.Cut(text, " "); failed && len(status) == 3 {
			w.WriteHeader(map[string]int{"403": http.StatusForbidden, "503": http.StatusServiceUnavailable}[status])
			text = body
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	c = &Cloud{Settings: Settings{Project: "p"}, pace: Pace{First: time.Microsecond, Most: 100 * time.Microsecond}}
	var failed [2]error
	c.Compute, failed[0] = compute.NewService(t.Context(), option.WithEndpoint(server.URL+"/compute/v1/"), option.WithoutAuthentication())
	c.File, failed[1] = file.NewService(t.Context(), option.WithEndpoint(server.URL), option.WithoutAuthentication())
	if err := errors.Join(failed[:]...); err != nil {
		t.Fatal(err)
	}
	return c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return paths
	}
}

const (
	runs   = `{"name": "operation-1", "status": "RUNNING", "progress": 40}`
	away   = `503 {"error": {"code": 503, "message": "The service is currently unavailable."}}`
	denied = `403 {"error": {"code": 403, "message": "Required 'compute.zoneOperations.get' permission for 'projects/p'", "errors": [{"reason": "forbidden"}]}}`
)

// ended is an operation that is DONE with an error. Whatever it says of HTTP, it failed.
func ended(code, message string) string {
	return fmt.Sprintf(`{"name": "operation-1", "status": "DONE", "progress": 100, "error": {"errors": [{"code": %q, "message": %q}]}}`, code, message)
}

// TestWaitCompute: an operation is over when it says so, and has failed where it has
// an error; that it cannot be looked at says nothing of it.
func TestWaitCompute(t *testing.T) {
	zonal := &compute.Operation{Name: "operation-1", Zone: "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a"}
	for _, test := range []struct {
		name    string
		op      *compute.Operation
		path    string
		answers []string
		kind    Kind
		says    []string // nil: it went well
	}{
		{"in a zone", zonal, "zones/us-central1-a/operations", []string{runs, runs, `{"name": "operation-1", "status": "DONE"}`}, Other, nil},
		{"in a region", &compute.Operation{Name: "operation-1", Region: "regions/us-central1"}, "regions/us-central1/operations", []string{`{"status": "DONE"}`}, Other, nil},
		{"global", &compute.Operation{Name: "operation-1"}, "global/operations", []string{`{"status": "DONE"}`}, Other, nil},
		{"away for a moment", zonal, "zones/us-central1-a/operations", []string{away, runs, away, `{"status": "DONE"}`}, Other, nil},
		{"a quota", zonal, "zones/us-central1-a/operations", []string{runs, ended("QUOTA_EXCEEDED", "Quota 'SSD_TOTAL_GB' exceeded.  Limit: 500.0 in region us-central1.")}, Quota, []string{"QUOTA_EXCEEDED", "SSD_TOTAL_GB", "operation-1", "iam-admin/quotas"}},
		{"none left", zonal, "zones/us-central1-a/operations", []string{ended("ZONE_RESOURCE_POOL_EXHAUSTED", "The zone does not have enough resources available to fulfill the request.")}, StockOut, []string{"ZONE_RESOURCE_POOL_EXHAUSTED", "operation-1"}},
		{"in use", zonal, "zones/us-central1-a/operations", []string{ended("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "The disk resource 'd' is already being used by 'i'")}, InUse, []string{"already being used by 'i'"}},
		{"not to be looked at", zonal, "zones/us-central1-a/operations", []string{denied}, Forbidden, []string{"operation-1", "compute.zoneOperations.get"}},
	} {
		c, asked := answering(t, test.answers...)
		err := c.WaitCompute(t.Context(), test.op, "making the disk d")
		if got := asked(); len(got) != len(test.answers) || got[0] != "/compute/v1/projects/p/"+test.path+"/operation-1" {
			t.Errorf("%s: asked for %v", test.name, got)
		}
		if test.says == nil {
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if err == nil || KindOf(err) != test.kind {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		for _, s := range test.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %q lacks %q", test.name, err, s)
			}
		}
	}
}

// TestWaitEnds: at the end of the time, and after the first Ctrl-C, an operation is
// still running.
func TestWaitEnds(t *testing.T) {
	c, _ := answering(t, runs)
	limited, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	stop := make(chan struct{})
	close(stop)
	for name, ctx := range map[string]context.Context{"time": limited, "Ctrl-C": providers.WithCall(t.Context(), &providers.Call{Stopping: stop})} {
		running := new(RunningError)
		if err := c.WaitCompute(ctx, &compute.Operation{Name: "operation-1"}, "making it"); !errors.As(err, &running) || running.Operation != "operation-1" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWaitFile: so it is with the operations of Filestore.
func TestWaitFile(t *testing.T) {
	const path = "projects/p/locations/z/operations/operation-1"
	c, asked := answering(t, `{"name": "`+path+`"}`, `{"done": true, "error": {"code": 8, "message": "Quota exceeded: 2.5 TiB of BASIC_HDD in z."}}`)
	err := c.WaitFile(t.Context(), &file.Operation{Name: path}, "making the share")
	if KindOf(err) != Quota || len(asked()) != 2 || asked()[0] != "/v1/"+path {
		t.Errorf("%v: %v", asked(), err)
	}
}

// TestProgress: stage and percentage are the API's own.
func TestProgress(t *testing.T) {
	n := func(name string, v int64) *containerpb.OperationProgress_Metric {
		return &containerpb.OperationProgress_Metric{Name: name, Value: &containerpb.OperationProgress_Metric_IntValue{IntValue: v}}
	}
	for _, test := range []struct {
		op      *containerpb.Operation
		stage   string
		percent float64
	}{
		{&containerpb.Operation{Status: containerpb.Operation_PENDING}, "pending", -1},
		{&containerpb.Operation{Status: containerpb.Operation_RUNNING, Progress: &containerpb.OperationProgress{Metrics: []*containerpb.OperationProgress_Metric{n("CLUSTER_DEPLOYING", 3), n("CLUSTER_DEPLOYING_TOTAL", 12)}}}, "CLUSTER_DEPLOYING", 25},
		{&containerpb.Operation{Status: containerpb.Operation_RUNNING, Progress: &containerpb.OperationProgress{Stages: []*containerpb.OperationProgress{
			{Name: "CLUSTER_CONFIGURING", Status: containerpb.Operation_DONE}, {Name: "CLUSTER_HEALTHCHECKING", Status: containerpb.Operation_RUNNING}}}}, "CLUSTER_HEALTHCHECKING", -1},
	} {
		if stage, percent := progress(test.op); stage != test.stage || percent != test.percent {
			t.Errorf("%v is %s, %v %%", test.op, stage, percent)
		}
	}
	for link, want := range map[string]string{
		"https://container.googleapis.com/v1/projects/7/zones/us-central1-a/clusters/c/nodePools/p": "us-central1-a/clusters/c/nodePools/p",
		"projects/p/locations/us-central1-a/clusters/c":                                             "us-central1-a/clusters/c",
	} {
		if got := Suffix(link); got != want {
			t.Errorf("the target %s ends in %s", link, got)
		}
	}
}
