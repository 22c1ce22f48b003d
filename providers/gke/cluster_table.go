package gke

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"google.golang.org/protobuf/proto"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/gke/cloud"
)

// clusterRow has the call that applies a change of an attribute, and the field of
// the request. The API takes one field in each UpdateCluster, so that rows with
// one field are one operation, and rows with two are two.
type clusterRow struct {
	attribute, call, field string
	of                     func(*clusterModel) attr.Value
	// fill puts what is declared into the field of an UpdateCluster; nil for other
	// calls. prior is the former declaration, empty for a create.
	fill func(m, prior *clusterModel, u *containerpb.ClusterUpdate, c *cloud.Cloud)
	// send makes another call.
	send func(ctx context.Context, m, prior *clusterModel, j job) (*containerpb.Operation, error)
}

// clusterTable has the order of changes: the control plane before anything that
// needs its version.
var clusterTable = []clusterRow{
	{attribute: "release_channel", call: "UpdateCluster", field: "desired_release_channel", of: func(m *clusterModel) attr.Value { return m.ReleaseChannel }, fill: fillChannel},
	{attribute: "version", call: "UpdateCluster", field: "desired_master_version", of: func(m *clusterModel) attr.Value { return m.MasterVersion }, fill: fillVersion},
	{attribute: "node_locations", call: "UpdateCluster", field: "desired_locations", of: func(m *clusterModel) attr.Value { return m.NodeLocations },
		fill: func(m, _ *clusterModel, u *containerpb.ClusterUpdate, _ *cloud.Cloud) {
			u.DesiredLocations = list(m.NodeLocations)
		}},
	{attribute: "private_nodes", call: "UpdateCluster", field: "desired_default_enable_private_nodes", of: func(m *clusterModel) attr.Value { return m.PrivateNodes },
		fill: func(m, _ *clusterModel, u *containerpb.ClusterUpdate, _ *cloud.Cloud) {
			u.DesiredDefaultEnablePrivateNodes = m.PrivateNodes.ValueBoolPointer()
		}},
	{attribute: "endpoint", call: "UpdateCluster", field: "desired_control_plane_endpoints_config", of: func(m *clusterModel) attr.Value { return m.Endpoint }, fill: fillEndpoints},
	{attribute: "authorized_networks", call: "UpdateCluster", field: "desired_control_plane_endpoints_config", of: func(m *clusterModel) attr.Value { return m.AuthorizedNetworks }, fill: fillEndpoints},
	endpointRow("authorized_google_cloud", func(m *clusterModel) attr.Value { return m.GoogleCloud }),
	endpointRow("dns_endpoint", func(m *clusterModel) attr.Value { return m.DNSEndpoint }),
	endpointRow("public_endpoint", func(m *clusterModel) attr.Value { return m.PublicEndpoint }),
	endpointRow("ip_endpoints", func(m *clusterModel) attr.Value { return m.IPEndpoints }),
	{attribute: "workload_identity", call: "UpdateCluster", field: "desired_workload_identity_config", of: func(m *clusterModel) attr.Value { return m.WorkloadIdentity }, fill: fillIdentity},
	{attribute: "filestore_csi", call: "UpdateCluster", field: "desired_addons_config", of: func(m *clusterModel) attr.Value { return m.FilestoreCSI }, fill: fillAddons},
	{attribute: "gcs_fuse_csi", call: "UpdateCluster", field: "desired_addons_config", of: func(m *clusterModel) attr.Value { return m.GCSFuseCSI }, fill: fillAddons},
	{attribute: "disk_csi", call: "UpdateCluster", field: "desired_addons_config", of: func(m *clusterModel) attr.Value { return m.DiskCSI }, fill: fillAddons},
	{attribute: "shielded_nodes", call: "UpdateCluster", field: "desired_shielded_nodes", of: func(m *clusterModel) attr.Value { return m.ShieldedNodes },
		fill: func(m, _ *clusterModel, u *containerpb.ClusterUpdate, _ *cloud.Cloud) {
			u.DesiredShieldedNodes = &containerpb.ShieldedNodes{Enabled: m.ShieldedNodes.ValueBool()}
		}},
	{attribute: "logging", call: "UpdateCluster", field: "desired_logging_config", of: func(m *clusterModel) attr.Value { return m.Logging }, fill: fillLogging},
	{attribute: "monitoring", call: "UpdateCluster", field: "desired_monitoring_config", of: func(m *clusterModel) attr.Value { return m.Monitoring }, fill: fillMonitoring},
	{attribute: "maintenance_window", call: "SetMaintenancePolicy", field: "maintenance_policy", of: func(m *clusterModel) attr.Value { return m.MaintenanceWindow }, send: sendMaintenance},
	{attribute: "maintenance_exclusions", call: "SetMaintenancePolicy", field: "maintenance_policy", of: func(m *clusterModel) attr.Value { return m.Exclusions }, send: sendMaintenance},
	{attribute: "labels", call: "SetLabels", field: "resource_labels", of: func(m *clusterModel) attr.Value { return m.AllLabels }, send: sendLabels},
}

