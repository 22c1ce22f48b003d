package gke

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// snapshotModel is the value of a gke_disk_snapshot.
type snapshotModel struct {
	ID        types.String   `tfsdk:"id"`
	Project   types.String   `tfsdk:"project"`
	Status    types.String   `tfsdk:"status"`
	AllLabels types.Map      `tfsdk:"effective_labels"`
	Timeouts  timeouts.Value `tfsdk:"timeouts"`

	Name        types.String `tfsdk:"name"`
	Disk        types.String `tfsdk:"disk"`
	Type        types.String `tfsdk:"type"`
	Locations   types.Set    `tfsdk:"storage_locations"`
	Description types.String `tfsdk:"description"`
	Labels      types.Map    `tfsdk:"labels"`
	Size        types.Int64  `tfsdk:"disk_size_gb"`
	Created     types.String `tfsdk:"created"`
}

func (m *snapshotModel) kind() kind {
	return kind{name: "disk_snapshot", what: "Snapshot", limit: 60 * time.Minute, schema: snapshotSchema, unfinished: []string{"CREATING", "UPLOADING"}}
}

func (m *snapshotModel) head() head {
	return head{&m.ID, &m.Project, &m.Status, m.Timeouts, &m.Labels, &m.AllLabels}
}

func snapshotSchema(context.Context) schema.Schema {
	return schema.Schema{
		Description: "A snapshot of a disk. A gke_disk can begin as one (snapshot). It is independent of its disk, " +
			"and bills for its data until it is destroyed.",
		Attributes: map[string]schema.Attribute{
			"name": requiredName("Its name.", 63),
			"disk": referenceAttribute(schema.StringAttribute{Required: true, Description: "The disk: the id of a gke_disk, or the name of a disk in zone or region of the provider. " +
				"Data that is written while a snapshot is taken may or may not be in it."}, samePart),
			"type":              serversFixed("STANDARD, or ARCHIVE, which costs less to keep and more to restore. Default: STANDARD."),
			"storage_locations": serversSetFixed("Where it is stored: one region, such as us-central1, or one multi-region, such as us. Default: Google's choice, near the disk."),
			"description":       serversFixed("Its content, for readers."),
			"labels":            optionalLabels("Labels. Google's own are left alone."),
			"disk_size_gb":      schema.Int64Attribute{Computed: true, Description: "Size of the disk in GiB; a disk that begins as this snapshot has at least as much.", PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()}},
			"created":           computed("When it was taken."),
		},
	}
}

func snapshotPath(project, name string) string {
	return fmt.Sprintf("projects/%s/global/snapshots/%s", project, name)
}

// parseImportID is that of model.
func (m *snapshotModel) parseImportID(j job, id string) (map[string]string, error) {
	return globally(j, id, "snapshots", "snapshot")
}

// check is that of model.
func (m *snapshotModel) check(_ context.Context, j job, prior *snapshotModel) {
	settleProject(j, &m.Project)
	if m.ID.IsUnknown() && isGiven(m.Name) && isGiven(m.Project) {
		m.ID = types.StringValue(snapshotPath(m.Project.ValueString(), m.Name.ValueString()))
	}
	if prior == nil {
		if isGiven(m.Disk) && !strings.Contains(m.Disk.ValueString(), "/") && j.cloud.Location() == "" {
			j.diags.AddAttributeError(path.Root("disk"), "No place", "Give the id of the disk here, or zone in the block provider \"gke\".")
		}
		return
	}
	if why := differing(m.fixed(), prior.fixed()); len(why) > 0 {
		j.diags.AddWarning("Snapshot is deleted and taken again", fmt.Sprintf("The change of %s takes another "+
			"snapshot of the disk as it is then; what this one holds, of %s, is lost.", strings.Join(why, ", "), prior.Created.ValueString()))
	}
}

// fixed are the arguments whose change makes another snapshot.
func (m *snapshotModel) fixed() map[string]attr.Value {
	return map[string]attr.Value{"name": m.Name, "project": m.Project, "disk": m.Disk, "type": m.Type, "storage_locations": m.Locations, "description": m.Description}
}

// source is the disk's path.
func (m *snapshotModel) source(c *cloud.Cloud) string {
	d := m.Disk.ValueString()
	if at := strings.Index(d, "projects/"); at >= 0 {
		return d[at:]
	}
	return fmt.Sprintf("projects/%s/%s/%s/disks/%s", c.Project, scopeOf(c.Location()), c.Location(), d)
}

func getSnapshot(ctx context.Context, c *cloud.Cloud, name string) (*compute.Snapshot, error) {
	s, err := cloud.Read(ctx, c, func(ctx context.Context) (*compute.Snapshot, error) {
		return c.Compute.Snapshots.Get(c.Project, name).Context(ctx).Do()
	})
	if cloud.KindOf(err) == cloud.NotFound {
		return nil, nil
	}
	return s, err
}

