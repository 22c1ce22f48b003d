package gke

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
)

// clusterModel is the value of a gke_cluster.
type clusterModel struct {
	ID        types.String   `tfsdk:"id"`
	Project   types.String   `tfsdk:"project"`
	Status    types.String   `tfsdk:"status"`
	AllLabels types.Map      `tfsdk:"effective_labels"`
	Timeouts  timeouts.Value `tfsdk:"timeouts"`

	Name               types.String `tfsdk:"name"`
	Location           types.String `tfsdk:"location"`
	NodeLocations      types.Set    `tfsdk:"node_locations"`
	Network            types.String `tfsdk:"network"`
	Subnetwork         types.String `tfsdk:"subnetwork"`
	NetworkProject     types.String `tfsdk:"network_project"`
	PodsRange          types.String `tfsdk:"pods_range"`
	ServicesRange      types.String `tfsdk:"services_range"`
	PodsCIDR           types.String `tfsdk:"pods_cidr"`
	ServicesCIDR       types.String `tfsdk:"services_cidr"`
	ReleaseChannel     types.String `tfsdk:"release_channel"`
	Version            types.String `tfsdk:"version"`
	MasterVersion      types.String `tfsdk:"master_version"`
	PrivateNodes       types.Bool   `tfsdk:"private_nodes"`
	Endpoint           types.String `tfsdk:"endpoint"`
	AuthorizedNetworks types.Set    `tfsdk:"authorized_networks"`
	GoogleCloud        types.Bool   `tfsdk:"authorized_google_cloud"`
	DNSEndpoint        types.Bool   `tfsdk:"dns_endpoint"`
	PublicEndpoint     types.Bool   `tfsdk:"public_endpoint"`
	IPEndpoints        types.Bool   `tfsdk:"ip_endpoints"`
	WorkloadIdentity   types.Bool   `tfsdk:"workload_identity"`
	FilestoreCSI       types.Bool   `tfsdk:"filestore_csi"`
	GCSFuseCSI         types.Bool   `tfsdk:"gcs_fuse_csi"`
	DiskCSI            types.Bool   `tfsdk:"disk_csi"`
	ShieldedNodes      types.Bool   `tfsdk:"shielded_nodes"`
	Logging            types.Set    `tfsdk:"logging"`
	Monitoring         types.Set    `tfsdk:"monitoring"`
	MaintenanceWindow  types.Object `tfsdk:"maintenance_window"`
	Exclusions         types.Map    `tfsdk:"maintenance_exclusions"`
	Labels             types.Map    `tfsdk:"labels"`
	DeletionProtection types.Bool   `tfsdk:"deletion_protection"`
	ServiceAccount     types.String `tfsdk:"node_service_account"`
	CloudObjects       types.Set    `tfsdk:"destroy_cloud_objects"`

	BootstrapPool types.Bool   `tfsdk:"bootstrap_pool"`
	Access        types.Object `tfsdk:"access"`
	Kubeconfig    types.String `tfsdk:"kubeconfig"`
}

func (m *clusterModel) kind() kind {
	return kind{name: "cluster", what: "Cluster", limit: 60 * time.Minute, schema: clusterSchema, unfinished: []string{"PROVISIONING", "RECONCILING"}, failed: []string{"ERROR"}}
}

func (m *clusterModel) head() head {
	return head{&m.ID, &m.Project, &m.Status, m.Timeouts, &m.Labels, &m.AllLabels}
}

// markUnknown has a plan leave open what a cluster that is being made does not say yet.
func (m *clusterModel) markUnknown(ctx context.Context, prior *clusterModel) {
	if c, known := connect.StoredConnection(ctx, prior.Access); known && (c == nil || c.Endpoint == "") && slices.Contains(m.kind().unfinished, prior.Status.ValueString()) {
		m.Access, m.Kubeconfig = types.ObjectUnknown(prior.Access.AttributeTypes(ctx)), types.StringUnknown()
	}
}

// noteDestroy adds notes to a plan that destroys a cluster.
func (m *clusterModel) noteDestroy(diags *diag.Diagnostics) {
	if m.DeletionProtection.ValueBool() {
		keeps(m.kind().what, diags)
	}
}

// path is the cluster's name in the container API.
func (m *clusterModel) path(project string) string {
	return fmt.Sprintf("projects/%s/locations/%s/clusters/%s", project, m.Location.ValueString(), m.Name.ValueString())
}

func clusterSchema(context.Context) schema.Schema {
	return endpointsSchema(clusterAttributes())
}

