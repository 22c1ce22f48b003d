package gke

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/gke/cloud"
)

// read is that of model.
func (m *clusterModel) read(ctx context.Context, j job) (bool, string, error) {
	m.place(j)
	k, err := m.get(ctx, j.cloud)
	if k == nil || err != nil {
		return false, "", err
	}
	m.take(j, k)
	m.readAccess(ctx, j, k)
	return true, k.GetResourceLabels()[cloud.Mark], nil
}

// take sets the model to the observed cluster, except for the connection. An
// object that is imported has no id yet: of that, all is taken that may be
// declared.
func (m *clusterModel) take(j job, k *containerpb.Cluster) {
	imported := m.ID.IsNull()
	m.ID, m.Status = types.StringValue(m.path(j.cloud.Project)), types.StringValue(k.GetStatus().String())
	m.NodeLocations = setOf(k.GetLocations())
	m.NetworkProject = types.StringValue(firstNonEmpty(projectIn(k.GetNetworkConfig().GetNetwork()), j.cloud.Project))
	m.Network, m.Subnetwork = link(m.Network, firstNonEmpty(k.GetNetworkConfig().GetNetwork(), k.GetNetwork())), link(m.Subnetwork, firstNonEmpty(k.GetNetworkConfig().GetSubnetwork(), k.GetSubnetwork()))
	ip := k.GetIpAllocationPolicy()
	m.PodsRange, m.ServicesRange = textOrNull(ip.GetClusterSecondaryRangeName()), textOrNull(ip.GetServicesSecondaryRangeName())
	m.PodsCIDR, m.ServicesCIDR = cidr(m.PodsCIDR, ip.GetClusterIpv4CidrBlock()), cidr(m.ServicesCIDR, ip.GetServicesIpv4CidrBlock())
	if m.MasterVersion = types.StringValue(k.GetCurrentMasterVersion()); imported && outdated(m.MasterVersion, m.Version) {
		m.Version = types.StringNull()
	}
	m.ReleaseChannel = types.StringValue("NONE")
	if ch := k.GetReleaseChannel().GetChannel(); ch != containerpb.ReleaseChannel_UNSPECIFIED {
		m.ReleaseChannel = types.StringValue(ch.String())
	}
	m.PrivateNodes = types.BoolValue(k.GetNetworkConfig().GetDefaultEnablePrivateNodes() || k.GetPrivateClusterConfig().GetEnablePrivateNodes()) // older clusters have only this
	m.readNetworks(k, imported)
	if m.readEndpoints(k); imported {
		m.chooseEndpoint()
	}
	m.WorkloadIdentity = types.BoolValue(k.GetWorkloadIdentityConfig().GetWorkloadPool() != "")
	a := k.GetAddonsConfig()
	m.FilestoreCSI, m.GCSFuseCSI = types.BoolValue(a.GetGcpFilestoreCsiDriverConfig().GetEnabled()), types.BoolValue(a.GetGcsFuseCsiDriverConfig().GetEnabled())
	m.DiskCSI = types.BoolValue(a.GetGcePersistentDiskCsiDriverConfig().GetEnabled())
	m.ShieldedNodes = types.BoolValue(k.GetShieldedNodes().GetEnabled())
	m.Logging = setOf(components(k.GetLoggingConfig().GetComponentConfig().GetEnableComponents()))
	m.Monitoring = setOf(components(k.GetMonitoringConfig().GetComponentConfig().GetEnableComponents()))
	m.readMaintenance(k.GetMaintenancePolicy(), imported)
	m.head().readLabels(j.cloud, k.GetResourceLabels())
	m.BootstrapPool = types.BoolValue(slices.ContainsFunc(k.GetNodePools(), ours))
}

// ours reports whether a pool is the pool that the cluster was created with.
func ours(p *containerpb.NodePool) bool {
	return p.GetName() == bootstrap && p.GetConfig().GetResourceLabels()[cloud.Mark] != ""
}

// projectIn is the project in a path such as projects/p/global/networks/n.
func projectIn(path string) string {
	if parts := strings.Split(path, "/"); len(parts) > 1 && parts[0] == "projects" {
		return parts[1]
	}
	return ""
}

