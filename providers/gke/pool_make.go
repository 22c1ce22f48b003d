package gke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// poolPlace is where a pool is.
type poolPlace struct {
	cluster, pool, location string // paths of the API
}

// locate also sets the project of a pool's calls to its cluster's project.
func (m *poolModel) locate(j job) (poolPlace, job, error) {
	project, location, cluster, err := m.place(j)
	parent := fmt.Sprintf("projects/%s/locations/%s/clusters/%s", project, location, cluster)
	j.cloud = j.cloud.ForProject(project)
	return poolPlace{cluster: parent, pool: parent + "/nodePools/" + m.Name.ValueString(), location: location}, j, err
}

func getPool(ctx context.Context, c *cloud.Cloud, name string) (*containerpb.NodePool, error) {
	p, err := cloud.Read(ctx, c, func(ctx context.Context) (*containerpb.NodePool, error) {
		return c.Clusters.GetNodePool(ctx, &containerpb.GetNodePoolRequest{Name: name})
	})
	if cloud.KindOf(err) == cloud.NotFound {
		return nil, nil
	}
	return p, err
}

// isHeld reports whether another operation holds the pool, or its cluster.
func (m *poolModel) isHeld(ctx context.Context, j job) (bool, error) {
	where, j, err := m.locate(j)
	if err != nil {
		return false, err
	}
	held, err := j.cloud.IsHeld(ctx, where.cluster, where.location)
	if held || err != nil {
		return held, err
	}
	return j.cloud.IsHeld(ctx, where.pool, where.location)
}

// create is that of model.
func (m *poolModel) create(ctx context.Context, j job, mark string, started func()) error {
	where, j, err := m.locate(j)
	if err != nil {
		return err
	}
	there, err := getPool(ctx, j.cloud, where.pool)
	if err != nil {
		return err
	}
	if there.GetStatus() == containerpb.NodePool_STOPPING { // another client deletes one of this name
		if there, err = gonePool(ctx, j.cloud, where); err != nil {
			return err
		}
	}
	if there != nil && there.GetConfig().GetResourceLabels()[cloud.Mark] != mark {
		return foreignObject("node pool", where.pool)
	}
	if there == nil && m.Version.ValueString() != "" {
		if err := m.follows(ctx, j, where); err != nil {
			return err
		}
	}
	return m.walk(ctx, j, where, there, mark, 0, started)
}

// walk makes the pool by the first step, from this one on, that has capacity. A
// pool that failed is deleted before the next step; the last one stays as it is.
func (m *poolModel) walk(ctx context.Context, j job, where poolPlace, there *containerpb.NodePool, mark string, from int,
	started func()) error {
	for n := from; ; n++ {
		err := m.try(ctx, j, where, there, mark, n, started)
		there = nil
		if err == nil {
			m.relieve(ctx, j, where)
			return nil
		}
		if !isScarcity(err) || n >= len(m.steps()) {
			return err
		}
		cloud.ReportProgress(ctx, -1, "step %d of the fallback: %v", n+1, err)
		if err := deletePool(ctx, j.cloud, where, "giving up step "+strconv.Itoa(n)); err != nil {
			return err
		}
	}
}

// isScarcity reports whether a create ended because of missing machines or quota.
func isScarcity(err error) bool {
	kind := cloud.KindOf(err)
	return kind == cloud.StockOut || kind == cloud.Quota
}

// try makes the pool by one step and waits for it.
func (m *poolModel) try(ctx context.Context, j job, where poolPlace, there *containerpb.NodePool, mark string, n int,
	started func()) error {
	c, what := j.cloud, "making the node pool "+m.Name.ValueString()
	m.record(n)
	if there != nil {
		started()
		if err := c.Settle(ctx, where.pool, where.location, what); err != nil {
			return err
		}
		now, err := getPool(ctx, c, where.pool)
		if err != nil {
			return cloud.UnknownResult(where.pool, err)
		}
		return failed(now)
	}
	wanted := m.step(n).render(j, mark, n)
	if err := setBeginning(ctx, m.step(n), c, where, wanted); err != nil {
		return err
	}
	op, found, err := cloud.Make(ctx, c, func(ctx context.Context) (*containerpb.Operation, error) {
		return c.Clusters.CreateNodePool(ctx, &containerpb.CreateNodePoolRequest{Parent: where.cluster, NodePool: wanted})
	}, func(ctx context.Context) (bool, error) {
		var err error
		there, err = getPool(ctx, c, where.pool)
		return there != nil, err
	})
	switch {
	case err != nil:
		return err
	case found && there.GetConfig().GetResourceLabels()[cloud.Mark] != mark:
		return foreignObject("node pool", where.pool)
	case found:
		return m.try(ctx, j, where, there, mark, n, started)
	}
	started()
	return c.Wait(ctx, op, what)
}

