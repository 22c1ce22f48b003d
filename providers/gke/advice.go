package gke

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/path"
	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/cloud"
)

// advice has the questions of plans to Google that do not concern the planned object
// itself: each is asked once in a run. A question without an answer is not an error:
// the plan then says less, with a note.
type advice struct {
	mu      sync.Mutex
	answers map[string]*answer
}

type answer struct {
	once  sync.Once
	value any
	err   error
}

// advised is how long Google may take to answer.
const advised = 10 * time.Second

// ask returns the answer to a question. Without one it adds a note that contains
// what.
func ask[T any](ctx context.Context, j job, key, what string, call func(context.Context) (T, error)) (value T, ok bool) {
	j.advice.mu.Lock()
	if j.advice.answers == nil {
		j.advice.answers = map[string]*answer{}
	}
	a := j.advice.answers[j.cloud.Project+"/"+key]
	if a == nil {
		a = &answer{}
		j.advice.answers[j.cloud.Project+"/"+key] = a
	}
	j.advice.mu.Unlock()
	a.once.Do(func() {
		// The answer is for all that ask, whose calls may end before.
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), advised)
		defer cancel()
		a.value, a.err = cloud.Read(limited, j.cloud, call)
	})
	if a.err != nil && j.silent(a.err) {
		return value, false
	}
	if a.err != nil {
		providers.CallFrom(ctx).AddNote(providers.Note{Kind: providers.NoteFact, Text: fmt.Sprintf("Not checked: %s. %s", what, sentence(a.err))})
		return value, false
	}
	value, ok = a.value.(T)
	return value, ok
}

// silent reports a service that accepts calls and never answers. That is one error of a run, whatever
// the number of objects that need the service.
func (j job) silent(err error) bool {
	var e *cloud.Error
	if !errors.As(err, &e) || !e.Silent {
		return false
	}
	if _, said := j.noted.LoadOrStore("silent "+e.Detail, true); !said {
		addError(j.diags, path.Empty(), "Google Cloud cannot be used", err)
	}
	return true
}

// acceleratorsIn are the types of GPU that a zone has.
func acceleratorsIn(ctx context.Context, j job, zone string) ([]string, bool) {
	return ask(ctx, j, "accelerators/"+zone, "whether "+zone+" has the GPUs", func(ctx context.Context) ([]string, error) {
		all := []string{}
		err := j.cloud.Compute.AcceleratorTypes.List(j.cloud.Project, zone).Pages(ctx, func(page *compute.AcceleratorTypeList) error {
			for _, a := range page.Items {
				all = append(all, a.Name)
			}
			return nil
		})
		return all, err
	})
}

// quotasOf are what the project may still have in a region, or in all for "", by metric.
func quotasOf(ctx context.Context, j job, region string) (map[string]*compute.Quota, bool) {
	what := "the quotas of " + firstNonEmpty(region, "the project")
	return ask(ctx, j, "quotas/"+region, what, func(ctx context.Context) (map[string]*compute.Quota, error) {
		quotas, err := readQuotas(ctx, j, region)
		if err != nil {
			return nil, err
		}
		all := map[string]*compute.Quota{}
		for _, q := range quotas {
			all[q.Metric] = q
		}
		return all, nil
	})
}

func readQuotas(ctx context.Context, j job, region string) ([]*compute.Quota, error) {
	if region == "" {
		p, err := j.cloud.Compute.Projects.Get(j.cloud.Project).Context(ctx).Do()
		if err != nil {
			return nil, err
		}
		return p.Quotas, nil
	}
	r, err := j.cloud.Compute.Regions.Get(j.cloud.Project, region).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	return r.Quotas, nil
}

// clusterAt returns the cluster at a path, nil if it does not exist yet.
func clusterAt(ctx context.Context, j job, path string) (*containerpb.Cluster, bool) {
	return ask(ctx, j, path, "what the cluster is like", func(ctx context.Context) (*containerpb.Cluster, error) {
		k, err := j.cloud.Clusters.GetCluster(ctx, &containerpb.GetClusterRequest{Name: path})
		if cloud.KindOf(cloud.Explain(err)) == cloud.NotFound {
			return nil, nil
		}
		return k, err
	})
}

// routersOf returns the routers of a region, for Cloud NAT.
func routersOf(ctx context.Context, j job, region string) ([]*compute.Router, bool) {
	return ask(ctx, j, "routers/"+region, "whether private nodes have Cloud NAT", func(ctx context.Context) ([]*compute.Router, error) {
		all := []*compute.Router{}
		err := j.cloud.Compute.Routers.List(j.cloud.Project, region).Pages(ctx, func(page *compute.RouterList) error {
			all = append(all, page.Items...)
			return nil
		})
		return all, err
	})
}

// subnetworkOf is a subnetwork with its ranges.
func subnetworkOf(ctx context.Context, j job, region, name string) (*compute.Subnetwork, bool) {
	return ask(ctx, j, "subnetworks/"+region+"/"+name, "whether its ranges suffice", func(ctx context.Context) (*compute.Subnetwork, error) {
		return j.cloud.Compute.Subnetworks.Get(j.cloud.Project, region, name).Context(ctx).Do()
	})
}