func components[C fmt.Stringer](all []C) []string {
	out := []string{}
	for _, c := range all {
		out = append(out, c.String())
	}
	slices.Sort(out)
	return out
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// cidr keeps a declared size such as "/14", where Google chose the addresses.
func cidr(was types.String, now string) types.String {
	if s := was.ValueString(); strings.HasPrefix(s, "/") && strings.HasSuffix(now, s) {
		return was
	}
	return textOrNull(now)
}

// readNetworks ignores networks set outside of stoke, unless the argument is
// declared.
func (m *clusterModel) readNetworks(k *containerpb.Cluster, imported bool) {
	if m.AuthorizedNetworks.IsNull() && !imported {
		return
	}
	networks := k.GetControlPlaneEndpointsConfig().GetIpEndpointsConfig().GetAuthorizedNetworksConfig()
	if networks == nil {
		networks = k.GetMasterAuthorizedNetworksConfig() // older clusters have only this
	}
	if !networks.GetEnabled() {
		m.AuthorizedNetworks = types.SetNull(types.StringType)
		return
	}
	all := []string{}
	for _, b := range networks.GetCidrBlocks() {
		all = append(all, b.GetCidrBlock())
	}
	m.AuthorizedNetworks = setOf(all)
}

// readEndpoints reads which endpoints are open. An older answer lacks them: their IP endpoints are.
func (m *clusterModel) readEndpoints(k *containerpb.Cluster) {
	e := k.GetControlPlaneEndpointsConfig()
	ip := e.GetIpEndpointsConfig()
	m.DNSEndpoint = types.BoolValue(e.GetDnsEndpointConfig().GetAllowExternalTraffic())
	m.IPEndpoints = types.BoolValue(ip == nil || ip.Enabled == nil || ip.GetEnabled())
	if m.IPEndpoints.ValueBool() || !isGiven(m.PublicEndpoint) { // a closed public address says nothing
		open := ip == nil || ip.EnablePublicEndpoint == nil || ip.GetEnablePublicEndpoint()
		m.PublicEndpoint = types.BoolValue(open)
	}
	networks := ip.GetAuthorizedNetworksConfig()
	m.GoogleCloud = types.BoolValue(!networks.GetEnabled() || networks.GcpPublicCidrsAccessEnabled == nil ||
		networks.GetGcpPublicCidrsAccessEnabled())
}

// chooseEndpoint names an open endpoint for the connection of an imported cluster, where none is declared and
// the default, the public address, is closed.
func (m *clusterModel) chooseEndpoint() {
	switch {
	case !m.Endpoint.IsNull() || m.IPEndpoints.ValueBool() && m.PublicEndpoint.ValueBool():
	case m.DNSEndpoint.ValueBool():
		m.Endpoint = types.StringValue("dns")
	default:
		m.Endpoint = types.StringValue("private")
	}
}

// reached is how long the cluster may take to say which it is.
const reached = 10 * time.Second

// readAccess makes the connection. The API server identifies the cluster: if it
// cannot be reached, the next read tries again, and the old identity is kept.
func (m *clusterModel) readAccess(ctx context.Context, j job, k *containerpb.Cluster) {
	was, _ := connect.StoredConnection(ctx, m.Access)
	c := connect.Connection{Credential: connect.Credential{Google: &connect.Google{CredentialsFile: j.credentials, Impersonate: j.cloud.Impersonate}}}
	if was != nil {
		c.ID = was.ID
	}
	host := k.GetEndpoint()
	switch m.Endpoint.ValueString() {
	case "dns":
		host = k.GetControlPlaneEndpointsConfig().GetDnsEndpointConfig().GetEndpoint()
	case "private":
		host = firstNonEmpty(k.GetControlPlaneEndpointsConfig().GetIpEndpointsConfig().GetPrivateEndpoint(), k.GetPrivateClusterConfig().GetPrivateEndpoint()) // older clusters have only this
	}
	if host != "" {
		c.Endpoint = "https://" + host
	}
	if m.Endpoint.ValueString() != "dns" { // its certificate is a public one
		ca, err := base64.StdEncoding.DecodeString(k.GetMasterAuth().GetClusterCaCertificate())
		if err != nil {
			j.diags.AddAttributeWarning(path.Root("access"), "Certificate of the cluster cannot be read", sentence(err))
		}
		c.CA = string(ca)
	}
	if was != nil && (was.Endpoint != c.Endpoint || was.CA != c.CA) {
		c.ID = "" // at another address, or with another certificate, it may be another one
	}
	if c.ID == "" && c.Endpoint != "" && k.GetStatus() == containerpb.Cluster_RUNNING {
		ctx, cancel := context.WithTimeout(ctx, reached)
		defer cancel()
		ctx, stop := j.cloud.Stoppable(ctx)
		defer stop()
		if client, err := j.clusters.Get(ctx, c); err == nil {
			c.ID = client.ID
		} else {
			j.diags.AddAttributeWarning(path.Root("access"), "Cluster cannot be reached", "Which cluster it is (access.id) is filled in once its API server can be reached: "+sentence(err))
		}
	}
	object, diags := c.Object(ctx)
	j.diags.Append(diags...)
	m.Access = object
	m.Kubeconfig = types.StringValue(kubeconfig(m.Name.ValueString(), c))
}

func kubeconfig(name string, c connect.Connection) string {
	ca := ""
	if c.CA != "" {
		ca = "\n    certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte(c.CA))
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: %[1]s
clusters:
- name: %[1]s
  cluster:
    server: %[2]s%[3]s
contexts:
- name: %[1]s
  context: {cluster: %[1]s, user: %[1]s}
users:
- name: %[1]s
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      command: gke-gcloud-auth-plugin
      interactiveMode: IfAvailable
      provideClusterInfo: true
`, name, c.Endpoint, ca)
}

// accessKept keeps the connection while the cluster is updated, unless the
// argument for the endpoint changes.
type accessKept struct{}

func (accessKept) Description(context.Context) string { return "An update keeps the connection." }

func (a accessKept) MarkdownDescription(ctx context.Context) string { return a.Description(ctx) }

// PlanModifyObject is that of planmodifier.Object.
func (accessKept) PlanModifyObject(ctx context.Context, req planmodifier.ObjectRequest, resp *planmodifier.ObjectResponse) {
	if req.StateValue.IsNull() || req.State.Raw.IsNull() {
		return
	}
	var was, now types.String
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("endpoint"), &was)...)
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("endpoint"), &now)...)
	if !now.IsUnknown() && firstNonEmpty(was.ValueString(), "public") == firstNonEmpty(now.ValueString(), "public") {
		resp.PlanValue = req.StateValue
	}
}
