package gcptest

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// cluster is a cluster of container v1.
type cluster struct {
	path, parent, name, location string
	revision                     int
	proto                        *containerpb.Cluster // without its pools
	pools                        []*pool              // in the order of their creation
}

func (k *cluster) pool(name string) *pool {
	at := slices.IndexFunc(k.pools, func(p *pool) bool { return p.proto.GetName() == name })
	if at < 0 {
		return nil
	}
	return k.pools[at]
}

// etag tells one revision of an object from the next.
func etag(path string, revision int) string { return hash(8, path, strconv.Itoa(revision)) }

// shown is a cluster as the API answers it.
func (c *Cloud) shown(k *cluster) *containerpb.Cluster {
	out := proto.Clone(k.proto).(*containerpb.Cluster)
	out.Etag = etag(k.path, k.revision)
	out.LabelFingerprint = fingerprint(out.GetResourceLabels())
	if out.GetStatus() == containerpb.Cluster_PROVISIONING { // it has no address yet
		out.Endpoint, out.MasterAuth, out.ControlPlaneEndpointsConfig, out.PrivateClusterConfig = "", nil, nil, nil
	}
	for _, p := range k.pools {
		one := c.shownPool(p)
		out.NodePools = append(out.NodePools, one)
		out.InstanceGroupUrls = append(out.InstanceGroupUrls, one.GetInstanceGroupUrls()...)
		out.CurrentNodeCount += int32(p.size()) //nolint:gosec // nodes of a test
		out.CurrentNodeVersion = one.GetVersion()
	}
	return out
}

// fingerprint tells one set of labels from another.
func fingerprint(labels map[string]string) string {
	parts := []string{"labels"}
	for name, value := range labels {
		parts = append(parts, name+"="+value)
	}
	slices.Sort(parts[1:])
	return hash(8, parts...)
}

// findCluster is the cluster of a path, or of a path below it.
func (c *Cloud) findCluster(path string) (*cluster, error) {
	if err := c.inProject(path, "locations"); err != nil {
		return nil, err
	}
	parts := strings.Split(path, "/")
	if len(parts) < 6 || parts[4] != "clusters" {
		return nil, invalid("Invalid resource name %q.", path)
	}
	parts[1] = c.options.Project
	path = strings.Join(parts[:6], "/")
	k := c.clusters[path]
	if k == nil {
		return nil, notFound(path)
	}
	return k, nil
}

// GetCluster answers a cluster; operations on it come nearer to their end.
func (c *Cloud) GetCluster(_ context.Context, r *containerpb.GetClusterRequest) (*containerpb.Cluster, error) {
	k, err := c.findCluster(r.GetName())
	if err != nil {
		return nil, err
	}
	for _, o := range c.runningOn("container", k.path) {
		if o.target == k.path {
			c.look(o)
		}
	}
	if k, err = c.findCluster(r.GetName()); err != nil {
		return nil, err // it was being deleted
	}
	return c.shown(k), nil
}

// ListClusters answers the clusters of a location, or with "-" of all.
func (c *Cloud) ListClusters(_ context.Context, r *containerpb.ListClustersRequest) (*containerpb.ListClustersResponse, error) {
	if err := c.inProject(r.GetParent(), "locations"); err != nil {
		return nil, err
	}
	out := &containerpb.ListClustersResponse{}
	for _, k := range sortedValues(c.clusters) {
		if k.parent == r.GetParent() || strings.HasSuffix(r.GetParent(), "/-") {
			out.Clusters = append(out.Clusters, c.shown(k))
		}
	}
	return out, nil
}