// endpointsSchema adds the arguments that open and close endpoints.
func endpointsSchema(s schema.Schema) schema.Schema {
	s.Attributes["authorized_google_cloud"] = serversFlag("Whether the public addresses of Google Cloud, " +
		"which machines of any project may have, pass authorized_networks. It needs authorized_networks. Google's choice is true.")
	s.Attributes["dns_endpoint"] = serversFlag("Whether the API server is reached by Google's name for it from outside of the network. " +
		"endpoint = \"dns\" opens it, another endpoint leaves it open, and false closes it.")
	s.Attributes["public_endpoint"] = serversFlag("Whether the API server has a public address. " +
		"false leaves the private one and the DNS endpoint.")
	s.Attributes["ip_endpoints"] = serversFlag("Whether the API server has addresses at all. false leaves the DNS endpoint only.")
	return s
}

func networksSchema() schema.SetAttribute {
	return optionalSet("Ranges of addresses that may reach the IP endpoints. Machines on Google Cloud, of any project, " +
		"may reach them too, unless authorized_google_cloud is false. The DNS endpoint has no such ranges: IAM guards it. " +
		"While none are declared, networks that were set elsewhere stay; without the argument again, every address may reach the public endpoint.")
}

func clusterAttributes() schema.Schema {
	access := connect.Result("Connection for the argument cluster of the providers kube and train. It describes " +
		"how to get a token and holds none.")
	access.PlanModifiers = []planmodifier.Object{accessKept{}}
	return schema.Schema{
		Description: "A GKE cluster of the kind Standard, zonal or regional. The API wants a node pool with every cluster: it is made with one small pool, which the first gke_node_pool takes away once a pool of processors runs without taints. " +
			"An argument that is left out is Google's choice and never a difference; an argument that is removed from " +
			"the configuration leaves the cluster as it is, except labels, authorized_networks and the maintenance " +
			"arguments, which are removed.",
		Attributes: map[string]schema.Attribute{
			"name":           requiredName("Its name.", 40),
			"location":       serversFixed("A zone, or a region for a regional cluster. Default: zone or region of the provider."),
			"node_locations": serversSet("Zones of the nodes of pools that name none. Google gives the zones of a change to all pools: nodes come and go as the plan says. A plan that would move a pool with zones of its own, or delete nodes with local SSDs, is refused."),
			"network": referenceAttribute(servers("VPC network, by name. Default: default."), samePlace,
				"network_project", "project"),
			"network_project": serversFixed("Host project of the network, where it is a Shared VPC. It needs network and subnetwork. Default: the cluster's own project."),
			"subnetwork": referenceAttribute(servers("Subnetwork of the nodes, by name or in full."), samePlace,
				"network_project", "project"),
			"pods_range":          serversFixed("Name of the subnetwork's secondary range for pods."),
			"services_range":      serversFixed("Name of the subnetwork's secondary range for services."),
			"pods_cidr":           referenceAttribute(servers(`Addresses of the pods, such as "10.8.0.0/14" or "/14".`), sameRange),
			"services_cidr":       referenceAttribute(servers("Addresses of the services."), sameRange),
			"release_channel":     servers("RAPID, REGULAR, STABLE, EXTENDED, or NONE. With a channel Google upgrades the cluster by itself."),
			"version":             schema.StringAttribute{Optional: true, Description: `Least version of the control plane, such as "1.35" or "1.35.2-gke.1000". Anything newer will do: nothing is ever downgraded, and an upgrade by Google is not a difference.`},
			"master_version":      schema.StringAttribute{Computed: true, Description: "Version that the control plane has."},
			"private_nodes":       serversFlag("Whether nodes have no public addresses. They then need Cloud NAT to reach registries outside of Google."),
			"endpoint":            schema.StringAttribute{Optional: true, Description: "How access leads to the API server: dns (by Google's name for it, which works for private clusters too, and which this opens), public or private. Default: public."},
			"authorized_networks": networksSchema(),
			"workload_identity":   serversFlag("Whether pods can act as Google service accounts."),
			"filestore_csi":       serversFlag("Whether volumes can be Filestore shares."),
			"gcs_fuse_csi":        serversFlag("Whether volumes can be buckets."),
			"disk_csi":            serversFlag("Whether volumes can be persistent disks. Google makes clusters that way; false is an update after the create."),
			"shielded_nodes":      serversFlag("Whether nodes prove what they are when they join."),
			"logging": serversSet("Components with logs: SYSTEM_COMPONENTS, WORKLOADS, APISERVER, " +
				"SCHEDULER, CONTROLLER_MANAGER. [] is nothing."),
			"monitoring": serversSet("Components with metrics: SYSTEM_COMPONENTS, DCGM for GPUs, POD, " +
				"DEPLOYMENT and others. [] is nothing."),
			"maintenance_window":     windowSchema(),
			"maintenance_exclusions": exclusionSchema(),
			"labels":                 optionalLabels("Labels. Google's own are left alone."),
			"deletion_protection":    schema.BoolAttribute{Optional: true, Description: "Whether destroying the cluster, or replacing it, is refused. Default: false."},
			"node_service_account":   schema.StringAttribute{Optional: true, Description: "Service account of the first pool's node, when the cluster is made. Default: the project's default one, which many projects have deleted."},
			"destroy_cloud_objects": optionalSet("Cloud objects made by the cluster that a destroy deletes first: " +
				"load_balancers (Services), ingresses, gateways, volumes (of claims whose volumes have the reclaim policy " +
				"Delete, with all data). Other kinds stay and are billed; the destroy lists them. It takes effect when it has been applied."),
			"bootstrap_pool": schema.BoolAttribute{Computed: true, Description: "Whether the cluster still has the pool that it was created with.", PlanModifiers: []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()}},
			"access":         access,
			"kubeconfig":     schema.StringAttribute{Computed: true, Description: "A kubeconfig for kubectl, which gets its tokens from gke-gcloud-auth-plugin."},
		},
	}
}

