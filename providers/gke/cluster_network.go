package gke

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	compute "google.golang.org/api/compute/v1"
)

// sharedName is the full name of something of a network, where a Shared VPC has it.
func (m *clusterModel) sharedName(below string, name types.String) string {
	if host := m.NetworkProject.ValueString(); host != "" && name.ValueString() != "" && !strings.Contains(name.ValueString(), "/") {
		return "projects/" + host + "/" + below + name.ValueString()
	}
	return name.ValueString()
}

// checkNetwork looks at what a cluster's network lacks.
func (m *clusterModel) checkNetwork(ctx context.Context, j job, prior *clusterModel) {
	if prior != nil && !prior.AuthorizedNetworks.IsNull() && m.AuthorizedNetworks.IsNull() {
		j.diags.AddAttributeWarning(path.Root("authorized_networks"), "All addresses will reach the API server",
			fmt.Sprintf("authorized_networks was %s and is taken out: the public endpoint then answers every address. Keep the argument to keep the limits.", strings.Join(list(prior.AuthorizedNetworks), ", ")))
	}
	if prior == nil && isGiven(m.NetworkProject) && m.NetworkProject.ValueString() != j.cloud.Project && (j.omitted("network") || j.omitted("subnetwork")) {
		j.diags.AddAttributeError(path.Root("network_project"), "Shared VPC without a network", "Give network and subnetwork, which the host project has to share with this one.")
	}
	for name, of := range map[string]types.String{"network": m.Network, "subnetwork": m.Subnetwork} {
		if p := projectIn(of.ValueString()); p != "" && !j.omitted(name) && isGiven(m.NetworkProject) &&
			p != m.NetworkProject.ValueString() {
			j.diags.AddAttributeError(path.Root(name), "Network is in another project", fmt.Sprintf("%s says the project %s, and the network is one of %s. Correct it, or set network_project.", name, p, m.NetworkProject.ValueString()))
		}
	}
	if m.PrivateNodes.ValueBool() && (prior == nil || !prior.PrivateNodes.ValueBool()) {
		m.checkNAT(ctx, j)
	}
}

// checkNAT warns of private nodes that reach nothing outside of Google.
func (m *clusterModel) checkNAT(ctx context.Context, j job) {
	region := regionOf(m.Location.ValueString())
	if region == "" || m.Network.IsUnknown() && isGiven(m.ID) || m.NetworkProject.IsUnknown() && isGiven(m.ID) {
		return
	}
	host := j
	host.cloud = j.cloud.ForProject(m.NetworkProject.ValueString())
	network := firstNonEmpty(last(m.Network.ValueString()), "default")
	routers, ok := routersOf(ctx, host, region)
	if ok && !slices.ContainsFunc(routers, func(r *compute.Router) bool { return last(r.Network) == network && len(r.Nats) > 0 }) {
		j.diags.AddAttributeWarning(path.Root("private_nodes"), "Private nodes without Cloud NAT",
			fmt.Sprintf("The network %s has no Cloud NAT in %s: such nodes reach Google's registries and storage, and nothing else. Images and data from elsewhere need a router with Cloud NAT.", network, region))
	}
}