// CreateCluster makes a cluster with its pools.
func (c *Cloud) CreateCluster(_ context.Context, r *containerpb.CreateClusterRequest) (*containerpb.Operation, error) {
	if err := c.inProject(r.GetParent(), "locations"); err != nil {
		return nil, err
	}
	location := strings.Split(r.GetParent(), "/")[3]
	if err := c.location(location); err != nil {
		return nil, err
	}
	wanted := proto.Clone(r.GetCluster()).(*containerpb.Cluster)
	parent := "projects/" + c.options.Project + "/locations/" + location
	k := &cluster{path: parent + "/clusters/" + wanted.GetName(), parent: parent, name: wanted.GetName(), location: location}
	if err := checkName("cluster.name", k.name); err != nil {
		return nil, err
	}
	if c.clusters[k.path] != nil {
		return nil, alreadyExists(k.path)
	}
	pools, err := firstPools(wanted)
	if err != nil {
		return nil, err
	}
	if err := c.fillCluster(k, wanted); err != nil {
		return nil, err
	}
	for _, declared := range pools {
		p, err := c.newPool(k, declared)
		if err != nil {
			return nil, err
		}
		k.pools = append(k.pools, p)
	}
	c.clusters[k.path] = k
	o := c.begin("container", parent, "CREATE_CLUSTER", k.path, nil)
	o.finish = func(half error) error {
		if half != nil {
			k.proto.Status, k.proto.StatusMessage = containerpb.Cluster_ERROR, half.Error()
			return half
		}
		k.proto.Status = containerpb.Cluster_RUNNING
		var failed error
		for _, p := range k.pools {
			if err := c.provision(p, o.name); err != nil {
				failed = err
			}
		}
		return failed
	}
	return c.containerOperation(o), nil
}

// firstPools are the pools that a cluster is created with; none is refused.
func firstPools(k *containerpb.Cluster) ([]*containerpb.NodePool, error) {
	pools := k.GetNodePools()
	switch {
	case k.GetAutopilot().GetEnabled() && (len(pools) > 0 || k.GetNodeConfig() != nil || k.GetInitialNodeCount() != 0):
		return nil, invalid("Autopilot clusters do not take node pools.")
	case k.GetAutopilot().GetEnabled():
		return nil, nil
	case len(pools) > 0 && (k.GetInitialNodeCount() != 0 || k.GetNodeConfig() != nil):
		return nil, invalid("Cluster.initial_node_count and Cluster.node_config may not be specified together with Cluster.node_pools.")
	case len(pools) == 0 && k.GetInitialNodeCount() <= 0:
		return nil, invalid("Cluster.initial_node_count must be greater than zero.")
	case len(pools) == 0:
		pools = []*containerpb.NodePool{{Name: "default-pool", Config: k.GetNodeConfig(), InitialNodeCount: k.GetInitialNodeCount()}}
	}
	seen := make(map[string]bool)
	nodes := int32(0)
	for _, p := range pools {
		if seen[p.GetName()] {
			return nil, invalid("Cluster.node_pools has two pools named %q.", p.GetName())
		}
		seen[p.GetName()] = true
		nodes += p.GetInitialNodeCount()
	}
	if nodes == 0 {
		return nil, invalid("Cluster.initial_node_count must be greater than zero.")
	}
	k.NodePools, k.NodeConfig = nil, nil
	return pools, nil
}

// DeleteCluster removes a cluster with its pools.
func (c *Cloud) DeleteCluster(_ context.Context, r *containerpb.DeleteClusterRequest) (*containerpb.Operation, error) {
	k, err := c.findCluster(r.GetName())
	if err != nil {
		return nil, err
	}
	if err := c.mayOperate(k, ""); err != nil {
		return nil, err
	}
	k.proto.Status = containerpb.Cluster_STOPPING
	o := c.begin("container", k.parent, "DELETE_CLUSTER", k.path, func(half error) error {
		if half != nil {
			k.proto.Status, k.proto.StatusMessage = containerpb.Cluster_ERROR, half.Error()
			return half
		}
		for _, p := range k.pools {
			c.release(p)
		}
		delete(c.clusters, k.path)
		return nil
	})
	return c.containerOperation(o), nil
}

// SetLabels replaces a cluster's labels.
func (c *Cloud) SetLabels(_ context.Context, r *containerpb.SetLabelsRequest) (*containerpb.Operation, error) {
	k, err := c.findCluster(r.GetName())
	if err != nil {
		return nil, err
	}
	if err := c.mayOperate(k, ""); err != nil {
		return nil, err
	}
	if r.GetLabelFingerprint() != fingerprint(k.proto.GetResourceLabels()) {
		return nil, detailed(codes.FailedPrecondition, "Labels could not be set due to fingerprint mismatch.")
	}
	if err := checkLabels(r.GetResourceLabels()); err != nil {
		return nil, err
	}
	return c.changeCluster(k, "UPDATE_CLUSTER", func(p *containerpb.Cluster) { p.ResourceLabels = r.GetResourceLabels() }), nil
}

