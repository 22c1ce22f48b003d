package gke

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// filestoreModel is the value of a gke_filestore.
type filestoreModel struct {
	ID        types.String   `tfsdk:"id"`
	Project   types.String   `tfsdk:"project"`
	Status    types.String   `tfsdk:"status"`
	AllLabels types.Map      `tfsdk:"effective_labels"`
	Timeouts  timeouts.Value `tfsdk:"timeouts"`

	Name          types.String `tfsdk:"name"`
	Location      types.String `tfsdk:"location"`
	Tier          types.String `tfsdk:"tier"`
	Protocol      types.String `tfsdk:"protocol"`
	Share         types.String `tfsdk:"share"`
	Capacity      types.Int64  `tfsdk:"capacity_gb"`
	Network       types.String `tfsdk:"network"`
	ConnectMode   types.String `tfsdk:"connect_mode"`
	ReservedRange types.String `tfsdk:"reserved_ip_range"`
	Key           types.String `tfsdk:"kms_key"`
	Description   types.String `tfsdk:"description"`
	Labels        types.Map    `tfsdk:"labels"`
	Protection    types.Bool   `tfsdk:"deletion_protection"`
	AllowDataLoss types.Bool   `tfsdk:"allow_data_loss"`
	Exports       types.List   `tfsdk:"export"`
	Addresses     types.List   `tfsdk:"ip_addresses"`
}

// exportModel has the rights of clients on the share.
type exportModel struct {
	Ranges types.Set    `tfsdk:"ip_ranges"`
	Access types.String `tfsdk:"access_mode"`
	Squash types.String `tfsdk:"squash_mode"`
	UID    types.Int64  `tfsdk:"anonymous_uid"`
	GID    types.Int64  `tfsdk:"anonymous_gid"`
}

func (m *filestoreModel) kind() kind {
	return kind{name: "filestore", what: "Filestore instance", limit: 60 * time.Minute, schema: filestoreSchema, unfinished: []string{"CREATING", "REPAIRING"}, failed: []string{"ERROR"}}
}

func (m *filestoreModel) head() head {
	return head{&m.ID, &m.Project, &m.Status, m.Timeouts, &m.Labels, &m.AllLabels}
}

func filestoreSchema(context.Context) schema.Schema {
	export := map[string]schema.Attribute{
		"ip_ranges":   optionalSet("Addresses and ranges of them that this is about, such as 10.0.0.0/8. Default: all of the network."),
		"access_mode": schema.StringAttribute{Optional: true, Description: "READ_WRITE, which is the default, or READ_ONLY."},
		"squash_mode": schema.StringAttribute{Optional: true, Description: "NO_ROOT_SQUASH, which is the default, " +
			"or ROOT_SQUASH, which maps root to an anonymous user."},
		"anonymous_uid": schema.Int64Attribute{Optional: true, Description: "User that root is under ROOT_SQUASH. Default: 65534."},
		"anonymous_gid": schema.Int64Attribute{Optional: true, Description: "Group that root is under ROOT_SQUASH. Default: 65534."},
	}
	return schema.Schema{
		Description: "A Filestore instance: a share that all nodes of a network can mount over NFS, to read and to write. Arguments that are left out are Google's choice and never a difference.",
		Attributes: map[string]schema.Attribute{
			"name":                requiredName("Its name.", 63),
			"location":            serversFixed("A zone, or a region for the tiers REGIONAL and ENTERPRISE. Default: zone or region of the provider."),
			"tier":                requiredFixed("BASIC_HDD, BASIC_SSD, ZONAL, REGIONAL, ENTERPRISE, or one of the older STANDARD, PREMIUM, HIGH_SCALE_SSD."),
			"protocol":            serversFixed("NFS_V3, which is the default, or NFS_V4_1, which ZONAL, REGIONAL and ENTERPRISE have, too."),
			"share":               requiredFixed("Name of the share, which is the path that is mounted."),
			"capacity_gb":         schema.Int64Attribute{Required: true, Description: "Size in GiB. It grows in place; BASIC_HDD and BASIC_SSD do not shrink. Each tier has a least size and steps."},
			"network":             referenceAttribute(servers("VPC network, by name or in full. Default: default."), sameIn(networks)),
			"connect_mode":        serversFixed("DIRECT_PEERING, which is the default, PRIVATE_SERVICE_ACCESS, which a Shared VPC needs, or PRIVATE_SERVICE_CONNECT."),
			"reserved_ip_range":   serversFixed("Range that its addresses are from: a /29, for the older and larger tiers a /24 or /26, or the name of an allocated range. Default: Google's choice."),
			"kms_key":             serversFixed("Key that the data is encrypted with, in full. Default: a key of Google."),
			"description":         servers("Its purpose, for readers."),
			"labels":              optionalLabels("Labels. Google's own are left alone."),
			"deletion_protection": serversFlag("Whether Google refuses to delete it, and a plan that would is an error. Taken out of the configuration it stays as it is; false takes it away. Default: false."),
			"allow_data_loss":     dataLoss("Whether a plan may recreate the instance, which loses its data. Without it such a plan is refused; -replace asks for one, too."),
			"ip_addresses": schema.ListAttribute{Computed: true, ElementType: types.StringType, Description: "Addresses to mount it from.",
				PlanModifiers: []planmodifier.List{listplanmodifier.UseStateForUnknown()}},
		},
		Blocks: map[string]schema.Block{"export": schema.ListNestedBlock{
			Description: "The rights of clients on the share; several for different addresses. Default: all of the network may read and write.", NestedObject: schema.NestedBlockObject{Attributes: export}}},
	}
}

