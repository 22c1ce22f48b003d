package gcptest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

func (w world) exists(path string) bool { return slices.Contains(w.cloud.Paths(), path) }

func TestFaults(t *testing.T) {
	transports(t, gcptest.Options{}, func(w world) {
		w.cluster(zoneA)
		p := &containerpb.NodePool{Name: "p", InitialNodeCount: 1}

		w.cloud.Fail(gcptest.Fault{Method: "CreateNodePool", Times: 2, Code: codes.ResourceExhausted})
		w.cloud.Fail(gcptest.Fault{Method: "Create*", Target: "/nodePools/other", Times: -1})
		for range 2 {
			_, err := w.pool(zoneA, p)
			w.refused(err, codes.ResourceExhausted, "Quota exceeded")
		}
		if w.exists(cluster + "/nodePools/p") {
			w.Error("a fault before the effect let it happen")
		}

		w.cloud.Fail(gcptest.Fault{Method: "CreateNodePool", When: gcptest.After, Code: codes.DeadlineExceeded})
		_, err := w.pool(zoneA, p)
		w.refused(err, codes.DeadlineExceeded, "Deadline expired")
		if !w.exists(cluster + "/nodePools/p") {
			w.Error("a fault after the effect kept it from happening")
		}
		_, err = w.pool(zoneA, p)
		w.refused(err, codes.AlreadyExists, "Already exists: projects/stoke-test/zones/us-central1-a/clusters/c/nodePools/p.")

		w.cloud.Fail(gcptest.Fault{Method: "CreateNodePool", When: gcptest.Halfway, Code: codes.Internal, Skip: 0})
		o, _ := w.wait(w.pool(zoneA, &containerpb.NodePool{Name: "q", InitialNodeCount: 1}))
		if codes.Code(o.GetError().GetCode()) != codes.Internal { //nolint:gosec // codes are few
			w.Errorf("the operation ended with %v", o.GetError())
		}
		if q := w.get(cluster + "/nodePools/q"); q.GetStatus() != containerpb.NodePool_ERROR {
			w.Errorf("the pool is %v", q.GetStatus())
		}
		var got []string
		for _, call := range w.cloud.Calls("CreateNodePool") {
			got = append(got, fmt.Sprint(call.Code, " ", strings.TrimPrefix(call.Target, cluster)))
		}
		want := []string{
			"ResourceExhausted /nodePools/p", "ResourceExhausted /nodePools/p", "DeadlineExceeded /nodePools/p",
			"AlreadyExists /nodePools/p", "OK /nodePools/q",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestHooks(t *testing.T) {
	transports(t, gcptest.Options{}, func(w world) {
		w.cluster(zoneA)
		var got []string
		note := func(e gcptest.Event) error {
			there := w.exists(cluster + "/nodePools/p")
			got = append(got, fmt.Sprint(e.When, " ", e.Call.Method, " ", there, " ", e.Started.Method, e.Look))
			return nil
		}
		w.cloud.OnCommit(note)
		w.cloud.OnReply(note)
		w.cloud.OnPoll(note)
		w.cloud.Slow("CreateNodePool", 2, 1)
		w.done(w.pool(zoneA, &containerpb.NodePool{Name: "p", InitialNodeCount: 1}))
		want := []string{
			"1 CreateNodePool false 0", "2 CreateNodePool true 0",
			"4 GetOperation true CreateNodePool1", "4 GetOperation true CreateNodePool2",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("events (-want +got):\n%s", diff)
		}
		w.cloud.OnCommit(func(gcptest.Event) error { return gcptest.ErrGone })
		if _, err := w.pool(zoneA, &containerpb.NodePool{Name: "q", InitialNodeCount: 1}); err == nil || w.exists(cluster+"/nodePools/q") {
			w.Errorf("a caller that was gone before the commit: %v", err)
		}
	})
}

func TestSlowUntilSettled(t *testing.T) {
	transports(t, gcptest.Options{Polls: -1}, func(w world) {
		w.cluster(zoneA)
		w.cloud.Slow("CreateNodePool", -1, 1)
		o, err := w.pool(zoneA, &containerpb.NodePool{Name: "p", InitialNodeCount: 1})
		for range 20 {
			if err != nil || o.GetStatus() == containerpb.Operation_DONE {
				w.Fatalf("the operation: %v, %v", o, err)
			}
			o, err = w.client.GetOperation(w.Context(), &containerpb.GetOperationRequest{Name: zoneA + "/operations/" + o.GetName()})
		}
		w.cloud.Settle()
		w.done(o, nil)
	})
}

func TestStockOut(t *testing.T) {
	transports(t, gcptest.Options{}, func(w world) {
		w.cluster(zoneA)
		of := gcptest.Capacity{Zone: "us-central1-a", Accelerator: "nvidia-tesla-a100", Provisioning: "on-demand"}
		w.cloud.SetCapacity(of, 0)
		o, _ := w.wait(w.pool(zoneA, &containerpb.NodePool{Name: "p", InitialNodeCount: 2, Config: gpus(1)}))
		if text := o.GetError().GetMessage(); !strings.Contains(text, "[GCE_STOCKOUT]: Instance 'gke-c-p-") ||
			!strings.Contains(text, "The zone 'projects/stoke-test/zones/us-central1-a' does not have enough resources available to fulfill the request.") {
			w.Errorf("the operation ended with %q", text)
		}
		p := w.get(cluster + "/nodePools/p")
		if p.GetStatus() != containerpb.NodePool_ERROR || p.GetConditions()[0].GetCode() != containerpb.StatusCondition_GCE_STOCKOUT {
			w.Errorf("the pool: %v %v", p.GetStatus(), p.GetConditions())
		}
		// Nodes come, and bill, when there is room.
		w.cloud.SetCapacity(of, 3)
		if p = w.get(cluster + "/nodePools/p"); p.GetStatus() != containerpb.NodePool_RUNNING || len(p.GetConditions()) != 0 {
			w.Errorf("the pool: %v %v", p.GetStatus(), p.GetConditions())
		}
		// Three are asked for beyond the two that are there, and one can be had.
		o, _ = w.wait(w.client.SetNodePoolSize(w.Context(), &containerpb.SetNodePoolSizeRequest{Name: cluster + "/nodePools/p", NodeCount: 5}))
		if o.GetError() == nil || w.get(cluster+"/nodePools/p").GetStatus() != containerpb.NodePool_RUNNING_WITH_ERROR {
			w.Errorf("the resize ended with %v", o.GetError())
		}
		var got []int
		for _, a := range w.cloud.Attempts() {
			if strings.HasSuffix(a.Pool, "/p") {
				got = append(got, a.Wanted, a.Free, a.Got)
			}
		}
		if want := []int{2, 0, 0, 3, 1, 1}; !slices.Equal(got, want) {
			w.Errorf("attempts %v, want %v", got, want)
		}
		w.done(w.client.DeleteNodePool(w.Context(), &containerpb.DeleteNodePoolRequest{Name: cluster + "/nodePools/p"}))
		w.done(w.pool(zoneA, &containerpb.NodePool{Name: "again", InitialNodeCount: 3, Config: gpus(1)}))
	})
}

func TestQuota(t *testing.T) {
	o := gcptest.Options{Quota: map[string]map[string]float64{"us-central1": {"NVIDIA_A100_GPUS": 4}}}
	transports(t, o, func(w world) {
		w.cluster(zoneA)
		w.done(w.pool(zoneA, &containerpb.NodePool{Name: "p", InitialNodeCount: 3, Config: gpus(1)}))
		_, err := w.pool(zoneA, &containerpb.NodePool{Name: "q", InitialNodeCount: 2, Config: gpus(1)})
		w.refused(err, codes.PermissionDenied, `Insufficient regional quota to satisfy request: resource "NVIDIA_A100_GPUS": request requires '2.0' and is short '1.0'. project has a quota of '4.0' with '1.0' available.`)
		_, err = w.client.SetNodePoolSize(w.Context(), &containerpb.SetNodePoolSizeRequest{Name: cluster + "/nodePools/p", NodeCount: 5})
		w.refused(err, codes.PermissionDenied, "is short '1.0'")
		spot := gpus(1)
		spot.Spot = true // counts against another quota
		w.done(w.pool(zoneA, &containerpb.NodePool{Name: "q", InitialNodeCount: 2, Config: spot}))
	})
}

func TestUnknownFieldsOverGRPC(t *testing.T) {
	cloud := gcptest.New(t, gcptest.Options{})
	w := world{T: t, cloud: cloud, client: dial(t, cloud, "grpc")}
	k := &containerpb.Cluster{Name: "c", InitialNodeCount: 1}
	k.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 9999, protowire.VarintType), 1))
	_, err := w.client.CreateCluster(t.Context(), &containerpb.CreateClusterRequest{Parent: zoneA, Cluster: k})
	w.refused(err, codes.InvalidArgument, "Unknown field")
	_, err = w.client.GetCluster(t.Context(), &containerpb.GetClusterRequest{ProjectId: "stoke-test", Zone: "us-central1-a", ClusterId: "c"}) // that it is refused is the point
	w.refused(err, codes.InvalidArgument, "deprecated")
	if got := len(cloud.Inventory()); got != 0 {
		t.Errorf("%d objects, want none", got)
	}
}

// TestStrictREST sends what Google's clients cannot.
func TestStrictREST(t *testing.T) {
	cloud := gcptest.New(t, gcptest.Options{})
	const zone = "/compute/v1/projects/stoke-test/zones/us-central1-a"
	tests := []struct {
		verb, path, body string
		status           int
		words            string
	}{
		{"POST", zone + "/disks", `{"name":"d","sizeGB":"10"}`, 400, `Unknown name \"sizeGB\"`},
		{"POST", zone + "/disks", `{"name":"d","sizeGb":[1]}`, 400, "is not a string"},
		{"POST", zone + "/disks", `{"name":"d","status":"READY"}`, 400, "output only"},
		{"POST", zone + "/disks", `{"name":"d","accessMode":"ALL"}`, 400, "READ_WRITE_MANY"},
		{"POST", zone + "/disks?requestID=1", `{"name":"d"}`, 400, `Unknown name \"requestID\"`},
		{"POST", zone + "/disks?requestId=1", `{"name":"d"}`, 400, "Must be a valid UUID"},
		{"POST", zone + "/disks", `{"name":"d","params":{"resourceManagerTags":{"a":1}}}`, 400, "is not a string"},
		{"PATCH", zone + "/disks", `{}`, 501, "has GET, POST for the path"},
		{"GET", zone + "/discs", "", 501, "has no path"},
		{"GET", zone + "/disks/d", "", 404, `The resource 'projects/stoke-test/zones/us-central1-a/disks/d' was not found`},
		{"GET", "/compute/v1/projects/stoke-test/zones/us-central1-x/disks", "", 404, "was not found"},
		{"GET", "/compute/v1/projects/other/zones/us-central1-a/disks", "", 403, "projects/other"},
		{"POST", "/container/v1/" + zoneA + "/clusters", `{"cluster":{"name":"c","initialNodeCount":1,"speed":9}}`, 400, `Unknown name \"speed\" at 'cluster'`},
		{"POST", "/container/v1/" + zoneA + "/clusters", `{"parent":"x","cluster":{"name":"c","initialNodeCount":1}}`, 400, "differs from the field of the path"},
		{"DELETE", "/file/v1/" + zoneA + "/instances/f?forced=true", "", 400, `Unknown name \"forced\"`},
		{"GET", "/bigquery/v2/projects", "", 501, "has no fake service"},
	}
	for _, test := range tests {
		t.Run(test.verb+" "+test.path+test.body, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), test.verb, cloud.REST()+test.path, bytes.NewReader([]byte(test.body)))
			if err != nil {
				t.Fatal(err)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			text, err := io.ReadAll(response.Body)
			if err != nil || !json.Valid(text) || response.StatusCode != test.status || !strings.Contains(string(text), test.words) {
				t.Errorf("got %d %s (%v), want %d with %s", response.StatusCode, text, err, test.status, test.words)
			}
		})
	}
	if got := len(cloud.Calls()); got != len(tests) {
		t.Errorf("%d calls recorded, want %d", got, len(tests))
	}
	if got := cloud.Paths(); len(got) != 0 {
		t.Errorf("there is %v, want nothing", got)
	}
}

// TestBuried: a call whose caller has ended changes nothing, also where it has arrived before, and calls of others do.
func TestBuried(t *testing.T) {
	c := gcptest.New(t, gcptest.Options{})
	arrived, buried := make(chan struct{}), make(chan struct{})
	c.OnCommit(func(e gcptest.Event) error {
		if slices.Contains(e.Call.Header["user-agent"], "late/1") {
			close(arrived)
			<-buried
		}
		return nil
	})
	insert := func(agent string) int {
		body := strings.NewReader(`{"name": "data", "sizeGb": "10"}`)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.REST()+"/compute/v1/projects/stoke-test/zones/us-central1-a/disks", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", agent)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0 // the double ends the connection
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	late := make(chan int)
	go func() { late <- insert("late/1") }()
	<-arrived
	c.Bury("late/1")
	close(buried)
	if code := <-late; code == http.StatusOK || len(c.Paths()) > 0 {
		t.Errorf("a late call is answered %d, and there is %v", code, c.Paths())
	}
	if code := insert("late/10"); code != http.StatusOK || len(c.Paths()) != 1 {
		t.Errorf("another call is answered %d, and there is %v", code, c.Paths())
	}
}