// setBeginning sets the number of nodes that a pool is made with. For a pool without zones it
// depends on the zones of the cluster.
func setBeginning(ctx context.Context, m *poolModel, c *cloud.Cloud, where poolPlace, wanted *containerpb.NodePool) error {
	zones := len(wanted.GetLocations())
	if s := m.scaling(); zones == 0 && s != nil && s.TotalMin.ValueInt64() > 0 {
		k, err := cloud.Read(ctx, c, func(ctx context.Context) (*containerpb.Cluster, error) {
			return c.Clusters.GetCluster(ctx, &containerpb.GetClusterRequest{Name: where.cluster})
		})
		if err != nil {
			return err
		}
		zones = len(k.GetLocations())
	}
	n, _ := beginningOf(m, int64(max(zones, 1)))
	wanted.InitialNodeCount = int32(n) //nolint:gosec // nodes
	return nil
}

// failed is why a pool that is there could not be made; nil for a good one.
func failed(p *containerpb.NodePool) error {
	if s := p.GetStatus(); s != containerpb.NodePool_ERROR && s != containerpb.NodePool_RUNNING_WITH_ERROR {
		return nil
	}
	for _, k := range p.GetConditions() {
		switch k.GetCode() { //nolint:exhaustive,staticcheck // the others are not about capacity
		case containerpb.StatusCondition_GCE_STOCKOUT:
			return &cloud.Error{Summary: "The zone has none left", Kind: cloud.StockOut, Reason: "GCE_STOCKOUT", Detail: k.GetMessage()}
		case containerpb.StatusCondition_GCE_QUOTA_EXCEEDED:
			return &cloud.Error{Summary: "Quota of the project is exhausted", Kind: cloud.Quota, Reason: "GCE_QUOTA_EXCEEDED", Detail: k.GetMessage()}
		}
	}
	return errors.New("the node pool could not be made: " + firstNonEmpty(p.GetStatusMessage(), "it is in error")) // older answers have nothing else
}

// relieve takes the pool away that the cluster was made with, once another one
// runs pods without taints. A failure is not reported as an error of this pool.
func (m *poolModel) relieve(ctx context.Context, j job, where poolPlace) {
	if err := m.takeAway(ctx, j, where); err != nil {
		addWarning(j, "The cluster's first node pool is still there", fmt.Errorf("the next change of a node pool takes it away: %w", err))
	}
}

func (m *poolModel) takeAway(ctx context.Context, j job, where poolPlace) error {
	c := j.cloud
	all, err := cloud.Read(ctx, c, func(ctx context.Context) (*containerpb.ListNodePoolsResponse, error) {
		return c.Clusters.ListNodePools(ctx, &containerpb.ListNodePoolsRequest{Parent: where.cluster})
	})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all.GetNodePools(), ours) || !slices.ContainsFunc(all.GetNodePools(), general) {
		return nil
	}
	where.pool = where.cluster + "/nodePools/" + bootstrap
	return deletePool(ctx, c, where, "deleting the cluster's first node pool")
}

// general reports whether any pod may run in a pool, at any time: Google wants a
// pool without flex-start in every cluster, as flex-start nodes are deleted
// after days.
func general(p *containerpb.NodePool) bool {
	s := p.GetStatus()
	peopled := p.GetInitialNodeCount() > 0 || p.GetAutoscaling().GetEnabled()
	return peopled && !ours(p) && (s == containerpb.NodePool_RUNNING || s == containerpb.NodePool_RECONCILING) &&
		len(p.GetConfig().GetAccelerators()) == 0 && !p.GetConfig().GetFlexStart() && !slices.ContainsFunc(p.GetConfig().GetTaints(), func(t *containerpb.NodeTaint) bool {
		return t.GetEffect() != containerpb.NodeTaint_PREFER_NO_SCHEDULE
	})
}

// deletePool deletes a pool and waits; a missing one is fine.
func deletePool(ctx context.Context, c *cloud.Cloud, where poolPlace, what string) error {
	op, err := cloud.Repeat(ctx, c, func(ctx context.Context) (*containerpb.Operation, error) {
		return c.Clusters.DeleteNodePool(ctx, &containerpb.DeleteNodePoolRequest{Name: where.pool})
	})
	if cloud.KindOf(err) == cloud.NotFound {
		return nil
	}
	if err == nil {
		err = c.Wait(ctx, op, what)
	}
	if cloud.KindOf(err) == cloud.NotFound { // of the operation, which says nothing of the pool
		var there *containerpb.NodePool
		if there, err = gonePool(ctx, c, where); there != nil {
			err = fmt.Errorf("the node pool is still there, in the state %s; apply again", there.GetStatus())
		}
	}
	return err
}

// gonePool waits until a pool that is being deleted no longer exists. A pool that
// is not being deleted is returned.
func gonePool(ctx context.Context, c *cloud.Cloud, where poolPlace) (there *containerpb.NodePool, err error) {
	err = c.WaitUntil(ctx, "deleting "+last(where.pool), func(ctx context.Context) (bool, error) {
		cloud.ReportProgress(ctx, -1, "waiting until the node pool %s is deleted", last(where.pool))
		var err error
		there, err = getPool(ctx, c, where.pool)
		return there == nil || there.GetStatus() != containerpb.NodePool_STOPPING, err
	})
	return there, err
}

// remove is that of model.
func (m *poolModel) remove(ctx context.Context, j job) error {
	where, j, err := m.locate(j)
	if err != nil {
		return err
	}
	return deletePool(ctx, j.cloud, where, "deleting the node pool "+m.Name.ValueString())
}