// endpointRow is the row of an argument that opens or closes endpoints.
func endpointRow(attribute string, of func(*clusterModel) attr.Value) clusterRow {
	const field = "desired_control_plane_endpoints_config"
	return clusterRow{attribute: attribute, call: "UpdateCluster", field: field, of: of, fill: fillEndpoints}
}

// isDeclared reports whether the configuration has a value for a row.
func (r clusterRow) isDeclared(m *clusterModel) bool {
	if r.attribute == "endpoint" {
		return m.Endpoint.ValueString() == "dns"
	}
	return isGiven(r.of(m))
}

// changed reports whether an update has to make the row's call.
func (r clusterRow) changed(plan, prior *clusterModel) bool {
	switch r.attribute {
	case "version":
		return plan.MasterVersion.IsUnknown() && outdated(prior.MasterVersion, plan.Version)
	case "endpoint": // the others are there anyway
		return plan.Endpoint.ValueString() == "dns" && prior.Endpoint.ValueString() != "dns"
	}
	return changed(r.of(plan), r.of(prior))
}

// update implements model: one operation for each changed field, one after
// another, because the operations of a cluster exclude each other.
func (m *clusterModel) update(ctx context.Context, j job, prior *clusterModel) error {
	c, name, location := j.cloud, m.path(j.cloud.Project), m.Location.ValueString()
	if err := c.Settle(ctx, name, location, "finishing the cluster "+m.Name.ValueString()); err != nil {
		return err
	}
	now, err := m.get(ctx, c)
	switch {
	case err != nil:
		return cloud.UnknownResult(name, err)
	case now == nil:
		return errors.New("the cluster is gone; the next plan recreates it")
	case j.begun == begunCreate && creationError(now) != nil:
		return creationError(now)
	}
	var done []string
	for _, row := range clusterTable {
		if slices.Contains(done, row.field) || !row.changed(m, prior) {
			continue
		}
		done = append(done, row.field)
		if m.hasRow(j, prior, now, row) {
			continue // an import, or an apply that was interrupted, says less than there is
		}
		if row.attribute == "node_locations" { // pools may have come since the plan
			if _, err := movesOf(now, list(m.NodeLocations)); err != nil {
				return fmt.Errorf("change node_locations: %w", err)
			}
		}
		op, happened, err := cloud.Make(ctx, c, func(ctx context.Context) (*containerpb.Operation, error) {
			if row.send != nil {
				return row.send(ctx, m, prior, j)
			}
			u := &containerpb.ClusterUpdate{}
			row.fill(m, prior, u, c)
			return c.Clusters.UpdateCluster(ctx, &containerpb.UpdateClusterRequest{Name: name, Update: u})
		}, func(ctx context.Context) (bool, error) { return m.happened(ctx, j, prior, row) })
		if err == nil && !happened {
			err = c.Wait(ctx, op, "changing "+row.attribute)
		}
		if err != nil {
			return fmt.Errorf("change %s: %w", row.attribute, err)
		}
	}
	return nil
}

