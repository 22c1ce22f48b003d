package gke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/cloud"
)

// bootstrap is the pool that a cluster is made with.
const bootstrap = "stoke-bootstrap"

// checkChoices refuses what the API will refuse.
func (m *clusterModel) checkChoices(j job) {
	oneOf := func(name, value string, all ...string) {
		if value != "" && !slices.Contains(all, value) {
			j.diags.AddAttributeError(path.Root(name), "Unknown "+strings.ReplaceAll(name, "_", " "), fmt.Sprintf("%q is "+
				"not valid: give one of %s.", value, strings.Join(all, ", ")))
		}
	}
	oneOf("release_channel", m.ReleaseChannel.ValueString(), "RAPID", "REGULAR", "STABLE", "EXTENDED", "NONE")
	for _, k := range list(m.CloudObjects) {
		oneOf("destroy_cloud_objects", k, loadBalancers, ingresses, gateways, volumes)
	}
	oneOf("endpoint", m.Endpoint.ValueString(), "dns", "public", "private")
	for _, c := range list(m.Logging) {
		oneOf("logging", c, enumNames(containerpb.LoggingComponentConfig_Component_value)...)
	}
	for _, c := range list(m.Monitoring) {
		oneOf("monitoring", c, enumNames(containerpb.MonitoringComponentConfig_Component_value)...)
	}
	if m.Location.IsUnknown() && j.omitted("location") && j.cloud.Location() == "" && m.ID.IsUnknown() {
		j.diags.AddAttributeError(path.Root("location"), "No location", "Give location, or zone or region in the block provider \"gke\".")
	}
	m.checkEndpoints(j)
	if m.Endpoint.ValueString() == "dns" && j.omitted("dns_endpoint") {
		m.DNSEndpoint = types.BoolValue(true) // endpoint opens it
	}
	for _, cidr := range list(m.AuthorizedNetworks) {
		if cidr == "0.0.0.0/0" {
			j.diags.AddAttributeWarning(path.Root("authorized_networks"), "All addresses may reach the API server", "0.0.0.0/0 is every address.")
		}
	}
}

// checkEndpoints refuses to close the endpoint that access leads to, and to close all.
func (m *clusterModel) checkEndpoints(j job) {
	closed := func(name string, v types.Bool) bool { return isGiven(v) && !v.ValueBool() && !j.omitted(name) }
	way := firstNonEmpty(m.Endpoint.ValueString(), "public")
	for _, test := range []struct {
		name   string
		closed bool
		ways   []string
	}{
		{"dns_endpoint", closed("dns_endpoint", m.DNSEndpoint), []string{"dns"}},
		{"public_endpoint", closed("public_endpoint", m.PublicEndpoint), []string{"public"}},
		{"ip_endpoints", closed("ip_endpoints", m.IPEndpoints), []string{"public", "private"}},
	} {
		if test.closed && slices.Contains(test.ways, way) && !m.Endpoint.IsUnknown() {
			j.diags.AddAttributeError(path.Root(test.name), "Endpoint of the connection is closed",
				fmt.Sprintf("endpoint is %q, and %s = false closes it. Set endpoint to an endpoint that stays open.", way, test.name))
		}
	}
	if isGiven(m.GoogleCloud) && !m.GoogleCloud.ValueBool() && !j.omitted("authorized_google_cloud") && m.AuthorizedNetworks.IsNull() {
		j.diags.AddAttributeError(path.Root("authorized_google_cloud"), "No authorized networks",
			"Give authorized_networks: authorized_google_cloud = false takes Google Cloud out of them.")
	}
}