// tier is what a tier of Filestore allows, which the API says only of an instance
// that is there. https://cloud.google.com/filestore/docs/service-tiers
type tier struct{ regional, shrinks bool }

var tiers = map[string]tier{
	"STANDARD": {}, "BASIC_HDD": {}, "PREMIUM": {}, "BASIC_SSD": {},
	"HIGH_SCALE_SSD": {shrinks: true}, "ZONAL": {shrinks: true},
	"REGIONAL": {regional: true, shrinks: true}, "ENTERPRISE": {regional: true, shrinks: true},
}

// path is the instance's name in the Filestore API.
func (m *filestoreModel) path(project string) string {
	return m.parent(project) + "/instances/" + m.Name.ValueString()
}

func (m *filestoreModel) parent(project string) string {
	return fmt.Sprintf("projects/%s/locations/%s", project, m.Location.ValueString())
}

// parseImportID is that of model.
func (m *filestoreModel) parseImportID(j job, id string) (map[string]string, error) {
	project, location, name, err := place(j, id, "instances")
	return map[string]string{"project": project, "location": location, "name": name}, err
}

// settle fills in where an instance is that names no place.
func (m *filestoreModel) settle(j job) {
	settleProject(j, &m.Project)
	if isGiven(m.Location) || !j.omitted("location") {
		return
	}
	location := j.cloud.Location()
	if tiers[m.Tier.ValueString()].regional && scopeOf(location) == "zones" {
		location = firstNonEmpty(j.cloud.Region, location[:max(0, strings.LastIndexByte(location, '-'))])
	}
	if location != "" {
		m.Location = types.StringValue(location)
	}
}

// noteDestroy adds notes to a plan that destroys an instance.
func (m *filestoreModel) noteDestroy(diags *diag.Diagnostics) {
	if m.Protection.ValueBool() {
		diags.AddAttributeError(path.Root("deletion_protection"), "Filestore instance is protected", "deletion_protection is true: set it to false, apply, and destroy then.")
	}
}

// check is that of model.
func (m *filestoreModel) check(_ context.Context, j job, prior *filestoreModel) {
	if prior == nil {
		m.settle(j)
		if !isGiven(m.Location) && isGiven(m.Tier) && j.omitted("location") {
			reportNoLocation(j.diags, "location")
		}
		if m.ID.IsUnknown() && isGiven(m.Name) && isGiven(m.Location) && isGiven(m.Project) {
			m.ID = types.StringValue(m.path(m.Project.ValueString()))
		}
	}
	if isGiven(m.Tier) {
		m.checkTier(j, prior)
	}
	if prior == nil {
		return
	}
	if why := differing(m.fixed(), prior.fixed()); len(why) > 0 {
		prior.noteDestroy(j.diags)
		checkDataLoss(j, "Filestore instance", why, m.AllowDataLoss, "Copy what is needed")
	}
	if prior.Status.ValueString() == "CREATING" { // it does not say these yet
		if len(prior.Addresses.Elements()) == 0 {
			m.Addresses = types.ListUnknown(types.StringType)
		}
		if prior.ReservedRange.IsNull() && m.ReservedRange.IsNull() {
			m.ReservedRange = types.StringUnknown()
		}
	}
}

func (m *filestoreModel) checkTier(j job, prior *filestoreModel) {
	name := m.Tier.ValueString()
	t, ok := tiers[name]
	switch {
	case !ok:
		j.diags.AddAttributeWarning(path.Root("tier"), "Unknown tier", fmt.Sprintf("Stoke does not know %s; Google may. Known are BASIC_HDD, BASIC_SSD, ZONAL, REGIONAL and ENTERPRISE.", name))
	case isGiven(m.Location) && t.regional != (scopeOf(m.Location.ValueString()) == "regions"):
		j.diags.AddAttributeError(path.Root("location"), "Tier is not for this location",
			fmt.Sprintf("Instances of the tier %s are in a %s, and location is %s.", name, map[bool]string{true: "region", false: "zone"}[t.regional], m.Location.ValueString()))
	case prior != nil && !t.shrinks && len(differing(m.fixed(), prior.fixed())) == 0 && isGiven(m.Capacity) && m.Capacity.ValueInt64() < prior.Capacity.ValueInt64():
		j.diags.AddAttributeError(path.Root("capacity_gb"), "Instances of this tier do not shrink",
			fmt.Sprintf("It has %d GiB, %d are declared, and the tier is %s. Declare its size; or, if the data may be "+
				"lost, recreate it with -replace.", prior.Capacity.ValueInt64(), m.Capacity.ValueInt64(), name))
	}
}

// fixed are the arguments whose change makes another instance.
func (m *filestoreModel) fixed() map[string]attr.Value {
	return map[string]attr.Value{
		"name": m.Name, "project": m.Project, "location": m.Location, "tier": m.Tier, "protocol": m.Protocol, "share": m.Share,
		"network": m.Network, "connect_mode": m.ConnectMode, "reserved_ip_range": m.ReservedRange, "kms_key": m.Key,
	}
}

// ready waits for an instance with an unknown operation.
func (m *filestoreModel) ready(ctx context.Context, c *cloud.Cloud) error {
	return waitForState(ctx, c, "Filestore instance", m.path(c.Project), "READY", []string{"ERROR", "SUSPENDED"}, func(ctx context.Context) (*state, error) {
		f, err := m.get(ctx, c)
		if f == nil || err != nil {
			return nil, err
		}
		return &state{status: f.State, why: f.StatusMessage}, nil
	})
}