// happened finds out the result of a call without an answer: it waits for running
// operations, and compares the cluster with the plan. A call is not made again
// blindly, because each one is an operation that may take long.
func (m *clusterModel) happened(ctx context.Context, j job, prior *clusterModel, row clusterRow) (bool, error) {
	if err := j.cloud.Settle(ctx, m.path(j.cloud.Project), m.Location.ValueString(), "changing "+row.attribute); err != nil {
		return false, err
	}
	k, err := m.get(ctx, j.cloud)
	if err != nil || k == nil {
		return false, err
	}
	return m.hasRow(j, prior, k, row), nil
}

// hasRow reports whether a cluster has the values that a row's call sets. Of what is
// declared no more, what was declared before is looked for.
func (m *clusterModel) hasRow(j job, prior *clusterModel, k *containerpb.Cluster, row clusterRow) bool {
	is := *m
	if m.AuthorizedNetworks.IsNull() {
		is.AuthorizedNetworks = prior.AuthorizedNetworks
	}
	if m.MaintenanceWindow.IsNull() {
		is.MaintenanceWindow = prior.MaintenanceWindow
	}
	both := prior.exclusions()
	if both == nil {
		both = m.exclusions()
	}
	maps.Copy(both, m.exclusions())
	is.Exclusions = connect.MustConvert(types.MapValueFrom(context.Background(), exclusionType(), both))
	is.take(j, k)
	if m.Exclusions.IsNull() && len(is.exclusions()) == 0 {
		is.Exclusions = m.Exclusions
	}
	for _, other := range clusterTable {
		if other.field == row.field && other.changed(m, prior) && other.lacks(m, &is, k) {
			return false
		}
	}
	return true
}

// lacks reports whether a cluster, read as is, differs from the declaration of
// a row.
func (r clusterRow) lacks(m, is *clusterModel, k *containerpb.Cluster) bool {
	switch r.attribute {
	case "version":
		return outdated(is.MasterVersion, m.Version)
	case "endpoint":
		return !k.GetControlPlaneEndpointsConfig().GetDnsEndpointConfig().GetAllowExternalTraffic()
	}
	return r.changed(m, is)
}

func fillChannel(m, _ *clusterModel, u *containerpb.ClusterUpdate, _ *cloud.Cloud) {
	u.DesiredReleaseChannel = &containerpb.ReleaseChannel{Channel: containerpb.ReleaseChannel_Channel(containerpb.ReleaseChannel_Channel_value[m.ReleaseChannel.ValueString()])}
}

func fillVersion(m, _ *clusterModel, u *containerpb.ClusterUpdate, _ *cloud.Cloud) {
	u.DesiredMasterVersion = m.Version.ValueString()
}

// fillEndpoints does not touch authorized networks that were never declared:
// another change must not open a cluster to all addresses.
func fillEndpoints(m, prior *clusterModel, u *containerpb.ClusterUpdate, _ *cloud.Cloud) {
	e := &containerpb.ControlPlaneEndpointsConfig{}
	u.DesiredControlPlaneEndpointsConfig = e
	open := m.DNSEndpoint.ValueBoolPointer()
	if m.DNSEndpoint.IsUnknown() || !changed(m.DNSEndpoint, prior.DNSEndpoint) {
		open = nil
	}
	if m.Endpoint.ValueString() == "dns" && prior.Endpoint.ValueString() != "dns" {
		open = proto.Bool(true)
	}
	if open != nil {
		e.DnsEndpointConfig = &containerpb.ControlPlaneEndpointsConfig_DNSEndpointConfig{AllowExternalTraffic: open}
	}
	ip := &containerpb.ControlPlaneEndpointsConfig_IPEndpointsConfig{}
	if isGiven(m.IPEndpoints) && changed(m.IPEndpoints, prior.IPEndpoints) {
		ip.Enabled = m.IPEndpoints.ValueBoolPointer()
	}
	if isGiven(m.PublicEndpoint) && changed(m.PublicEndpoint, prior.PublicEndpoint) {
		ip.EnablePublicEndpoint = m.PublicEndpoint.ValueBoolPointer()
	}
	if !m.AuthorizedNetworks.IsNull() || !prior.AuthorizedNetworks.IsNull() {
		networks := &containerpb.MasterAuthorizedNetworksConfig{Enabled: !m.AuthorizedNetworks.IsNull()}
		for _, cidr := range list(m.AuthorizedNetworks) {
			networks.CidrBlocks = append(networks.CidrBlocks, &containerpb.MasterAuthorizedNetworksConfig_CidrBlock{CidrBlock: cidr})
		}
		if isGiven(m.GoogleCloud) {
			networks.GcpPublicCidrsAccessEnabled = m.GoogleCloud.ValueBoolPointer()
		}
		ip.AuthorizedNetworksConfig = networks
	}
	if ip.Enabled != nil || ip.EnablePublicEndpoint != nil || ip.AuthorizedNetworksConfig != nil {
		e.IpEndpointsConfig = ip
	}
}

