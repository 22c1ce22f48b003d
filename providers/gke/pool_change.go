package gke

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// update is that of model. It completes an unfinished apply first: a pool in error
// after its creation is recreated. A pool that has been complete once keeps its
// nodes: they may be full of work.
func (m *poolModel) update(ctx context.Context, j job, prior *poolModel) error {
	where, j, err := m.locate(j)
	if err != nil {
		return err
	}
	if err := j.cloud.Settle(ctx, where.pool, where.location, "finishing the node pool "+m.Name.ValueString()); err != nil &&
		!isScarcity(err) {
		return err
	}
	now, err := getPool(ctx, j.cloud, where.pool)
	switch {
	case err != nil:
		return err
	case now == nil:
		return errors.New("the node pool is gone; the next plan recreates it")
	case failed(now) != nil && j.begun == begunCreate:
		return m.resume(ctx, j, where, now)
	}
	if outdated(prior.NodeVersion, m.Version) {
		if err := m.follows(ctx, j, where); err != nil {
			return err
		}
	}
	// The pool keeps the step of its creation: another fallback is for other
	// creates.
	taken := prior.stepTaken()
	if taken == nil {
		taken = m.stepTaken() // of one that was imported
	}
	wanted, was := m.withStep(taken), prior.withStep(taken)
	var done []string
	for _, row := range poolTable {
		if slices.Contains(done, row.group) || !row.changed(wanted, was) {
			continue
		}
		done = append(done, row.group)
		if same, err := wanted.matches(ctx, j, now, row.group, was); err == nil && same {
			continue // an import, or an apply that was interrupted, says less than there is
		}
		if err := wanted.change(ctx, j, where, row.group, was, now); err != nil {
			return fmt.Errorf("change %s: %w", row.attribute, err)
		}
	}
	m.relieve(ctx, j, where)
	return nil
}

// resume continues a create that failed after its apply had ended: with the next
// step of the fallback if machines were lacking, otherwise with all of them.
func (m *poolModel) resume(ctx context.Context, j job, where poolPlace, now *containerpb.NodePool) error {
	mark, n := now.GetConfig().GetResourceLabels()[cloud.Mark], stepOf(now)
	if isScarcity(failed(now)) && n < len(m.steps()) {
		return m.walk(ctx, j, where, now, mark, n, func() {})
	}
	if err := deletePool(ctx, j.cloud, where, "deleting the node pool that could not be made"); err != nil {
		return err
	}
	return m.walk(ctx, j, where, nil, mark, 0, func() {})
}

// follows refuses nodes of a version that the control plane does not have yet,
// which is upgraded first.
func (m *poolModel) follows(ctx context.Context, j job, where poolPlace) error {
	k, err := cloud.Read(ctx, j.cloud, func(ctx context.Context) (*containerpb.Cluster, error) {
		return j.cloud.Clusters.GetCluster(ctx, &containerpb.GetClusterRequest{Name: where.cluster})
	})
	if err != nil {
		return err
	}
	if older(k.GetCurrentMasterVersion(), m.Version.ValueString()) {
		return fmt.Errorf("the nodes cannot have version %s before the control plane, which has %s: raise version of the cluster first", m.Version.ValueString(), k.GetCurrentMasterVersion())
	}
	return nil
}

// change makes the one call of a group, and waits. If its answer is lost, it is not
// repeated before the result was observed: each may recreate all nodes.
func (m *poolModel) change(ctx context.Context, j job, where poolPlace, group string, prior *poolModel, now *containerpb.NodePool) error {
	what := "changing " + group + " of the node pool " + m.Name.ValueString()
	op, happened, err := cloud.Make(ctx, j.cloud, func(ctx context.Context) (*containerpb.Operation, error) {
		return m.send(ctx, j.cloud, where, group, prior, now)
	}, func(ctx context.Context) (bool, error) {
		if err := j.cloud.Settle(ctx, where.pool, where.location, what); err != nil {
			return false, err
		}
		p, err := getPool(ctx, j.cloud, where.pool)
		if p == nil || err != nil {
			return false, err
		}
		return m.matches(ctx, j, p, group, prior)
	})
	if err != nil || happened {
		return err
	}
	return j.cloud.Wait(ctx, op, what)
}

// matches reports whether a pool has the values of a group's call.
func (m *poolModel) matches(ctx context.Context, j job, p *containerpb.NodePool, group string, prior *poolModel) (bool, error) {
	is := *m
	groups := []func(*poolModel) *types.Object{
		func(m *poolModel) *types.Object { return &m.Kubelet }, func(m *poolModel) *types.Object { return &m.Linux },
		func(m *poolModel) *types.Object { return &m.Drain }, func(m *poolModel) *types.Object { return &m.BlueGreen }}
	for _, of := range groups { // for removed arguments, look for the prior values
		if of(m).IsNull() {
			*of(&is) = *of(prior)
		}
	}
	is.readNodes(j, p, false)
	is.readPolicies(p, false)
	for _, of := range groups {
		if of(m).IsNull() && !of(&is).Equal(*of(prior)) {
			*of(&is) = *of(m)
		}
	}
	if group == bySize {
		j.sizes.forget()
		n, err := j.sizes.sizeOf(ctx, j.cloud, p, m.NodeCount.ValueInt64())
		if err != nil {
			return false, err
		}
		is.NodeCount = types.Int64Value(n)
	}
	for _, row := range poolTable {
		if row.group == group && row.changed(m, prior) && row.changed(m, &is) {
			return false, nil
		}
	}
	return true, nil
}

func (m *poolModel) send(ctx context.Context, c *cloud.Cloud, where poolPlace, group string, prior *poolModel, now *containerpb.NodePool) (*containerpb.Operation, error) {
	switch group {
	case byManagement:
		return c.Clusters.SetNodePoolManagement(ctx, &containerpb.SetNodePoolManagementRequest{Name: where.pool, Management: m.management()})
	case byAutoscaling:
		return c.Clusters.SetNodePoolAutoscaling(ctx, &containerpb.SetNodePoolAutoscalingRequest{Name: where.pool, Autoscaling: m.scaling().render()})
	case bySize:
		return c.Clusters.SetNodePoolSize(ctx, &containerpb.SetNodePoolSizeRequest{Name: where.pool, NodeCount: int32(m.NodeCount.ValueInt64())}) //nolint:gosec // nodes
	}
	r := &containerpb.UpdateNodePoolRequest{Name: where.pool}
	for _, row := range poolTable {
		if row.group == group && row.changed(m, prior) {
			row.fill(m, r, now, c)
		}
	}
	return c.Clusters.UpdateNodePool(ctx, r)
}