func enumNames(values map[string]int32) []string {
	var all []string
	for name, n := range values {
		if n != 0 {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// get is the cluster as it is; nil where there is none.
func (m *clusterModel) get(ctx context.Context, c *cloud.Cloud) (*containerpb.Cluster, error) {
	name := m.path(c.Project)
	got, err := cloud.Read(ctx, c, func(ctx context.Context) (*containerpb.Cluster, error) {
		return c.Clusters.GetCluster(ctx, &containerpb.GetClusterRequest{Name: name})
	})
	if cloud.KindOf(err) == cloud.NotFound {
		return nil, nil
	}
	return got, err
}

// isHeld reports whether another operation holds the cluster.
func (m *clusterModel) isHeld(ctx context.Context, j job) (bool, error) {
	return j.cloud.IsHeld(ctx, m.path(j.cloud.Project), m.Location.ValueString())
}

// create is that of model. It looks for the cluster first: a cluster of this name
// without our mark is foreign.
func (m *clusterModel) create(ctx context.Context, j job, mark string, started func()) error {
	if err := m.build(ctx, j, mark, started); err != nil {
		return err
	}
	err := m.withoutDisks(ctx, j)
	if err != nil {
		providers.CallFrom(ctx).KeepOnError() // the cluster is complete: the next apply continues
	}
	return err
}

// withoutDisks switches off the driver of persistent disks: Google makes clusters with
// it even where a create says otherwise, and heeds an update.
func (m *clusterModel) withoutDisks(ctx context.Context, j job) error {
	if !isGiven(m.DiskCSI) || m.DiskCSI.ValueBool() {
		return nil
	}
	now, err := m.get(ctx, j.cloud)
	if err != nil {
		return cloud.UnknownResult(m.path(j.cloud.Project), err)
	}
	if now == nil || !now.GetAddonsConfig().GetGcePersistentDiskCsiDriverConfig().GetEnabled() {
		return nil
	}
	there := *m
	there.take(j, now)
	return m.update(ctx, j, &there)
}

func (m *clusterModel) build(ctx context.Context, j job, mark string, started func()) error {
	m.place(j)
	c := j.cloud
	wanted, err := m.render(ctx, j, mark)
	if err != nil {
		return err
	}
	there, err := m.get(ctx, c)
	if err != nil {
		return err
	}
	if there.GetStatus() == containerpb.Cluster_STOPPING { // another client deletes one of this name
		if there, err = m.waitDeleted(ctx, c); err != nil {
			return err
		}
	}
	if there == nil {
		op, found, err := cloud.Make(ctx, c, func(ctx context.Context) (*containerpb.Operation, error) {
			return c.Clusters.CreateCluster(ctx, &containerpb.CreateClusterRequest{Parent: fmt.Sprintf("projects/%s/locations/%s", c.Project, m.Location.ValueString()), Cluster: wanted})
		}, func(ctx context.Context) (bool, error) {
			var err error
			there, err = m.get(ctx, c)
			return there != nil, err
		})
		if err != nil {
			return err
		}
		if !found {
			started()
			return c.Wait(ctx, op, "making the cluster "+m.Name.ValueString())
		}
	}
	if there.GetResourceLabels()[cloud.Mark] != mark {
		return foreignObject("cluster", m.path(c.Project))
	}
	started()
	if err := c.Settle(ctx, m.path(c.Project), m.Location.ValueString(), "making the cluster "+m.Name.ValueString()); err != nil {
		return err
	}
	now, err := m.get(ctx, c)
	if err != nil {
		return cloud.UnknownResult(m.path(c.Project), err)
	}
	return creationError(now)
}

// creationError returns the reason why a cluster's creation failed; nil for a good
// one.
func creationError(k *containerpb.Cluster) error {
	if k.GetStatus() == containerpb.Cluster_ERROR {
		return errors.New("the cluster could not be made: " + reasons(k))
	}
	return nil
}

// reasons are what a cluster says is wrong with it.
func reasons(k *containerpb.Cluster) string {
	var all []string
	for _, s := range k.GetConditions() {
		all = append(all, s.GetMessage())
	}
	return firstNonEmpty(strings.Join(all, "; "), "it is in error")
}

// foreignObject is the error for a foreign object with the same name.
func foreignObject(what, name string) error {
	return &cloud.Error{Summary: "Already exists", Kind: cloud.Exists, Detail: fmt.Sprintf("There is a %s %s that this configuration has not made. Import it to manage it here, or take another name.", what, name)}
}

// render renders the request for the cluster.
func (m *clusterModel) render(ctx context.Context, j job, mark string) (*containerpb.Cluster, error) {
	zone, err := m.firstZone(ctx, j.cloud)
	if err != nil {
		return nil, err
	}
	k := &containerpb.Cluster{
		Name: m.Name.ValueString(), Network: m.sharedName("global/networks/", m.Network),
		Subnetwork:     m.sharedName("regions/"+regionOf(m.Location.ValueString())+"/subnetworks/", m.Subnetwork),
		Locations:      list(m.NodeLocations),
		ResourceLabels: j.cloud.Marked(texts(m.Labels), mark),
		IpAllocationPolicy: &containerpb.IPAllocationPolicy{
			UseIpAliases:              true,
			ClusterSecondaryRangeName: m.PodsRange.ValueString(), ServicesSecondaryRangeName: m.ServicesRange.ValueString(),
			ClusterIpv4CidrBlock: m.PodsCIDR.ValueString(), ServicesIpv4CidrBlock: m.ServicesCIDR.ValueString(),
		},
		InitialClusterVersion: m.Version.ValueString(),
		NodePools: []*containerpb.NodePool{{
			Name: bootstrap, InitialNodeCount: 1, Locations: zone,
			Config: &containerpb.NodeConfig{MachineType: "e2-medium", DiskSizeGb: 30, DiskType: "pd-standard", ServiceAccount: m.ServiceAccount.ValueString(),
				OauthScopes: []string{"https://www.googleapis.com/auth/cloud-platform"}, ResourceLabels: j.cloud.Marked(texts(m.Labels), mark)},
		}},
	}
	if isGiven(m.MaintenanceWindow) || len(m.exclusions()) > 0 {
		k.MaintenancePolicy = m.maintenance(&clusterModel{}, nil)
	}
	if isGiven(m.PrivateNodes) {
		v := m.PrivateNodes.ValueBool()
		k.NetworkConfig = &containerpb.NetworkConfig{DefaultEnablePrivateNodes: &v}
	}
	var u containerpb.ClusterUpdate
	for _, row := range clusterTable {
		if row.fill != nil && row.isDeclared(m) {
			row.fill(m, &clusterModel{}, &u, j.cloud)
		}
	}
	k.ReleaseChannel, k.WorkloadIdentityConfig, k.AddonsConfig = u.GetDesiredReleaseChannel(), u.GetDesiredWorkloadIdentityConfig(), u.GetDesiredAddonsConfig()
	k.ShieldedNodes, k.LoggingConfig, k.MonitoringConfig = u.GetDesiredShieldedNodes(), u.GetDesiredLoggingConfig(), u.GetDesiredMonitoringConfig()
	k.ControlPlaneEndpointsConfig = u.GetDesiredControlPlaneEndpointsConfig()
	return k, nil
}

// firstZone is the one zone of the first pool.
func (m *clusterModel) firstZone(ctx context.Context, c *cloud.Cloud) ([]string, error) {
	location := m.Location.ValueString()
	if isZone(location) {
		return []string{location}, nil
	}
	if zones := list(m.NodeLocations); len(zones) > 0 {
		return anyMachineZone(zones), nil
	}
	zones, err := regionZones(ctx, c, location)
	if err != nil {
		return nil, fmt.Errorf("read the zones of %s: %w", location, err)
	}
	if len(zones) == 0 {
		return nil, fmt.Errorf("the region %s has no zones", location)
	}
	return anyMachineZone(zones), nil
}

// anyMachineZone is the first zone for machines of any kind: AI zones, such as us-south1-ai1b, have few.
func anyMachineZone(zones []string) []string {
	for _, zone := range zones {
		if !strings.HasPrefix(last(strings.ReplaceAll(zone, "-", "/")), "ai") {
			return []string{zone}
		}
	}
	return zones[:1]
}

func regionZones(ctx context.Context, c *cloud.Cloud, region string) ([]string, error) {
	return cloud.Read(ctx, c, func(ctx context.Context) ([]string, error) {
		r, err := c.Compute.Regions.Get(c.Project, region).Context(ctx).Do()
		if err != nil {
			return nil, err
		}
		var zones []string
		for _, z := range r.Zones {
			zones = append(zones, last(z))
		}
		slices.Sort(zones)
		return zones, nil
	})
}

// remove is that of model.
func (m *clusterModel) remove(ctx context.Context, j job) error {
	if m.DeletionProtection.ValueBool() && j.begun != begunCreate { // what never was whole is not worth it
		return errors.New("deletion_protection is true: set it to false, apply, and destroy then")
	}
	c, name := j.cloud, m.path(j.cloud.Project)
	what := "deleting the cluster " + m.Name.ValueString()
	if err := c.Settle(ctx, name, m.Location.ValueString(), "before "+what); err != nil && cloud.KindOf(err) == cloud.Other {
		var running *cloud.RunningError
		if errors.As(err, &running) {
			return err
		}
	}
	if err := m.clear(ctx, j); err != nil {
		return err
	}
	op, err := cloud.Repeat(ctx, c, func(ctx context.Context) (*containerpb.Operation, error) {
		return c.Clusters.DeleteCluster(ctx, &containerpb.DeleteClusterRequest{Name: name})
	})
	if cloud.KindOf(err) == cloud.NotFound {
		return nil
	}
	if err == nil {
		err = c.Wait(ctx, op, what)
	}
	if cloud.KindOf(err) == cloud.NotFound { // of the operation, which says nothing of the cluster
		_, err = m.waitDeleted(ctx, c)
	}
	return err
}

// waitDeleted waits until a cluster that is being deleted no longer exists. A cluster
// that is not being deleted is returned.
func (m *clusterModel) waitDeleted(ctx context.Context, c *cloud.Cloud) (there *containerpb.Cluster, err error) {
	err = c.WaitUntil(ctx, "deleting "+m.Name.ValueString(), func(ctx context.Context) (bool, error) {
		cloud.ReportProgress(ctx, -1, "waiting until the cluster %s is deleted", m.Name.ValueString())
		var err error
		there, err = m.get(ctx, c)
		return there == nil || there.GetStatus() != containerpb.Cluster_STOPPING, err
	})
	return there, err
}