// SetMaintenancePolicy replaces a cluster's maintenance policy as a whole.
func (c *Cloud) SetMaintenancePolicy(_ context.Context, r *containerpb.SetMaintenancePolicyRequest) (*containerpb.Operation, error) {
	if r.GetName() == "" {
		return nil, invalid("Field \"name\" is required.")
	}
	k, err := c.findCluster(r.GetName())
	if err != nil {
		return nil, err
	}
	if r.GetMaintenancePolicy() == nil {
		return nil, invalid("Field \"maintenance_policy\" is required.")
	}
	if err := c.mayOperate(k, ""); err != nil {
		return nil, err
	}
	policy := proto.Clone(r.GetMaintenancePolicy()).(*containerpb.MaintenancePolicy)
	if has := k.proto.GetMaintenancePolicy().GetResourceVersion(); policy.GetResourceVersion() != has {
		return nil, detailed(codes.FailedPrecondition, "Maintenance policy could not be set: resource_version "+strconv.Quote(policy.GetResourceVersion())+" is not the current "+strconv.Quote(has)+".")
	}
	if len(policy.GetWindow().GetMaintenanceExclusions()) > 20 {
		return nil, invalid("A maintenance policy has 20 exclusions at most.")
	}
	version(policy)
	return c.changeCluster(k, "UPDATE_CLUSTER", func(p *containerpb.Cluster) { p.MaintenancePolicy = policy }), nil
}

// version gives a maintenance policy the version that its content has.
func version(p *containerpb.MaintenancePolicy) {
	p.ResourceVersion = ""
	p.ResourceVersion = hash(8, "maintenance", p.String())
}

// changeCluster begins an operation that changes a cluster at its end.
func (c *Cloud) changeCluster(k *cluster, kind string, change func(*containerpb.Cluster)) *containerpb.Operation {
	k.proto.Status = containerpb.Cluster_RECONCILING
	k.revision++
	o := c.begin("container", k.parent, kind, k.path, func(half error) error {
		change(k.proto)
		k.proto.Status = containerpb.Cluster_RUNNING
		if half != nil {
			k.proto.Status, k.proto.StatusMessage = containerpb.Cluster_DEGRADED, half.Error()
		}
		return half
	})
	return c.containerOperation(o)
}

// GetServerConfig answers the versions that a location offers.
func (c *Cloud) GetServerConfig(_ context.Context, r *containerpb.GetServerConfigRequest) (*containerpb.ServerConfig, error) {
	if err := c.inProject(r.GetName(), "locations"); err != nil {
		return nil, err
	}
	if err := c.location(strings.Split(r.GetName(), "/")[3]); err != nil {
		return nil, err
	}
	out := &containerpb.ServerConfig{
		DefaultClusterVersion: channels[containerpb.ReleaseChannel_REGULAR],
		ValidMasterVersions:   slices.Clone(Versions),
		ValidNodeVersions:     slices.Clone(Versions),
		DefaultImageType:      "COS_CONTAINERD",
		ValidImageTypes:       []string{"COS_CONTAINERD", "UBUNTU_CONTAINERD"},
	}
	for _, channel := range []containerpb.ReleaseChannel_Channel{
		containerpb.ReleaseChannel_RAPID, containerpb.ReleaseChannel_REGULAR, containerpb.ReleaseChannel_STABLE, containerpb.ReleaseChannel_EXTENDED,
	} {
		at := slices.Index(Versions, channels[channel])
		out.Channels = append(out.Channels, &containerpb.ServerConfig_ReleaseChannelConfig{
			Channel: channel, DefaultVersion: channels[channel], ValidVersions: slices.Clone(Versions[at:]), UpgradeTargetVersion: channels[channel],
		})
	}
	return out, nil
}

func number10(n int64) string { return strconv.FormatInt(n, 10) }
