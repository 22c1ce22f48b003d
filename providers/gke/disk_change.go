package gke

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// send makes a call that changes the disk, and waits.
func (m *diskModel) send(ctx context.Context, c *cloud.Cloud, verb, what string, zonal, regional func(ctx context.Context, request string) (*compute.Operation, error)) error {
	op, err := cloud.Repeat(ctx, c, func(ctx context.Context) (*compute.Operation, error) {
		request := cloud.Request(ctx, verb+" "+m.path(c.Project))
		if m.regional() {
			return regional(ctx, request)
		}
		return zonal(ctx, request)
	})
	if err == nil {
		err = c.WaitCompute(ctx, op, what)
	}
	return err
}

// update implements model: size, speed and access, labels are a call each; of a
// Hyperdisk the first two are one, as the size decides which speeds it may have, and
// either may change once in four hours.
func (m *diskModel) update(ctx context.Context, j job, prior *diskModel) error {
	c, location, name := j.cloud, m.Location.ValueString(), m.Name.ValueString()
	if err := m.ready(ctx, c); err != nil {
		return err
	}
	if changed(m.Size, prior.Size) && !m.hyperdisk() {
		r, z := &compute.RegionDisksResizeRequest{SizeGb: m.Size.ValueInt64()}, &compute.DisksResizeRequest{SizeGb: m.Size.ValueInt64()}
		err := m.send(ctx, c, "resize", "growing the disk "+name,
			func(ctx context.Context, request string) (*compute.Operation, error) {
				return c.Compute.Disks.Resize(c.Project, location, name, z).RequestId(request).Context(ctx).Do()
			},
			func(ctx context.Context, request string) (*compute.Operation, error) {
				return c.Compute.RegionDisks.Resize(c.Project, location, name, r).RequestId(request).Context(ctx).Do()
			})
		if now, again := m.get(ctx, c); err != nil && (again != nil || now == nil || now.SizeGb != m.Size.ValueInt64()) {
			return fmt.Errorf("grow the disk: %w", err) // one whose answer was lost has grown
		}
	}
	if err := m.tune(ctx, c, prior); err != nil {
		return fmt.Errorf("change size, speed and access of the disk: %w", err)
	}
	if !changed(m.AllLabels, prior.AllLabels) {
		return nil
	}
	return m.relabel(ctx, c)
}

func (m *diskModel) hyperdisk() bool {
	return strings.HasPrefix(last(m.Type.ValueString()), "hyperdisk-")
}

// tune changes a Hyperdisk's size, speed and access, with all differences in one
// call.
func (m *diskModel) tune(ctx context.Context, c *cloud.Cloud, prior *diskModel) error {
	var paths []string
	d := &compute.Disk{Name: m.Name.ValueString()}
	if changed(m.Size, prior.Size) && m.hyperdisk() {
		paths, d.SizeGb = append(paths, "sizeGb"), m.Size.ValueInt64()
	}
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
	return m.send(ctx, c, "update", "changing the disk "+name,
		func(ctx context.Context, request string) (*compute.Operation, error) {
			return c.Compute.Disks.Update(c.Project, location, name, d).Paths(paths...).RequestId(request).Context(ctx).Do()
		},
		func(ctx context.Context, request string) (*compute.Operation, error) {
			return c.Compute.RegionDisks.Update(c.Project, location, name, d).Paths(paths...).RequestId(request).Context(ctx).Do()
		})
}

func (m *diskModel) relabel(ctx context.Context, c *cloud.Cloud) error {
	location, name := m.Location.ValueString(), m.Name.ValueString()
	return relabel(ctx, c, "disk "+name, texts(m.Labels), func(ctx context.Context) (*labelled, error) {
		d, err := m.get(ctx, c)
		if d == nil || err != nil {
			return nil, err
		}
		return &labelled{d.Labels, d.LabelFingerprint}, nil
	}, func(ctx context.Context, l labelled) (*compute.Operation, error) {
		if m.regional() {
			return c.Compute.RegionDisks.SetLabels(c.Project, location, name, &compute.RegionSetLabelsRequest{Labels: l.labels, LabelFingerprint: l.fingerprint}).RequestId(cloud.Request(ctx, "label "+m.path(c.Project))).Context(ctx).Do()
		}
		return c.Compute.Disks.SetLabels(c.Project, location, name, &compute.ZoneSetLabelsRequest{Labels: l.labels, LabelFingerprint: l.fingerprint}).RequestId(cloud.Request(ctx, "label "+m.path(c.Project))).Context(ctx).Do()
	})
}

