package gke

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
)

// clusterModel is the value of a gke_cluster.
type clusterModel struct {
	ID       types.String   `tfsdk:"id"`
	Project  types.String   `tfsdk:"project"`
	Status   types.String   `tfsdk:"status"`
	Timeouts timeouts.Value `tfsdk:"timeouts"`

	Name               types.String            `tfsdk:"name"`
	Location           types.String            `tfsdk:"location"`
	NodeLocations      types.Set               `tfsdk:"node_locations"`
	Network            types.String            `tfsdk:"network"`
	Subnetwork         types.String            `tfsdk:"subnetwork"`
	PodsRange          types.String            `tfsdk:"pods_range"`
	ServicesRange      types.String            `tfsdk:"services_range"`
	PodsCIDR           types.String            `tfsdk:"pods_cidr"`
	ServicesCIDR       types.String            `tfsdk:"services_cidr"`
	ReleaseChannel     types.String            `tfsdk:"release_channel"`
	Version            types.String            `tfsdk:"version"`
	MasterVersion      types.String            `tfsdk:"master_version"`
	PrivateNodes       types.Bool              `tfsdk:"private_nodes"`
	Endpoint           types.String            `tfsdk:"endpoint"`
	AuthorizedNetworks types.Set               `tfsdk:"authorized_networks"`
	WorkloadIdentity   types.Bool              `tfsdk:"workload_identity"`
	FilestoreCSI       types.Bool              `tfsdk:"filestore_csi"`
	GCSFuseCSI         types.Bool              `tfsdk:"gcs_fuse_csi"`
	DiskCSI            types.Bool              `tfsdk:"disk_csi"`
	ShieldedNodes      types.Bool              `tfsdk:"shielded_nodes"`
	Logging            types.Set               `tfsdk:"logging"`
	Monitoring         types.Set               `tfsdk:"monitoring"`
	MaintenanceWindow  *windowModel            `tfsdk:"maintenance_window"`
	Exclusions         map[string]excludeModel `tfsdk:"maintenance_exclusions"`
	Labels             types.Map               `tfsdk:"labels"`
	DeletionProtection types.Bool              `tfsdk:"deletion_protection"`
	ServiceAccount     types.String            `tfsdk:"node_service_account"`

	BootstrapPool types.Bool   `tfsdk:"bootstrap_pool"`
	Access        types.Object `tfsdk:"access"`
	Kubeconfig    types.String `tfsdk:"kubeconfig"`
}

// windowModel is when upgrades may happen.
type windowModel struct {
	Start      types.String `tfsdk:"start"`
	End        types.String `tfsdk:"end"`
	Recurrence types.String `tfsdk:"recurrence"`
}

// excludeModel is when they may not.
type excludeModel struct {
	Start types.String `tfsdk:"start"`
	End   types.String `tfsdk:"end"`
	Scope types.String `tfsdk:"scope"`
}

func (m *clusterModel) kind() kind {
	return kind{name: "cluster", what: "Cluster", limit: 60 * time.Minute, schema: clusterSchema, unfinished: []string{"PROVISIONING", "RECONCILING"}}
}

func (m *clusterModel) head() head { return head{&m.ID, &m.Project, &m.Status, m.Timeouts} }

// unread has a plan leave open what a cluster that is being made does not say yet.
func (m *clusterModel) unread(ctx context.Context, prior *clusterModel) {
	if prior.Status.ValueString() == containerpb.Cluster_PROVISIONING.String() {
		m.Access, m.Kubeconfig = types.ObjectUnknown(prior.Access.AttributeTypes(ctx)), types.StringUnknown()
	}
}

// doomed is said of a cluster that is to be destroyed.
func (m *clusterModel) doomed(diags *diag.Diagnostics) {
	if m.DeletionProtection.ValueBool() {
		diags.AddAttributeError(path.Root("deletion_protection"), "Cluster is protected", "deletion_protection is true: set it to false, apply, and destroy then.")
	}
}

// path is the cluster's name in the container API.
func (m *clusterModel) path(project string) string {
	return fmt.Sprintf("projects/%s/locations/%s/clusters/%s", project, m.Location.ValueString(), m.Name.ValueString())
}