// parseImportID implements model: PROJECT/LOCATION/NAME, LOCATION/NAME, NAME, or the path.
func (m *clusterModel) parseImportID(j job, id string) (map[string]string, error) {
	project, location, name, err := place(j, id, "clusters")
	return map[string]string{"project": project, "location": location, "name": name}, err
}

// place parses the import id of an object in a location.
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
	m.checkMaintenance(j)
	m.checkNetwork(ctx, j, prior)
	if prior == nil {
		m.MasterVersion = types.StringUnknown()
		// The pools of a new cluster are checked with it. The id of a replaced cluster stays unknown: its
		// pools are replaced, too.
		if replaced := providers.CallFrom(ctx).Replaces; (replaced == cty.NilVal || replaced.IsNull()) &&
			m.ID.IsUnknown() && isGiven(m.Name) && isGiven(m.Location) && isGiven(m.Project) {
			m.ID = types.StringValue(m.path(m.Project.ValueString()))
		}
		return
	}
	m.checkVersion(ctx, prior)
	m.checkStep(j, prior)
	m.checkZones(ctx, j, prior)
	if !m.Endpoint.IsUnknown() && firstNonEmpty(m.Endpoint.ValueString(),
		"public") == firstNonEmpty(prior.Endpoint.ValueString(), "public") {
		m.Kubeconfig = prior.Kubeconfig
	}
	m.markUnknown(ctx, prior)
}

// place fills in where things are that name no place.
func (m *clusterModel) place(j job) {
	if m.Project.IsUnknown() && j.omitted("project") {
		m.Project = types.StringValue(j.cloud.Project)
	}
	if m.Location.IsUnknown() && j.omitted("location") && j.cloud.Location() != "" {
		m.Location = types.StringValue(j.cloud.Location())
	}
}

// checkVersion plans an upgrade if the control plane is older than declared,
// and nothing else: an upgrade by Google is not a difference.
func (m *clusterModel) checkVersion(ctx context.Context, prior *clusterModel) {
	m.MasterVersion = prior.MasterVersion
	if outdated(prior.MasterVersion, m.Version) {
		m.MasterVersion = types.StringUnknown()
		return
	}
	upgraded(ctx, "control plane", m.Version, prior.MasterVersion)
}

// outdated reports whether the observed version is below a least one.
func outdated(is, least types.String) bool {
	return isGiven(is) && least.ValueString() != "" && older(is.ValueString(), least.ValueString())
}

// upgraded notes that Google has gone beyond a declared version. This is not a
// difference.
func upgraded(ctx context.Context, what string, least, is types.String) {
	if least.ValueString() != "" && isGiven(is) && isNewer(is.ValueString(), least.ValueString()) {
		providers.CallFrom(ctx).AddNote(providers.Note{Kind: providers.NoteFact, Text: fmt.Sprintf("The %s has been upgraded to %s; version %s is a least one.", what, is.ValueString(), least.ValueString())})
	}
}

// isNewer reports whether a version is above a least one in a part that the least
// one has.
func isNewer(is, least string) bool {
	a, b := numbers(is), numbers(least)
	return slices.Compare(a[:min(len(a), len(b))], b) > 0
}

// older reports whether a version is below a least one, which may have fewer
// parts.
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
		n, _ := strconv.Atoi(part) // digits
		all = append(all, n)
	}
	return all
}
