package gke

import (
	"context"
	"fmt"
	"strings"
	"time"

	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// send makes a call that changes the disk, and waits.
func (m *diskModel) send(ctx context.Context, c *cloud.Cloud, what string, zonal, regional func(context.Context) (*compute.Operation, error)) error {
	op, err := cloud.Repeat(ctx, c, func(ctx context.Context) (*compute.Operation, error) {
		if m.regional() {
			return regional(ctx)
		}
		return zonal(ctx)
	})
	if err == nil {
		err = c.WaitCompute(ctx, op, what)
	}
	return err
}

// update is that of model: size, speed and access, labels are a call each.
func (m *diskModel) update(ctx context.Context, j job, prior *diskModel) error {
	c, location, name := j.cloud, m.Location.ValueString(), m.Name.ValueString()
	if err := m.ready(ctx, c, "finishing the disk "+name); err != nil {
		return err
	}
	if changed(m.Size, prior.Size) {
		r, z := &compute.RegionDisksResizeRequest{SizeGb: m.Size.ValueInt64()}, &compute.DisksResizeRequest{SizeGb: m.Size.ValueInt64()}
		err := m.send(ctx, c, "growing the disk "+name,
			func(ctx context.Context) (*compute.Operation, error) {
				return c.Compute.Disks.Resize(c.Project, location, name, z).Context(ctx).Do()
			},
			func(ctx context.Context) (*compute.Operation, error) {
				return c.Compute.RegionDisks.Resize(c.Project, location, name, r).Context(ctx).Do()
			})
		if now, again := m.get(ctx, c); err != nil && (again != nil || now == nil || now.SizeGb != m.Size.ValueInt64()) {
			return fmt.Errorf("grow the disk: %w", err) // one whose answer was lost has grown
		}
	}
	if err := m.tune(ctx, c, prior); err != nil {
		return fmt.Errorf("change speed and access of the disk: %w", err)
	}
	if !changed(m.Labels, prior.Labels) {
		return nil
	}
	return m.relabel(ctx, c)
}

// tune changes speed and access, those that differ in one call.
func (m *diskModel) tune(ctx context.Context, c *cloud.Cloud, prior *diskModel) error {
	var paths []string
	d := &compute.Disk{Name: m.Name.ValueString()}
	if changed(m.IOPS, prior.IOPS) {
		paths, d.ProvisionedIops = append(paths, "provisionedIops"), m.IOPS.ValueInt64()
	}
	if changed(m.Throughput, prior.Throughput) {
		paths, d.ProvisionedThroughput = append(paths, "provisionedThroughput"), m.Throughput.ValueInt64()
	}
	if changed(m.AccessMode, prior.AccessMode) {
		paths, d.AccessMode = append(paths, "accessMode"), m.AccessMode.ValueString()
	}
	if len(paths) == 0 {
		return nil
	}
	location, name := m.Location.ValueString(), m.Name.ValueString()
	return m.send(ctx, c, "changing the disk "+name,
		func(ctx context.Context) (*compute.Operation, error) {
			return c.Compute.Disks.Update(c.Project, location, name, d).Paths(paths...).Context(ctx).Do()
		},
		func(ctx context.Context) (*compute.Operation, error) {
			return c.Compute.RegionDisks.Update(c.Project, location, name, d).Paths(paths...).Context(ctx).Do()
		})
}

// relabel replaces the labels; the mark and Google's own are sent again. The
// fingerprint is read each time, as a call that is repeated needs a new one.
func (m *diskModel) relabel(ctx context.Context, c *cloud.Cloud) error {
	location, name := m.Location.ValueString(), m.Name.ValueString()
	now := func(ctx context.Context) (map[string]string, string, error) {
		d, err := m.get(ctx, c)
		if d == nil || err != nil {
			return nil, "", err
		}
		return c.Relabel(d.Labels, texts(m.Labels)), d.LabelFingerprint, nil
	}
	return m.send(ctx, c, "labelling the disk "+name,
		func(ctx context.Context) (*compute.Operation, error) {
			labels, print, err := now(ctx)
			if err != nil {
				return nil, err
			}
			return c.Compute.Disks.SetLabels(c.Project, location, name, &compute.ZoneSetLabelsRequest{Labels: labels, LabelFingerprint: print}).Context(ctx).Do()
		},
		func(ctx context.Context) (*compute.Operation, error) {
			labels, print, err := now(ctx)
			if err != nil {
				return nil, err
			}
			return c.Compute.RegionDisks.SetLabels(c.Project, location, name, &compute.RegionSetLabelsRequest{Labels: labels, LabelFingerprint: print}).Context(ctx).Do()
		})
}

// remove is that of model.
func (m *diskModel) remove(ctx context.Context, j job) error {
	c, location, name := j.cloud, m.Location.ValueString(), m.Name.ValueString()
	now, err := m.get(ctx, c)
	if now == nil || err != nil {
		return err
	}
	if len(now.Users) > 0 { // before a snapshot is taken of what still changes
		var users []string
		for _, u := range now.Users {
			users = append(users, last(u))
		}
		return &cloud.Error{Summary: "Still in use", Kind: cloud.InUse, Detail: fmt.Sprintf("The disk %s is attached to %s. Detach it first.", name, strings.Join(users, ", "))}
	}
	if m.SnapshotBefore.ValueBool() {
		if err := m.keep(ctx, c, now); err != nil {
			return fmt.Errorf("take the snapshot before: %w; the disk is still there", err)
		}
	}
	err = m.send(ctx, c, "deleting the disk "+name,
		func(ctx context.Context) (*compute.Operation, error) {
			return c.Compute.Disks.Delete(c.Project, location, name).Context(ctx).Do()
		},
		func(ctx context.Context) (*compute.Operation, error) {
			return c.Compute.RegionDisks.Delete(c.Project, location, name).Context(ctx).Do()
		})
	if cloud.KindOf(err) == cloud.NotFound {
		return nil
	}
	return err
}

// keep takes a snapshot of the disk under a name that can be found again: it has
// the disk's id, and when the disk was detached last. What is on a disk that is not
// attached stays the same, so that the one which an interrupted destroy has taken
// is as good.
func (m *diskModel) keep(ctx context.Context, c *cloud.Cloud, d *compute.Disk) error {
	location, name := m.Location.ValueString(), m.Name.ValueString()
	tail := fmt.Sprintf("-before-destroy-%d", d.Id)
	if at, err := time.Parse(time.RFC3339, d.LastDetachTimestamp); err == nil {
		tail += fmt.Sprintf("-%d", at.Unix())
	}
	s := &compute.Snapshot{Name: name[:min(len(name), 63-len(tail))] + tail, Labels: c.Marked(texts(m.Labels), "")}
	cloud.Say(ctx, -1, "taking the snapshot %s, which stays and bills", s.Name)
	err := m.send(ctx, c, "taking the snapshot "+s.Name,
		func(ctx context.Context) (*compute.Operation, error) {
			return c.Compute.Disks.CreateSnapshot(c.Project, location, name, s).Context(ctx).Do()
		},
		func(ctx context.Context) (*compute.Operation, error) {
			return c.Compute.RegionDisks.CreateSnapshot(c.Project, location, name, s).Context(ctx).Do()
		})
	if cloud.KindOf(err) == cloud.Exists {
		return c.Until(ctx, s.Name, func(ctx context.Context) (bool, error) {
			now, err := cloud.Read(ctx, c, func(ctx context.Context) (*compute.Snapshot, error) {
				return c.Compute.Snapshots.Get(c.Project, s.Name).Context(ctx).Do()
			})
			if err == nil && now.Status == "FAILED" {
				err = fmt.Errorf("the snapshot %s has failed: delete it, and destroy again", s.Name)
			}
			return err == nil && now.Status == "READY", err
		})
	}
	return err
}
