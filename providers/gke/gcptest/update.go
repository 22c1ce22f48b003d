package gcptest

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// qualifiers are fields of ClusterUpdate that go along with another.
var qualifiers = []protoreflect.Name{"etag", "desired_node_pool_id"}

// elsewhere are the fields of a cluster that an update's field sets, where its
// name does not tell; "/" leads into a message.
var elsewhere = map[protoreflect.Name]string{
	"desired_cluster_autoscaling":                "autoscaling",
	"desired_master_version":                     "current_master_version",
	"desired_node_pool_auto_config_network_tags": "node_pool_auto_config/network_tags",
	"desired_gcfs_config":                        "node_pool_defaults/node_config_defaults/gcfs_config",
	"desired_node_pool_logging_config":           "node_pool_defaults/node_config_defaults/logging_config",
	"desired_containerd_config":                  "node_pool_defaults/node_config_defaults/containerd_config",
	"desired_node_kubelet_config":                "node_pool_defaults/node_config_defaults/node_kubelet_config",
	"desired_in_transit_encryption_config":       "network_config/in_transit_encryption_config",
	"desired_default_enable_private_nodes":       "network_config/default_enable_private_nodes",
	"desired_gateway_api_config":                 "network_config/gateway_api_config",
	"desired_dns_config":                         "network_config/dns_config",
	"desired_service_external_ips_config":        "network_config/service_external_ips_config",
	"desired_default_snat_status":                "network_config/default_snat_status",
	"desired_datapath_provider":                  "network_config/datapath_provider",
	"desired_enable_multi_networking":            "network_config/enable_multi_networking",
	"desired_network_performance_config":         "network_config/network_performance_config",
	"desired_master_authorized_networks_config":  "control_plane_endpoints_config/ip_endpoints_config/authorized_networks_config",
	"desired_enable_private_endpoint":            "",
	"desired_k8s_beta_apis":                      "enable_k8s_beta_apis",
}

// merged are the messages of which an update sets the parts it has, and leaves
// the others as they are.
var merged = []string{"addons_config", "control_plane_endpoints_config", "dns_endpoint_config", "ip_endpoints_config", "monitoring_config"}

// UpdateCluster changes one thing about a cluster.
func (c *Cloud) UpdateCluster(_ context.Context, r *containerpb.UpdateClusterRequest) (*containerpb.Operation, error) {
	k, err := c.findCluster(r.GetName())
	if err != nil {
		return nil, err
	}
	if etag := r.GetUpdate().GetEtag(); etag != "" && etag != c.shown(k).GetEtag() {
		return nil, detailed(codes.Aborted, "The etag "+etag+" of cluster "+k.name+" is stale.")
	}
	field, value, err := oneField(r.GetUpdate())
	if err != nil {
		return nil, err
	}
	if err := c.mayOperate(k, ""); err != nil {
		return nil, err
	}
	switch field {
	case "desired_master_version":
		return c.updateMaster(k, r.GetUpdate().GetDesiredMasterVersion())
	case "desired_node_version", "desired_image_type", "desired_node_pool_autoscaling":
		return nil, invalid("Field %s: use UpdateNodePool.", field)
	case "desired_locations":
		return c.updateLocations(k, r.GetUpdate().GetDesiredLocations())
	case "desired_datapath_provider":
		return nil, invalid("Datapath provider of a cluster cannot be changed.")
	case "desired_workload_identity_config":
		if err := c.checkWorkloadPool(r.GetUpdate().GetDesiredWorkloadIdentityConfig()); err != nil {
			return nil, err
		}
	case "desired_release_channel":
		if err := c.checkChannel(k, r.GetUpdate().GetDesiredReleaseChannel()); err != nil {
			return nil, err
		}
	}
	path, err := clusterField(r.GetUpdate().ProtoReflect().Descriptor().Fields().ByName(field))
	if err != nil {
		return nil, err
	}
	return c.changeCluster(k, "UPDATE_CLUSTER", func(p *containerpb.Cluster) {
		assign(p.ProtoReflect(), path, value)
		fillAddons(p)
		c.mirror(p)
	}), nil
}

// oneField is the one field that an update sets.
func oneField(u *containerpb.ClusterUpdate) (protoreflect.Name, protoreflect.Value, error) {
	var names []string
	var field protoreflect.Name
	var value protoreflect.Value
	u.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !slices.Contains(qualifiers, f.Name()) {
			names, field, value = append(names, string(f.Name())), f.Name(), v
		}
		return true
	})
	slices.Sort(names)
	switch len(names) {
	case 0:
		return "", value, invalid("Must specify a field to update.")
	case 1:
		return field, value, nil
	}
	return "", value, detailed(codes.InvalidArgument, "Exactly one update can be applied to a cluster with each request: at most one field can be provided, not "+strings.Join(names, ", ")+".")
}

