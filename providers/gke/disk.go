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
	"github.com/hashicorp/terraform-plugin-framework/types"
	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/cloud"
)

// diskModel is the value of a gke_disk.
type diskModel struct {
	ID        types.String   `tfsdk:"id"`
	Project   types.String   `tfsdk:"project"`
	Status    types.String   `tfsdk:"status"`
	AllLabels types.Map      `tfsdk:"effective_labels"`
	Timeouts  timeouts.Value `tfsdk:"timeouts"`

	Name           types.String `tfsdk:"name"`
	Location       types.String `tfsdk:"location"`
	ReplicaZones   types.Set    `tfsdk:"replica_zones"`
	Type           types.String `tfsdk:"type"`
	Size           types.Int64  `tfsdk:"size_gb"`
	AccessMode     types.String `tfsdk:"access_mode"`
	IOPS           types.Int64  `tfsdk:"iops"`
	Throughput     types.Int64  `tfsdk:"throughput"`
	Snapshot       types.String `tfsdk:"snapshot"`
	Labels         types.Map    `tfsdk:"labels"`
	SnapshotBefore types.Bool   `tfsdk:"snapshot_before_destroy"`
	AllowDataLoss  types.Bool   `tfsdk:"allow_data_loss"`
}

func (m *diskModel) kind() kind {
	return kind{name: "disk", what: "Disk", limit: 20 * time.Minute, schema: diskSchema, unfinished: []string{"CREATING", "RESTORING"}}
}

func (m *diskModel) head() head {
	return head{&m.ID, &m.Project, &m.Status, m.Timeouts, &m.Labels, &m.AllLabels}
}

func diskSchema(context.Context) schema.Schema {
	return schema.Schema{
		Description: "A persistent disk or Hyperdisk, in a zone or, with copies in two zones, in a region. It grows in place and never shrinks. Arguments that are left out are Google's choice and never a difference.",
		Attributes: map[string]schema.Attribute{
			"name":          requiredName("Its name.", 63),
			"location":      serversFixed("A zone, or a region for a disk with two copies. Default: zone or region of the provider."),
			"replica_zones": serversSetFixed("The two zones of a regional disk."),
			"type":          referenceAttribute(servers("pd-standard, pd-balanced, pd-ssd, pd-extreme, hyperdisk-balanced, hyperdisk-ml and others. Default: pd-standard."), samePart),
			"size_gb":       serversNumber("Size in GiB. A larger one grows the disk in place; a smaller one is refused."),
			"access_mode": servers("Of a Hyperdisk: READ_WRITE_SINGLE, READ_WRITE_MANY, or READ_ONLY_MANY, " +
				"for many nodes that read one set of data."),
			"iops":       serversNumber("Operations a second that are provisioned, where the type lets one choose. They, the throughput and the size of a Hyperdisk change once in four hours, all in one apply."),
			"throughput": serversNumber("MiB a second that are provisioned, where the type lets one choose."),
			"snapshot": referenceAttribute(servers("A snapshot that the disk begins as, by name or in full."),
				sameIn(snapshots)),
			"labels":                  optionalLabels("Labels. Google's own are left alone."),
			"snapshot_before_destroy": schema.BoolAttribute{Optional: true, Description: "Whether a snapshot is taken before the disk is deleted. It is called NAME-before-destroy-ID with the time at which the disk was detached last, stays, and bills. The last applied value counts. Default: false."},
			"allow_data_loss": dataLoss("Whether a plan may recreate the disk without such a snapshot, which " +
				"loses its data. Without it such a plan is refused; -replace asks for one, too."),
		},
	}
}

func (m *diskModel) regional() bool { return strings.Count(m.Location.ValueString(), "-") == 1 }

// path is the disk's name in the compute API.
func (m *diskModel) path(project string) string {
	return fmt.Sprintf("projects/%s/%s/%s/disks/%s", project, scopeOf(m.Location.ValueString()), m.Location.ValueString(), m.Name.ValueString())
}