func clusterSchema(context.Context) schema.Schema {
	access := connect.Result("Connection for the argument cluster of the providers kube and train. It says how to get a token and holds none.")
	access.PlanModifiers = []planmodifier.Object{accessKept{}}
	return schema.Schema{
		Description: "A GKE cluster of the kind Standard, zonal or regional. The API wants a node pool with every cluster: it is made with one small pool, which the first gke_node_pool takes away once a pool of processors runs without taints. " +
			"An argument that is left out is Google's choice and never a difference; one that is taken out of the configuration leaves things as they are, but for labels, authorized_networks and the maintenance arguments, which are taken away.",
		Attributes: map[string]schema.Attribute{
			"name":                   requiredFixed("Its name."),
			"location":               serversFixed("A zone, or a region for a regional cluster. Default: zone or region of the provider."),
			"node_locations":         serversSet("Zones of the nodes of pools that name none."),
			"network":                serversFixed("VPC network, by name or, of a Shared VPC, as projects/PROJECT/global/networks/NAME. Default: default."),
			"subnetwork":             serversFixed("Subnetwork of the nodes, by name or in full."),
			"pods_range":             serversFixed("Name of the subnetwork's secondary range for pods."),
			"services_range":         serversFixed("Name of the subnetwork's secondary range for services."),
			"pods_cidr":              serversFixed(`Addresses of the pods, such as "10.8.0.0/14" or "/14".`),
			"services_cidr":          serversFixed("Addresses of the services."),
			"release_channel":        servers("RAPID, REGULAR, STABLE, EXTENDED, or NONE. With a channel Google upgrades the cluster by itself."),
			"version":                schema.StringAttribute{Optional: true, Description: `Least version of the control plane, such as "1.35" or "1.35.2-gke.1000". Anything newer will do: nothing is ever downgraded, and an upgrade by Google is no difference.`},
			"master_version":         schema.StringAttribute{Computed: true, Description: "Version that the control plane has."},
			"private_nodes":          serversFlag("Whether nodes have no public addresses. They then need Cloud NAT to reach registries outside of Google."),
			"endpoint":               schema.StringAttribute{Optional: true, Description: "How access leads to the API server: dns (by Google's name for it, which works for private clusters too, and which this opens), public or private. Default: public."},
			"authorized_networks":    optionalSet("Ranges of addresses that may reach the public endpoint. Default: all."),
			"workload_identity":      serversFlag("Whether pods can act as service accounts of Google's."),
			"filestore_csi":          serversFlag("Whether volumes can be Filestore shares."),
			"gcs_fuse_csi":           serversFlag("Whether volumes can be buckets."),
			"disk_csi":               serversFlag("Whether volumes can be persistent disks. Google sets it by itself."),
			"shielded_nodes":         serversFlag("Whether nodes prove what they are when they join."),
			"logging":                serversSet("What logs are kept of: SYSTEM_COMPONENTS, WORKLOADS, APISERVER, SCHEDULER, CONTROLLER_MANAGER. [] is nothing."),
			"monitoring":             serversSet("What is measured: SYSTEM_COMPONENTS, DCGM for GPUs, POD, DEPLOYMENT and others. [] is nothing."),
			"maintenance_window":     windowSchema(),
			"maintenance_exclusions": exclusionSchema(),
			"labels":                 optionalMap("Labels. Google's own are left alone."),
			"deletion_protection":    schema.BoolAttribute{Optional: true, Description: "Whether destroying the cluster, or replacing it, is refused. Default: false."},
			"node_service_account":   schema.StringAttribute{Optional: true, Description: "Service account of the first pool's node, when the cluster is made. Default: the project's default one, which many projects have deleted."},
			"bootstrap_pool":         schema.BoolAttribute{Computed: true, Description: "Whether the pool is there that the cluster was made with.", PlanModifiers: []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()}},
			"access":                 access,
			"kubeconfig":             schema.StringAttribute{Computed: true, Description: "A kubeconfig for kubectl, which gets its tokens from gke-gcloud-auth-plugin."},
		},
	}
}