// takeSnapshot makes a snapshot, and waits for it.
func takeSnapshot(ctx context.Context, c *cloud.Cloud, s *compute.Snapshot, mark string, started func()) error {
	return creation[compute.Snapshot, *compute.Operation]{
		what:   "snapshot",
		path:   snapshotPath(c.Project, s.Name),
		get:    func(ctx context.Context) (*compute.Snapshot, error) { return getSnapshot(ctx, c, s.Name) },
		markOf: func(s *compute.Snapshot) string { return s.Labels[cloud.Mark] },
		insert: func(ctx context.Context, id string) (*compute.Operation, error) {
			return c.Compute.Snapshots.Insert(c.Project, s).RequestId(id).Context(ctx).Do()
		},
		wait: func(ctx context.Context, op *compute.Operation) error {
			return c.WaitCompute(ctx, op, "taking the snapshot "+s.Name)
		},
		ready: func(ctx context.Context) error { return snapshotReady(ctx, c, s.Name) },
	}.run(ctx, c, mark, started)
}

func snapshotReady(ctx context.Context, c *cloud.Cloud, name string) error {
	return waitForState(ctx, c, "snapshot", name, "READY", []string{"FAILED"}, func(ctx context.Context) (*state, error) {
		s, err := getSnapshot(ctx, c, name)
		if s == nil || err != nil {
			return nil, err
		}
		return &state{status: s.Status}, nil
	})
}

// create is that of model.
func (m *snapshotModel) create(ctx context.Context, j job, mark string, started func()) error {
	c := j.cloud
	return takeSnapshot(ctx, c, &compute.Snapshot{
		Name: m.Name.ValueString(), SourceDisk: m.source(c), SnapshotType: m.Type.ValueString(), StorageLocations: list(m.Locations),
		Description: m.Description.ValueString(), Labels: c.Marked(texts(m.Labels), mark),
	}, mark, started)
}

// read is that of model.
func (m *snapshotModel) read(ctx context.Context, j job) (bool, string, error) {
	s, err := getSnapshot(ctx, j.cloud, m.Name.ValueString())
	if s == nil || err != nil {
		return false, "", err
	}
	m.ID, m.Project, m.Status = types.StringValue(snapshotPath(j.cloud.Project, s.Name)), types.StringValue(j.cloud.Project), types.StringValue(s.Status)
	if at := strings.Index(s.SourceDisk, "projects/"); at >= 0 && s.SourceDisk[at:] != m.source(j.cloud) {
		m.Disk = types.StringValue(s.SourceDisk[at:])
	}
	m.Type, m.Locations = textOrNull(s.SnapshotType), setOf(s.StorageLocations)
	m.Description = textAs(m.Description, s.Description)
	m.head().readLabels(j.cloud, s.Labels)
	m.Size, m.Created = numberOrNull(s.DiskSizeGb), textOrNull(s.CreationTimestamp)
	return true, s.Labels[cloud.Mark], nil
}

// update is that of model: labels are all that can be changed.
func (m *snapshotModel) update(ctx context.Context, j job, prior *snapshotModel) error {
	c, name := j.cloud, m.Name.ValueString()
	if err := snapshotReady(ctx, c, name); err != nil || !changed(m.AllLabels, prior.AllLabels) {
		return err
	}
	return relabel(ctx, c, "snapshot "+name, texts(m.Labels), func(ctx context.Context) (*labelled, error) {
		s, err := getSnapshot(ctx, c, name)
		if s == nil || err != nil {
			return nil, err
		}
		return &labelled{s.Labels, s.LabelFingerprint}, nil
	}, func(ctx context.Context, l labelled) (*compute.Operation, error) {
		return c.Compute.Snapshots.SetLabels(c.Project, name, &compute.GlobalSetLabelsRequest{Labels: l.labels, LabelFingerprint: l.fingerprint}).Context(ctx).Do()
	})
}

// remove is that of model.
func (m *snapshotModel) remove(ctx context.Context, j job) error {
	c, name := j.cloud, m.Name.ValueString()
	op, err := cloud.Repeat(ctx, c, func(ctx context.Context) (*compute.Operation, error) {
		return c.Compute.Snapshots.Delete(c.Project, name).RequestId(cloud.Request(ctx, "delete "+snapshotPath(c.Project, name))).Context(ctx).Do()
	})
	if err == nil {
		err = c.WaitCompute(ctx, op, "deleting the snapshot "+name)
	}
	if cloud.KindOf(err) == cloud.NotFound {
		return nil
	}
	return err
}