// scopeOf is what the compute API calls a location.
func scopeOf(location string) string {
	if strings.Count(location, "-") == 1 {
		return "regions"
	}
	return "zones"
}

// parseImportID is that of model.
func (m *diskModel) parseImportID(j job, id string) (map[string]string, error) {
	project, location, name, err := place(j, id, "disks")
	return map[string]string{"project": project, "location": location, "name": name}, err
}

// settle fills in where a disk is that names no place.
func (m *diskModel) settle(j job) {
	settleProject(j, &m.Project)
	if !isGiven(m.Location) && j.omitted("location") && j.cloud.Location() != "" {
		m.Location = types.StringValue(j.cloud.Location())
	}
}

// check is that of model.
func (m *diskModel) check(ctx context.Context, j job, prior *diskModel) {
	if prior == nil {
		m.settle(j)
		m.checkPlace(j)
		return
	}
	if why := differing(m.fixed(), prior.fixed()); len(why) > 0 {
		prior.leaves(ctx)
		if !prior.SnapshotBefore.ValueBool() {
			checkDataLoss(j, "disk", why, m.AllowDataLoss, "Apply snapshot_before_destroy = true first")
		}
		return
	}
	if last(m.Type.ValueString()) == "pd-extreme" && isGiven(m.IOPS) && changed(m.IOPS, prior.IOPS) {
		j.diags.AddAttributeError(path.Root("iops"), "IOPS of pd-extreme do not change",
			fmt.Sprintf("It has %d and %d are declared: Google changes them only for a Hyperdisk. Declare what it has; "+
				"or, if the data may be lost, recreate it with -replace.", prior.IOPS.ValueInt64(), m.IOPS.ValueInt64()))
	}
	if isGiven(m.Size) && m.Size.ValueInt64() < prior.Size.ValueInt64() {
		j.diags.AddAttributeError(path.Root("size_gb"), "Disks do not shrink",
			fmt.Sprintf("It has %d GiB and %d are declared. Declare its size; or, if the data may be lost, recreate it "+
				"with -replace.", prior.Size.ValueInt64(), m.Size.ValueInt64()))
	}
}

// checkPlace checks the location of a disk. There, its id is known before it is made.
func (m *diskModel) checkPlace(j job) {
	switch {
	case !isGiven(m.Location) && j.omitted("location"):
		reportNoLocation(j.diags, "location")
	case !isGiven(m.Location):
	case m.regional() && j.omitted("replica_zones"):
		j.diags.AddAttributeError(path.Root("replica_zones"), "Disk in a region needs two zones", fmt.Sprintf("location is the region %s: name the two zones that have a copy each in replica_zones, or give a zone as location.", m.Location.ValueString()))
	case m.ID.IsUnknown() && isGiven(m.Name) && isGiven(m.Project):
		m.ID = types.StringValue(m.path(m.Project.ValueString()))
	}
}

// fixed are the arguments whose change makes another disk.
func (m *diskModel) fixed() map[string]attr.Value {
	return map[string]attr.Value{"name": m.Name, "project": m.Project, "location": m.Location, "type": m.Type, "snapshot": m.Snapshot, "replica_zones": m.ReplicaZones}
}

// leaves is said in a plan that deletes the disk.
func (m *diskModel) leaves(ctx context.Context) {
	if m.SnapshotBefore.ValueBool() {
		providers.CallFrom(ctx).AddNote(providers.Note{Kind: providers.NoteFact, Text: fmt.Sprintf("Before the disk is deleted, a snapshot %s-before-destroy-… is taken of its %d GiB. It stays, and bills until you delete it.", m.Name.ValueString(), m.Size.ValueInt64())})
	}
}

func (m *diskModel) get(ctx context.Context, c *cloud.Cloud) (*compute.Disk, error) {
	d, err := cloud.Read(ctx, c, func(ctx context.Context) (*compute.Disk, error) {
		if m.regional() {
			return c.Compute.RegionDisks.Get(c.Project, m.Location.ValueString(), m.Name.ValueString()).Context(ctx).Do()
		}
		return c.Compute.Disks.Get(c.Project, m.Location.ValueString(), m.Name.ValueString()).Context(ctx).Do()
	})
	if cloud.KindOf(err) == cloud.NotFound {
		return nil, nil
	}
	return d, err
}