func fillIdentity(m, _ *clusterModel, u *containerpb.ClusterUpdate, c *cloud.Cloud) {
	u.DesiredWorkloadIdentityConfig = &containerpb.WorkloadIdentityConfig{}
	if m.WorkloadIdentity.ValueBool() {
		u.DesiredWorkloadIdentityConfig.WorkloadPool = c.Project + ".svc.id.goog"
	}
}

func fillAddons(m, _ *clusterModel, u *containerpb.ClusterUpdate, _ *cloud.Cloud) {
	a := &containerpb.AddonsConfig{}
	if isGiven(m.FilestoreCSI) {
		a.GcpFilestoreCsiDriverConfig = &containerpb.GcpFilestoreCsiDriverConfig{Enabled: m.FilestoreCSI.ValueBool()}
	}
	if isGiven(m.GCSFuseCSI) {
		a.GcsFuseCsiDriverConfig = &containerpb.GcsFuseCsiDriverConfig{Enabled: m.GCSFuseCSI.ValueBool()}
	}
	if isGiven(m.DiskCSI) {
		a.GcePersistentDiskCsiDriverConfig = &containerpb.GcePersistentDiskCsiDriverConfig{Enabled: m.DiskCSI.ValueBool()}
	}
	u.DesiredAddonsConfig = a
}

func fillLogging(m, _ *clusterModel, u *containerpb.ClusterUpdate, _ *cloud.Cloud) {
	k := &containerpb.LoggingComponentConfig{}
	for _, name := range list(m.Logging) {
		k.EnableComponents = append(k.EnableComponents, containerpb.LoggingComponentConfig_Component(containerpb.LoggingComponentConfig_Component_value[name]))
	}
	u.DesiredLoggingConfig = &containerpb.LoggingConfig{ComponentConfig: k}
}

func fillMonitoring(m, _ *clusterModel, u *containerpb.ClusterUpdate, _ *cloud.Cloud) {
	k := &containerpb.MonitoringComponentConfig{}
	for _, name := range list(m.Monitoring) {
		k.EnableComponents = append(k.EnableComponents, containerpb.MonitoringComponentConfig_Component(containerpb.MonitoringComponentConfig_Component_value[name]))
	}
	u.DesiredMonitoringConfig = &containerpb.MonitoringConfig{ComponentConfig: k}
}

// sendLabels replaces all labels: the mark and Google's own are sent again.
func sendLabels(ctx context.Context, m, _ *clusterModel, j job) (*containerpb.Operation, error) {
	now, err := m.get(ctx, j.cloud)
	if err != nil {
		return nil, err
	}
	return j.cloud.Clusters.SetLabels(ctx, &containerpb.SetLabelsRequest{
		Name: m.path(j.cloud.Project), LabelFingerprint: now.GetLabelFingerprint(),
		ResourceLabels: j.cloud.Relabel(now.GetResourceLabels(), texts(m.Labels)),
	})
}
