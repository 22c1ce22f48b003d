package gke

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// versionsFound is the value of the data source gke_server_versions.
type versionsFound struct {
	Project  types.String               `tfsdk:"project"`
	Location types.String               `tfsdk:"location"`
	Prefix   types.String               `tfsdk:"prefix"`
	Default  types.String               `tfsdk:"default_version" is:"What a cluster without version and release channel gets."`
	Latest   types.String               `tfsdk:"latest" is:"Newest version for control planes that begins with prefix; null where there is none."`
	Masters  []string                   `tfsdk:"master_versions" is:"Versions for control planes that begin with prefix, newest first."`
	Nodes    []string                   `tfsdk:"node_versions" is:"Versions for nodes that begin with prefix, newest first."`
	Channels map[string]channelVersions `tfsdk:"channels" is:"What each release channel offers, such as REGULAR."`
}

// channelVersions is what a release channel offers.
type channelVersions struct {
	Default  types.String `tfsdk:"default_version" is:"What a new cluster gets."`
	Upgrade  types.String `tfsdk:"upgrade_version" is:"What clusters are upgraded to."`
	Versions []string     `tfsdk:"versions" is:"What can be asked for, with the prefix, newest first."`
}

func (*versionsFound) looksFor() (name, description string) {
	return "server_versions", "The versions of Kubernetes that GKE offers in a place."
}

func (*versionsFound) arguments() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"project":  argument("Project that asks. Default: that of the provider."),
		"location": argument("Zone or region. Default: zone or region of the provider."),
		"prefix":   schema.StringAttribute{Optional: true, Description: `Beginning of the listed versions, in whole numbers: "1.36" matches 1.36.2-gke.1400. Default: all.`},
	}
}

func (m *versionsFound) location() string { return m.Project.ValueString() }

func (m *versionsFound) find(ctx context.Context, j job) error {
	m.Project = types.StringValue(j.cloud.Project)
	if m.Location.IsNull() {
		m.Location = textOrNull(j.cloud.Location())
	}
	if m.Location.IsNull() {
		reportNoLocation(j.diags, "location")
		return nil
	}
	config, err := cloud.Read(ctx, j.cloud, func(ctx context.Context) (*containerpb.ServerConfig, error) {
		return j.cloud.Clusters.GetServerConfig(ctx, &containerpb.GetServerConfigRequest{Name: fmt.Sprintf("projects/%s/locations/%s", j.cloud.Project, m.Location.ValueString())})
	})
	if err != nil {
		return err
	}
	m.Default = textOrNull(config.GetDefaultClusterVersion())
	m.Masters, m.Nodes = m.withPrefix(config.GetValidMasterVersions()), m.withPrefix(config.GetValidNodeVersions())
	m.Latest = types.StringNull()
	if len(m.Masters) > 0 {
		m.Latest = types.StringValue(m.Masters[0])
	}
	m.Channels = map[string]channelVersions{}
	for _, c := range config.GetChannels() {
		m.Channels[c.GetChannel().String()] = channelVersions{textOrNull(c.GetDefaultVersion()), textOrNull(c.GetUpgradeTargetVersion()), m.withPrefix(c.GetValidVersions())}
	}
	return nil
}

// withPrefix are the versions that begin with the prefix; 1.3 is none of 1.36.
func (m *versionsFound) withPrefix(all []string) []string {
	out := []string{}
	prefix := m.Prefix.ValueString()
	for _, v := range all {
		if rest, ok := strings.CutPrefix(v, prefix); ok && (prefix == "" || rest == "" || strings.HasSuffix(prefix, ".") || strings.ContainsAny(rest[:1], ".-")) {
			out = append(out, v)
		}
	}
	return out
}

// acceleratorsFound is the value of the data source gke_zone_accelerators.
type acceleratorsFound struct {
	Project      types.String  `tfsdk:"project"`
	Zone         types.String  `tfsdk:"zone"`
	Accelerators []accelerator `tfsdk:"accelerators" is:"What the zone has, by name. That it has them does not say that any are free."`
	Types        []string      `tfsdk:"types" is:"Their types alone, such as nvidia-l4."`
}

// accelerator is a type of GPU, or of TPU.
type accelerator struct {
	Type        types.String `tfsdk:"type" is:"What accelerator.type of a gke_node_pool takes."`
	Description types.String `tfsdk:"description" is:"What Google calls it."`
	Most        types.Int64  `tfsdk:"max_per_machine" is:"How many one machine can have."`
}

func (*acceleratorsFound) looksFor() (name, description string) {
	return "zone_accelerators", "The types of GPU that a zone has."
}

func (*acceleratorsFound) arguments() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"project": argument("Project that asks. Default: that of the provider."),
		"zone":    argument("The zone. Default: that of the provider."),
	}
}

func (m *acceleratorsFound) location() string { return m.Project.ValueString() }

func (m *acceleratorsFound) find(ctx context.Context, j job) error {
	m.Project = types.StringValue(j.cloud.Project)
	if m.Zone.IsNull() {
		m.Zone = textOrNull(j.cloud.Zone)
	}
	if m.Zone.IsNull() {
		reportNoLocation(j.diags, "zone")
		return nil
	}
	found, err := cloud.Read(ctx, j.cloud, func(ctx context.Context) ([]accelerator, error) {
		all := []accelerator{}
		err := j.cloud.Compute.AcceleratorTypes.List(j.cloud.Project, m.Zone.ValueString()).Pages(ctx, func(page *compute.AcceleratorTypeList) error {
			for _, a := range page.Items {
				if a.Deprecated == nil || a.Deprecated.State != "DELETED" {
					all = append(all, accelerator{types.StringValue(a.Name), textOrNull(a.Description), numberOrNull(a.MaximumCardsPerInstance)})
				}
			}
			return nil
		})
		return all, err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b accelerator) int { return strings.Compare(a.Type.ValueString(), b.Type.ValueString()) })
	m.Accelerators, m.Types = found, []string{}
	for _, a := range found {
		m.Types = append(m.Types, a.Type.ValueString())
	}
	return nil
}