// remove is that of model.
func (m *diskModel) remove(ctx context.Context, j job) error {
	c, location, name := j.cloud, m.Location.ValueString(), m.Name.ValueString()
	now, err := m.get(ctx, c)
	if now == nil || err != nil {
		return err
	}
	if now, err = m.detached(ctx, c, now); now == nil || err != nil { // before a snapshot is taken of what still changes
		return err
	}
	if m.SnapshotBefore.ValueBool() {
		if err := m.keep(ctx, c, now); err != nil {
			return fmt.Errorf("take the snapshot before: %w; the disk is still there", err)
		}
	}
	err = m.send(ctx, c, "delete", "deleting the disk "+name,
		func(ctx context.Context, request string) (*compute.Operation, error) {
			return c.Compute.Disks.Delete(c.Project, location, name).RequestId(request).Context(ctx).Do()
		},
		func(ctx context.Context, request string) (*compute.Operation, error) {
			return c.Compute.RegionDisks.Delete(c.Project, location, name).RequestId(request).Context(ctx).Do()
		})
	if cloud.KindOf(err) == cloud.NotFound {
		return nil
	}
	return err
}

// going are the states of a machine that is being deleted and releases its disks.
// A machine that only stops keeps them: it becomes TERMINATED.
var going = []string{"STOPPING", "DEPROVISIONING", "PENDING_STOP"}

// detached waits until no machine has the disk, as long as its machines are being
// deleted. It returns the disk as it is then, nil where it is gone.
func (m *diskModel) detached(ctx context.Context, c *cloud.Cloud, d *compute.Disk) (*compute.Disk, error) {
	err := c.WaitUntil(ctx, m.path(c.Project), func(ctx context.Context) (bool, error) {
		var err error
		if d, err = m.get(ctx, c); d == nil || err != nil {
			return err == nil, err
		}
		var users, others []string
		for _, link := range d.Users {
			users = append(users, last(link))
			status, err := machineStatus(ctx, c, link)
			if err != nil || !slices.Contains(going, status) && status != "" {
				others = append(others, last(link))
			}
		}
		if len(others) > 0 {
			return false, &cloud.Error{Summary: "Still in use", Kind: cloud.InUse, Detail: fmt.Sprintf("The disk %s is attached to %s. Detach it first, or destroy what uses it.", m.Name.ValueString(), strings.Join(others, ", "))}
		}
		if len(users) > 0 {
			cloud.ReportProgress(ctx, -1, "waiting for %s, which is being deleted, to let go of the disk %s", strings.Join(users, ", "), m.Name.ValueString())
		}
		return len(users) == 0, nil
	})
	return d, err
}

// machineStatus returns the status of a machine; "" where it is gone.
func machineStatus(ctx context.Context, c *cloud.Cloud, link string) (string, error) {
	i, err := cloud.Read(ctx, c, func(ctx context.Context) (*compute.Instance, error) {
		return c.Compute.Instances.Get(c.Project, zoneOf(link), last(link)).Context(ctx).Do()
	})
	if cloud.KindOf(err) == cloud.NotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return i.Status, nil
}

// keep takes a snapshot of the disk under a name that can be found again: it has
// the disk's id, and when the disk was detached last. The data of a detached disk
// stays the same, so that the snapshot of an interrupted destroy is as good.
func (m *diskModel) keep(ctx context.Context, c *cloud.Cloud, d *compute.Disk) error {
	name := m.Name.ValueString()
	tail := fmt.Sprintf("-before-destroy-%d", d.Id)
	if at, err := time.Parse(time.RFC3339, d.LastDetachTimestamp); err == nil {
		tail += fmt.Sprintf("-%d", at.Unix())
	}
	s := &compute.Snapshot{Name: name[:min(len(name), 63-len(tail))] + tail, SourceDisk: m.path(c.Project), Labels: c.Marked(texts(m.Labels), "")}
	cloud.ReportProgress(ctx, -1, "taking the snapshot %s, which stays and bills", s.Name)
	return takeSnapshot(ctx, c, s, "", func() {}) // its name is the mark
}
