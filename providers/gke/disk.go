package gke

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/cloud"
)

// diskModel is the value of a gke_disk.
type diskModel struct {
	ID       types.String   `tfsdk:"id"`
	Project  types.String   `tfsdk:"project"`
	Status   types.String   `tfsdk:"status"`
	Timeouts timeouts.Value `tfsdk:"timeouts"`

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
}

func (m *diskModel) kind() kind {
	return kind{name: "disk", what: "Disk", limit: 20 * time.Minute, schema: diskSchema, unfinished: []string{"CREATING", "RESTORING"}}
}

func (m *diskModel) head() head { return head{&m.ID, &m.Project, &m.Status, m.Timeouts} }

func diskSchema(context.Context) schema.Schema {
	return schema.Schema{
		Description: "A persistent disk or Hyperdisk, in a zone or, with copies in two zones, in a region. It grows in place and never shrinks. Arguments that are left out are Google's choice and never a difference.",
		Attributes: map[string]schema.Attribute{
			"name":                    requiredFixed("Its name."),
			"location":                serversFixed("A zone, or a region for a disk with two copies. Default: zone or region of the provider."),
			"replica_zones":           serversSetFixed("The two zones of a regional disk."),
			"type":                    serversFixed("pd-standard, pd-balanced, pd-ssd, pd-extreme, hyperdisk-balanced, hyperdisk-ml and others. Default: Google's, pd-standard."),
			"size_gb":                 serversNumber("Size in GiB. A larger one grows the disk in place; a smaller one is refused."),
			"access_mode":             servers("Of a Hyperdisk: READ_WRITE_SINGLE, READ_WRITE_MANY, or READ_ONLY_MANY, by which many nodes read one set of data."),
			"iops":                    serversNumber("Operations a second that are provisioned, where the type lets one choose."),
			"throughput":              serversNumber("MiB a second that are provisioned, where the type lets one choose."),
			"snapshot":                serversFixed("A snapshot that the disk begins as, by name or in full."),
			"labels":                  optionalMap("Labels. Google's own are left alone."),
			"snapshot_before_destroy": schema.BoolAttribute{Optional: true, Description: "Whether a snapshot is taken before the disk is deleted. It is called NAME-before-destroy-ID with the time at which the disk was detached last, stays, and bills. Default: false."},
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

// named is that of model.
func (m *diskModel) named(j job, id string) (map[string]string, error) {
	project, location, name, err := place(j, id, "disks")
	return map[string]string{"project": project, "location": location, "name": name}, err
}

// settle fills in where a disk is that names no place.
func (m *diskModel) settle(j job) {
	if m.Project.IsUnknown() || m.Project.IsNull() {
		m.Project = types.StringValue(j.cloud.Project)
	}
	if (m.Location.IsUnknown() || m.Location.IsNull()) && j.cloud.Location() != "" {
		m.Location = types.StringValue(j.cloud.Location())
	}
}

// check is that of model.
func (m *diskModel) check(ctx context.Context, j job, prior *diskModel) {
	if prior == nil {
		m.settle(j)
		return
	}
	if m.replaces(prior) {
		prior.leaves(ctx)
	}
	if given(m.Size) && m.Size.ValueInt64() < prior.Size.ValueInt64() {
		j.diags.AddAttributeError(path.Root("size_gb"), "Disks do not shrink",
			fmt.Sprintf("It has %d GiB and %d are declared. Declare its size; or, where the data may go, make it anew with -replace.", prior.Size.ValueInt64(), m.Size.ValueInt64()))
	}
}

// replaces tells whether this disk is another one.
func (m *diskModel) replaces(prior *diskModel) bool {
	return !m.Name.Equal(prior.Name) || !m.Project.Equal(prior.Project) || !m.Location.Equal(prior.Location) || !m.Type.Equal(prior.Type) || !m.Snapshot.Equal(prior.Snapshot) || !m.ReplicaZones.Equal(prior.ReplicaZones)
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
	c, wanted := j.cloud, m.wanted(j.cloud, mark)
	return making[compute.Disk, *compute.Operation]{
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

// ready waits for a disk whose operation nobody knows.
func (m *diskModel) ready(ctx context.Context, c *cloud.Cloud) error {
	return until(ctx, c, "disk", m.path(c.Project), "READY", []string{"FAILED"}, func(ctx context.Context) (*state, error) {
		d, err := m.get(ctx, c)
		if d == nil || err != nil {
			return nil, err
		}
		return &state{status: d.Status}, nil
	})
}

func (m *diskModel) wanted(c *cloud.Cloud, mark string) *compute.Disk {
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
		if d.SourceSnapshot = s; !strings.Contains(s, "/") {
			d.SourceSnapshot = snapshotPath(c.Project, s)
		}
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
	m.Labels = mapOrNull(m.Labels, c.Declared(d.Labels, texts(m.Labels)))
}
