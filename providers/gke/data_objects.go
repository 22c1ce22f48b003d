package gke

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
)

// clusterFound is the value of the data source gke_cluster.
type clusterFound struct {
	Name       types.String `tfsdk:"name"`
	Project    types.String `tfsdk:"project"`
	Location   types.String `tfsdk:"location"`
	Endpoint   types.String `tfsdk:"endpoint"`
	Access     types.Object `tfsdk:"access"`
	ID         types.String `tfsdk:"id" is:"What it is called in the API."`
	Status     types.String `tfsdk:"status" is:"How it stands, in the API's word."`
	Version    types.String `tfsdk:"master_version" is:"Version of Kubernetes that its control plane runs."`
	Channel    types.String `tfsdk:"release_channel" is:"Channel that upgrades it, or NONE."`
	Network    types.String `tfsdk:"network" is:"VPC network."`
	Subnetwork types.String `tfsdk:"subnetwork" is:"Subnetwork of the nodes."`
	Labels     types.Map    `tfsdk:"labels" is:"Labels, without Google's own."`
	Kubeconfig types.String `tfsdk:"kubeconfig" is:"A kubeconfig for kubectl, which gets its token by gke-gcloud-auth-plugin."`
}

func (*clusterFound) looksFor() (name, description string) {
	return "cluster", "A GKE cluster that something else has made."
}

func (*clusterFound) arguments() map[string]schema.Attribute {
	return located(map[string]schema.Attribute{
		"name": requiredArgument("Its name."),
		"endpoint": schema.StringAttribute{Optional: true, Description: "The endpoint of access: public, which is the " +
			"default, dns for Google's name for the API server, or private."},
		"access": connect.ForDataSource(connect.Result("Connection for the argument cluster of the providers kube and train. " +
			"It describes how to get a token and holds none.")),
	})
}

func (m *clusterFound) location() string { return m.Project.ValueString() }

func (m *clusterFound) find(ctx context.Context, j job) error {
	k := &clusterModel{Name: m.Name, Project: m.Project, Location: m.Location, Endpoint: m.Endpoint, Access: types.ObjectNull(connect.AttributeTypes())}
	if k.Location.IsNull() {
		k.Location = textOrNull(j.cloud.Location())
	}
	if k.Project = types.StringValue(j.cloud.Project); !isGiven(k.Location) {
		reportNoLocation(j.diags, "location")
		return nil
	}
	found, _, err := k.read(ctx, j)
	if err != nil {
		return err
	}
	if !found {
		return absent("cluster", k.path(j.cloud.Project))
	}
	m.Project, m.Location, m.Access, m.ID, m.Status = k.Project, k.Location, k.Access, k.ID, k.Status
	m.Version, m.Channel, m.Network, m.Subnetwork, m.Labels, m.Kubeconfig = k.MasterVersion, k.ReleaseChannel, k.Network, k.Subnetwork, k.Labels, k.Kubeconfig
	return nil
}

// diskFound is the value of the data source gke_disk.
type diskFound struct {
	Name       types.String `tfsdk:"name"`
	Project    types.String `tfsdk:"project"`
	Location   types.String `tfsdk:"location"`
	ID         types.String `tfsdk:"id" is:"What it is called in the API, which is what volumes of Kubernetes take."`
	Status     types.String `tfsdk:"status" is:"How it stands, in the API's word."`
	Type       types.String `tfsdk:"type" is:"Its type, such as pd-balanced."`
	Size       types.Int64  `tfsdk:"size_gb" is:"Size in GiB."`
	AccessMode types.String `tfsdk:"access_mode" is:"Of a Hyperdisk: who may attach it."`
	IOPS       types.Int64  `tfsdk:"iops" is:"Operations a second that are provisioned."`
	Throughput types.Int64  `tfsdk:"throughput" is:"MiB a second that are provisioned."`
	Labels     types.Map    `tfsdk:"labels" is:"Labels, without Google's own."`
	Users      []string     `tfsdk:"users" is:"Machines that it is attached to."`
}

func (*diskFound) looksFor() (name, description string) {
	return "disk", "A persistent disk or Hyperdisk that something else has made."
}

func (*diskFound) arguments() map[string]schema.Attribute {
	return located(map[string]schema.Attribute{"name": requiredArgument("Its name.")})
}

func (m *diskFound) location() string { return m.Project.ValueString() }

func (m *diskFound) find(ctx context.Context, j job) error {
	d := &diskModel{Name: m.Name, Project: m.Project, Location: m.Location}
	d.settle(j)
	if !isGiven(d.Location) {
		reportNoLocation(j.diags, "location")
		return nil
	}
	there, err := d.get(ctx, j.cloud)
	if err != nil {
		return err
	}
	if there == nil {
		return absent("disk", d.path(j.cloud.Project))
	}
	d.show(j.cloud, there)
	m.Project, m.Location, m.ID, m.Status, m.Type, m.Size = d.Project, d.Location, d.ID, d.Status, d.Type, d.Size
	m.AccessMode, m.IOPS, m.Throughput, m.Labels = d.AccessMode, d.IOPS, d.Throughput, d.Labels
	m.Users = []string{}
	for _, u := range there.Users {
		m.Users = append(m.Users, last(u))
	}
	return nil
}