// create is that of model.
func (m *diskModel) create(ctx context.Context, j job, mark string, started func()) error {
	m.settle(j)
	c, wanted := j.cloud, m.render(j.cloud, mark)
	return creation[compute.Disk, *compute.Operation]{
		what:   "disk",
		path:   m.path(c.Project),
		get:    func(ctx context.Context) (*compute.Disk, error) { return m.get(ctx, c) },
		markOf: func(d *compute.Disk) string { return d.Labels[cloud.Mark] },
		insert: func(ctx context.Context, id string) (*compute.Operation, error) {
			if m.regional() {
				return c.Compute.RegionDisks.Insert(c.Project, m.Location.ValueString(), wanted).RequestId(id).Context(ctx).Do()
			}
			return c.Compute.Disks.Insert(c.Project, m.Location.ValueString(), wanted).RequestId(id).Context(ctx).Do()
		},
		wait: func(ctx context.Context, op *compute.Operation) error {
			return c.WaitCompute(ctx, op, "making the disk "+wanted.Name)
		},
		ready: func(ctx context.Context) error { return m.ready(ctx, c) },
	}.run(ctx, c, mark, started)
}

// ready waits for a disk with an unknown operation.
func (m *diskModel) ready(ctx context.Context, c *cloud.Cloud) error {
	return waitForState(ctx, c, "disk", m.path(c.Project), "READY", []string{"FAILED"}, func(ctx context.Context) (*state, error) {
		d, err := m.get(ctx, c)
		if d == nil || err != nil {
			return nil, err
		}
		return &state{status: d.Status}, nil
	})
}

func (m *diskModel) render(c *cloud.Cloud, mark string) *compute.Disk {
	d := &compute.Disk{
		Name: m.Name.ValueString(), SizeGb: m.Size.ValueInt64(), Labels: c.Marked(texts(m.Labels), mark),
		AccessMode: m.AccessMode.ValueString(), ProvisionedIops: m.IOPS.ValueInt64(), ProvisionedThroughput: m.Throughput.ValueInt64(),
	}
	if t := m.Type.ValueString(); t != "" {
		d.Type = fmt.Sprintf("projects/%s/%s/%s/diskTypes/%s", c.Project, scopeOf(m.Location.ValueString()), m.Location.ValueString(), last(t))
	}
	for _, zone := range list(m.ReplicaZones) {
		d.ReplicaZones = append(d.ReplicaZones, fmt.Sprintf("projects/%s/zones/%s", c.Project, zone))
	}
	if s := m.Snapshot.ValueString(); s != "" {
		d.SourceSnapshot = inFull(s, c.Project, snapshots)
	}
	return d
}

// read is that of model.
func (m *diskModel) read(ctx context.Context, j job) (bool, string, error) {
	m.settle(j)
	d, err := m.get(ctx, j.cloud)
	if d == nil || err != nil {
		return false, "", err
	}
	m.show(j.cloud, d)
	return true, d.Labels[cloud.Mark], nil
}

// show sets the model to a disk.
func (m *diskModel) show(c *cloud.Cloud, d *compute.Disk) {
	m.ID, m.Status = types.StringValue(m.path(c.Project)), types.StringValue(d.Status)
	zones := []string{}
	for _, z := range d.ReplicaZones {
		zones = append(zones, last(z))
	}
	m.ReplicaZones, m.Type, m.Size = setOf(zones), link(m.Type, last(d.Type)), types.Int64Value(d.SizeGb)
	m.AccessMode, m.IOPS, m.Throughput = textOrNull(d.AccessMode), numberOrNull(d.ProvisionedIops), numberOrNull(d.ProvisionedThroughput)
	m.Snapshot = link(m.Snapshot, d.SourceSnapshot)
	m.head().readLabels(c, d.Labels)
}