func windowSchema() schema.Attribute {
	return schema.SingleNestedAttribute{Optional: true, Description: "When Google may upgrade things.", Attributes: map[string]schema.Attribute{
		"start":      schema.StringAttribute{Required: true, Description: `Beginning of the first window, such as "2026-01-03T02:00:00Z".`},
		"end":        schema.StringAttribute{Required: true, Description: "End of the first window."},
		"recurrence": schema.StringAttribute{Required: true, Description: `How it comes back, such as "FREQ=WEEKLY;BYDAY=SA,SU".`},
	}}
}

func exclusionSchema() schema.Attribute {
	return schema.MapNestedAttribute{Optional: true, Description: "When it may not, by name.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
		"start": schema.StringAttribute{Required: true, Description: "Beginning."},
		"end":   schema.StringAttribute{Required: true, Description: "End."},
		"scope": schema.StringAttribute{Optional: true, Description: "NO_UPGRADES, which is the default, NO_MINOR_UPGRADES, or NO_MINOR_OR_NODE_UPGRADES."},
	}}}
}

// named is that of model: PROJECT/LOCATION/NAME, LOCATION/NAME, NAME, or the path.
func (m *clusterModel) named(j job, id string) (map[string]string, error) {
	project, location, name, err := place(j, id, "clusters")
	return map[string]string{"project": project, "location": location, "name": name}, err
}

// place takes an import's id apart, of something that lies in a location.
func place(j job, id, collection string) (project, location, name string, err error) {
	project, location = j.cloud.Project, j.cloud.Location()
	parts := strings.Split(strings.Trim(id, "/"), "/")
	switch {
	case len(parts) == 6 && parts[0] == "projects" && parts[4] == collection:
		return parts[1], parts[3], parts[5], nil
	case len(parts) == 3:
		return parts[0], parts[1], parts[2], nil
	case len(parts) == 2:
		return project, parts[0], parts[1], nil
	case len(parts) == 1 && location != "" && parts[0] != "":
		return project, location, parts[0], nil
	}
	return "", "", "", fmt.Errorf("%q names no place: give PROJECT/LOCATION/NAME, LOCATION/NAME, or projects/PROJECT/locations/LOCATION/%s/NAME", id, collection)
}

// check is that of model.
func (m *clusterModel) check(ctx context.Context, j job, prior *clusterModel) {
	m.place(j)
	m.checkChoices(j)
	if prior == nil {
		m.MasterVersion = types.StringUnknown()
		return
	}
	m.checkVersion(prior)
	if either(m.Endpoint.ValueString(), "public") == either(prior.Endpoint.ValueString(), "public") {
		m.Kubeconfig = prior.Kubeconfig
	}
	m.unread(ctx, prior)
}

// place fills in where things are that name no place.
func (m *clusterModel) place(j job) {
	if m.Project.IsUnknown() {
		m.Project = types.StringValue(j.cloud.Project)
	}
	if m.Location.IsUnknown() && j.cloud.Location() != "" {
		m.Location = types.StringValue(j.cloud.Location())
	}
}

// checkVersion plans an upgrade where the control plane is older than declared,
// and nothing else: an upgrade by Google is no difference.
func (m *clusterModel) checkVersion(prior *clusterModel) {
	m.MasterVersion = prior.MasterVersion
	if v := m.Version.ValueString(); v != "" && prior.MasterVersion.ValueString() != "" && older(prior.MasterVersion.ValueString(), v) {
		m.MasterVersion = types.StringUnknown()
	}
}

// older tells whether a version is below a least one, which may have fewer parts.
func older(is, least string) bool {
	a, b := numbers(is), numbers(least)
	for i, want := range b {
		if i >= len(a) || a[i] < want {
			return true
		}
		if a[i] > want {
			return false
		}
	}
	return false
}

// numbers are those in a version: "1.35.2-gke.1000" has 1, 35, 2 and 1000.
func numbers(version string) []int {
	var all []int
	for _, part := range strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' }) {
		n := 0
		if _, err := fmt.Sscan(strings.TrimLeft(part, "0")+"", &n); err != nil {
			n = 0
		}
		all = append(all, n)
	}
	return all
}