// clusterField is the path of the cluster's field that an update's field sets.
// Fields of the update that no field of a cluster goes with are refused.
func clusterField(of protoreflect.FieldDescriptor) ([]protoreflect.Name, error) {
	name, known := elsewhere[of.Name()]
	if !known {
		name = strings.TrimPrefix(string(of.Name()), "desired_")
	}
	var path []protoreflect.Name
	var f protoreflect.FieldDescriptor
	descriptor := (&containerpb.Cluster{}).ProtoReflect().Descriptor()
	for part := range strings.SplitSeq(name, "/") {
		f = nil
		if descriptor != nil {
			f = descriptor.Fields().ByName(protoreflect.Name(part))
		}
		if f == nil {
			break
		}
		path, descriptor = append(path, f.Name()), f.Message()
	}
	if f == nil || f.Kind() != of.Kind() || f.Message() != of.Message() || f.IsList() != of.IsList() {
		return nil, detailed(codes.Unimplemented, "the double does not apply the field "+string(of.Name()))
	}
	return path, nil
}

// assign sets the field at the end of a path; of the messages in merged, only
// the parts that the value has.
func assign(m protoreflect.Message, path []protoreflect.Name, value protoreflect.Value) {
	f := m.Descriptor().Fields().ByName(path[0])
	switch {
	case len(path) > 1:
		assign(m.Mutable(f).Message(), path[1:], value)
	case f.Message() != nil && !f.IsList() && !f.IsMap() && slices.Contains(merged, string(f.Name())):
		into := m.Mutable(f).Message()
		value.Message().Range(func(part protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			assign(into, []protoreflect.Name{part.Name()}, v)
			return true
		})
	default:
		m.Set(f, value)
	}
}

// UpdateMaster brings a cluster's control plane to another version.
func (c *Cloud) UpdateMaster(_ context.Context, r *containerpb.UpdateMasterRequest) (*containerpb.Operation, error) {
	k, err := c.findCluster(r.GetName())
	if err != nil {
		return nil, err
	}
	if err := c.mayOperate(k, ""); err != nil {
		return nil, err
	}
	return c.updateMaster(k, r.GetMasterVersion())
}

func (c *Cloud) updateMaster(k *cluster, wanted string) (*containerpb.Operation, error) {
	version, err := resolve(wanted, channels[k.proto.GetReleaseChannel().GetChannel()])
	if err != nil {
		return nil, err
	}
	if slices.Index(Versions, version) > slices.Index(Versions, k.proto.GetCurrentMasterVersion()) {
		return nil, invalid("Master cannot be downgraded from %s to %s.", k.proto.GetCurrentMasterVersion(), version)
	}
	// The words are those of kubeflow/code-intelligence#153.
	if minor(version) > minor(k.proto.GetCurrentMasterVersion())+1 {
		return nil, invalid("Master version %s cannot be upgraded to %s: cannot upgrade the master more than a minor version at a time.", k.proto.GetCurrentMasterVersion(), version)
	}
	return c.changeCluster(k, "UPGRADE_MASTER", func(p *containerpb.Cluster) { p.CurrentMasterVersion = version }), nil
}

// minor is the second number of a version.
func minor(version string) int {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(parts[1]) // of Versions, where they are numbers
	return n
}

func (c *Cloud) updateLocations(k *cluster, zones []string) (*containerpb.Operation, error) {
	changed := &containerpb.Cluster{Locations: slices.Clone(zones)}
	if err := c.fillLocations(k, changed); err != nil {
		return nil, err
	}
	return c.changeCluster(k, "UPDATE_CLUSTER", func(cluster *containerpb.Cluster) {
		cluster.Locations = changed.GetLocations()
		for _, p := range k.pools { // of all, says the comment on desired_locations
			p.proto.Locations = slices.Clone(changed.GetLocations())
			p.move()
			_ = c.provision(p, "") // a pool that lacks nodes says so itself
		}
	}), nil
}

// checkChannel refuses a release channel while a pool is not upgraded by itself.
func (c *Cloud) checkChannel(k *cluster, channel *containerpb.ReleaseChannel) error {
	for _, p := range k.pools {
		if err := checkManagement(&containerpb.Cluster{ReleaseChannel: channel}, p.proto.GetConfig(), p.proto.GetManagement()); err != nil {
			return err
		}
	}
	return nil
}

// Upgrade brings a cluster's control plane and nodes to a version without
// anybody's operation, as a release channel does.
func (c *Cloud) Upgrade(path, version string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, err := c.findCluster(path)
	if err != nil {
		return err
	}
	if version, err = resolve(version, ""); err != nil {
		return err
	}
	k.proto.CurrentMasterVersion = version
	k.revision++
	for _, p := range k.pools {
		p.proto.Version = version
		p.recreations++
	}
	return nil
}

// Change changes a cluster without anybody's operation, as somebody in the
// console does. Its pools are not in the message.
func (c *Cloud) Change(path string, change func(*containerpb.Cluster)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, err := c.findCluster(path)
	if err != nil {
		return err
	}
	changed := proto.Clone(k.proto).(*containerpb.Cluster)
	change(changed)
	k.proto = changed
	k.revision++
	return nil
}

// ChangePool changes a pool without anybody's operation, as somebody in the
// console does; Resize changes its size.
func (c *Cloud) ChangePool(path string, change func(*containerpb.NodePool)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, p, err := c.findPool(path)
	if err != nil {
		return err
	}
	changed := proto.Clone(p.proto).(*containerpb.NodePool)
	change(changed)
	p.proto = changed
	p.revision++
	return nil
}
