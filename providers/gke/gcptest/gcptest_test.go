package gcptest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/stokehq/stoke/providers/gke/gcptest"
	"github.com/stokehq/stoke/runtime/pattern"
)

const (
	zoneA   = "projects/stoke-test/locations/us-central1-a"
	central = "projects/stoke-test/locations/us-central1"
)

// world is a double and a client of container v1.
type world struct {
	*testing.T
	cloud  *gcptest.Cloud
	client *container.ClusterManagerClient
}

// transports run a test over both.
func transports(t *testing.T, o gcptest.Options, test func(w world)) {
	for _, transport := range []string{"grpc", "rest"} {
		t.Run(transport, func(t *testing.T) {
			cloud := gcptest.New(t, o)
			test(world{T: t, cloud: cloud, client: dial(t, cloud, transport)})
		})
	}
}

func dial(t *testing.T, cloud *gcptest.Cloud, transport string) *container.ClusterManagerClient {
	t.Helper()
	var client *container.ClusterManagerClient
	var err error
	if transport == "rest" {
		client, err = container.NewClusterManagerRESTClient(t.Context(), option.WithEndpoint(cloud.REST()+"/container"), option.WithoutAuthentication())
	} else {
		client, err = container.NewClusterManagerClient(t.Context(), option.WithEndpoint(cloud.Container()), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// wait polls an operation until it is done, and answers it with the number of
// polls.
func (w world) wait(o *containerpb.Operation, err error) (*containerpb.Operation, int) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	for polls := 1; polls < 100; polls++ {
		name := central + "/operations/" + o.GetName()
		if strings.Count(o.GetLocation(), "-") == 2 {
			name = zoneA + "/operations/" + o.GetName()
		}
		if o, err = w.client.GetOperation(context.Background(), &containerpb.GetOperationRequest{Name: name}); err != nil {
			w.Fatal(err)
		}
		if o.GetStatus() == containerpb.Operation_DONE {
			return o, polls
		}
	}
	w.Fatalf("operation %v does not end", o)
	return nil, 0
}

// done waits for an operation that ends well.
func (w world) done(o *containerpb.Operation, err error) {
	w.Helper()
	if o, _ := w.wait(o, err); o.GetError() != nil {
		w.Fatalf("operation ends with %v", o.GetError())
	}
}

func (w world) cluster(parent string) {
	w.Helper()
	w.done(w.client.CreateCluster(w.Context(), &containerpb.CreateClusterRequest{Parent: parent, Cluster: &containerpb.Cluster{
		Name: "c", NodePools: []*containerpb.NodePool{{Name: "first", InitialNodeCount: 1}},
	}}))
}

func (w world) pool(parent string, p *containerpb.NodePool) (*containerpb.Operation, error) {
	return w.client.CreateNodePool(w.Context(), &containerpb.CreateNodePoolRequest{Parent: parent + "/clusters/c", NodePool: p})
}

func (w world) get(path string) *containerpb.NodePool {
	w.Helper()
	p, err := w.client.GetNodePool(w.Context(), &containerpb.GetNodePoolRequest{Name: path})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

var snake = pattern.New("([a-z])([A-Z])")

// refused checks the code and the words of an error.
func (w world) refused(err error, code codes.Code, words string) {
	w.Helper()
	got := status.Code(err)
	var rest *googleapi.Error
	if errors.As(err, &rest) {
		got = codes.Unknown
		if strings.Contains(rest.Body, `"status":"`+strings.ToUpper(snake.ReplaceAllString(code.String(), "${1}_$2"))+`"`) {
			got = code
		}
	}
	if got != code || !strings.Contains(err.Error(), words) {
		w.Errorf("got %v, want %v with %q", err, code, words)
	}
}

func TestClusterLife(t *testing.T) {
	transports(t, gcptest.Options{}, func(w world) {
		w.cluster(zoneA)
		name := zoneA + "/clusters/c"
		k, err := w.client.GetCluster(w.Context(), &containerpb.GetClusterRequest{Name: name})
		if err != nil {
			w.Fatal(err)
		}
		if k.GetStatus() != containerpb.Cluster_RUNNING || k.GetCurrentNodeCount() != 1 || len(k.GetInstanceGroupUrls()) != 1 || k.GetReleaseChannel().GetChannel() != containerpb.ReleaseChannel_REGULAR {
			w.Errorf("unexpected cluster: %v", k)
		}
		w.done(w.client.SetLabels(w.Context(), &containerpb.SetLabelsRequest{Name: name, LabelFingerprint: k.GetLabelFingerprint(), ResourceLabels: map[string]string{"a": "b"}}))
		_, err = w.client.SetLabels(w.Context(), &containerpb.SetLabelsRequest{Name: name, LabelFingerprint: k.GetLabelFingerprint()})
		w.refused(err, codes.FailedPrecondition, "fingerprint")
		w.done(w.pool(zoneA, &containerpb.NodePool{Name: "gpu", InitialNodeCount: 2, Config: &containerpb.NodeConfig{
			MachineType: "g2-standard-4", Accelerators: []*containerpb.AcceleratorConfig{{AcceleratorType: "nvidia-l4", AcceleratorCount: 1}},
		}}))
		p := w.get(name + "/nodePools/gpu")
		if len(p.GetConfig().GetTaints()) != 1 || p.GetStatus() != containerpb.NodePool_RUNNING {
			w.Errorf("unexpected pool: %v", p)
		}
		w.done(w.client.SetNodePoolSize(w.Context(), &containerpb.SetNodePoolSizeRequest{Name: name + "/nodePools/gpu", NodeCount: 3}))
		w.done(w.client.DeleteNodePool(w.Context(), &containerpb.DeleteNodePoolRequest{Name: name + "/nodePools/gpu"}))
		w.done(w.client.DeleteCluster(w.Context(), &containerpb.DeleteClusterRequest{Name: name}))
		_, err = w.client.GetCluster(w.Context(), &containerpb.GetClusterRequest{Name: name})
		w.refused(err, codes.NotFound, "Not found: projects/stoke-test/zones/us-central1-a/clusters/c.")
	})
}
