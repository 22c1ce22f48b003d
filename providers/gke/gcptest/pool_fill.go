package gcptest

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/stokehq/stoke/providers/gke/catalogue"
)

// newPool checks a declared pool and adds what the server adds.
func (c *Cloud) newPool(k *cluster, d *containerpb.NodePool) (*pool, error) {
	p := &pool{cluster: k, path: k.path + "/nodePools/" + d.GetName(), proto: d, want: map[string]int{}, nodes: map[string]int{}}
	if err := checkName("node_pool.name", d.GetName()); err != nil {
		return nil, err
	}
	set(&d.Config, &containerpb.NodeConfig{})
	if len(d.GetLocations()) == 0 {
		d.Locations = slices.Clone(k.proto.GetLocations())
	}
	slices.Sort(d.Locations)
	standard(&d.Config.MachineType, "e2-medium")
	if err := c.checkPool(k, d); err != nil {
		return nil, err
	}
	version, err := nodeVersion(k, d.GetVersion())
	if err != nil {
		return nil, err
	}
	d.Version = version
	d.Status = containerpb.NodePool_PROVISIONING
	d.SelfLink = containerURL + inZones(p.path)
	fillNodes(d.Config, k)
	if d.Config.ResourceLabels == nil {
		d.Config.ResourceLabels = map[string]string{}
	}
	maps.Copy(d.Config.ResourceLabels, ownLabels(d.Config))
	fillPool(d, k)
	if catalogue.Arm(d.Config.MachineType) { // Arm: an update without the taint takes it away
		d.Config.Taints = append(d.Config.Taints, &containerpb.NodeTaint{Key: "kubernetes.io/arch", Value: "arm64", Effect: containerpb.NodeTaint_NO_SCHEDULE})
	}
	count := int(d.GetInitialNodeCount())
	for _, zone := range d.GetLocations() {
		p.want[zone] = count
	}
	if err := c.mayHave(regionOf(k.location), p, p.wanted()); err != nil {
		return nil, err
	}
	return p, nil
}

// nodeVersion is the version of a pool, which is not above the master's, in the
// words of hashicorp/terraform-provider-google#1682.
func nodeVersion(k *cluster, wanted string) (string, error) {
	master := k.proto.GetCurrentMasterVersion()
	version, err := resolve(wanted, master)
	if err == nil && slices.Index(Versions, version) < slices.Index(Versions, master) {
		err = invalid("desired node version %q cannot be greater than current master version %q.", version, master)
	}
	return version, err
}

var defaultScopes = []string{
	"https://www.googleapis.com/auth/devstorage.read_only",
	"https://www.googleapis.com/auth/logging.write",
	"https://www.googleapis.com/auth/monitoring",
	"https://www.googleapis.com/auth/service.management.readonly",
	"https://www.googleapis.com/auth/servicecontrol",
	"https://www.googleapis.com/auth/trace.append",
}

const (
	cloudPlatform   = "https://www.googleapis.com/auth/cloud-platform"
	loggingScope    = "https://www.googleapis.com/auth/logging.write"
	monitoringScope = "https://www.googleapis.com/auth/monitoring"
)

// fillNodes adds what the server adds to a node's configuration.
func fillNodes(n *containerpb.NodeConfig, k *cluster) {
	standard(&n.DiskSizeGb, int32(n.GetBootDisk().GetSizeGb())) //nolint:gosec // GiB
	standard(&n.DiskType, n.GetBootDisk().GetDiskType())
	standard(&n.DiskSizeGb, 100)
	if catalogue.Hyperdisk(n.GetMachineType()) {
		standard(&n.DiskType, "hyperdisk-balanced")
	}
	standard(&n.DiskType, "pd-balanced")
	standard(&n.ImageType, "COS_CONTAINERD")
	standard(&n.ServiceAccount, "default")
	n.ImageType = strings.ToUpper(n.ImageType)
	set(&n.BootDisk, &containerpb.BootDisk{})
	n.BootDisk.DiskType, n.BootDisk.SizeGb = n.DiskType, int64(n.DiskSizeGb)
	switch {
	case len(n.OauthScopes) == 0:
		n.OauthScopes = slices.Clone(defaultScopes)
	case !slices.Contains(n.OauthScopes, cloudPlatform): // by hashicorp/terraform-provider-google#1726; monitoring was recorded, too
		for _, added := range []string{loggingScope, monitoringScope} {
			if !slices.Contains(n.OauthScopes, added) {
				n.OauthScopes = append(n.OauthScopes, added)
			}
		}
	}
	if n.Metadata == nil {
		n.Metadata = map[string]string{}
	}
	if _, ok := n.Metadata["disable-legacy-endpoints"]; !ok {
		n.Metadata["disable-legacy-endpoints"] = "true"
	}
	set(&n.ShieldedInstanceConfig, &containerpb.ShieldedInstanceConfig{EnableIntegrityMonitoring: true})
	if k.proto.GetWorkloadIdentityConfig().GetWorkloadPool() != "" {
		set(&n.WorkloadMetadataConfig, &containerpb.WorkloadMetadataConfig{Mode: containerpb.WorkloadMetadataConfig_GKE_METADATA})
	}
	set(&n.KubeletConfig, &containerpb.NodeKubeletConfig{})
	set(&n.KubeletConfig.InsecureKubeletReadonlyPortEnabled, proto.Bool(false))
	standard(&n.KubeletConfig.MaxParallelImagePulls, 2)
	set(&n.LoggingConfig, &containerpb.NodePoolLoggingConfig{VariantConfig: &containerpb.LoggingVariantConfig{Variant: containerpb.LoggingVariantConfig_DEFAULT}})
	set(&n.WindowsNodeConfig, &containerpb.WindowsNodeConfig{})
	set(&n.NodeImageConfig, &containerpb.CustomImageConfig{Image: "gke-1356-gke1250000-cos-125-19216-395-109-c-pre", ImageProject: "gke-node-images"})
	standard(&n.EffectiveCgroupMode, containerpb.NodeConfig_EFFECTIVE_CGROUP_MODE_V2)
	fillGPUs(n, k)
}

// ownLabels are the resource labels that GKE puts on every pool when it is made.
// An update that does not send them again takes them away.
func ownLabels(n *containerpb.NodeConfig) map[string]string {
	model := "on-demand"
	switch {
	case n.GetFlexStart():
		model = "flex-start"
	case n.GetSpot():
		model = "spot"
	case n.GetPreemptible():
		model = "preemptible"
	}
	labels := map[string]string{"goog-gke-node-pool-provisioning-model": model}
	if len(n.GetAccelerators()) > 0 {
		labels["goog-gke-accelerator-type"] = n.GetAccelerators()[0].GetAcceleratorType()
	}
	return labels
}

// fillGPUs adds the taint, which a cluster without any other nodes does not get,
// and the driver.
func fillGPUs(n *containerpb.NodeConfig, k *cluster) {
	if len(n.Accelerators) == 0 {
		return
	}
	for _, gpu := range n.Accelerators {
		set(&gpu.GpuDriverInstallationConfig, &containerpb.GPUDriverInstallationConfig{GpuDriverVersion: containerpb.GPUDriverInstallationConfig_DEFAULT.Enum()})
	}
	others := slices.ContainsFunc(k.pools, func(p *pool) bool { return len(p.proto.GetConfig().GetAccelerators()) == 0 })
	tainted := slices.ContainsFunc(n.Taints, func(t *containerpb.NodeTaint) bool { return t.GetKey() == gpuTaint })
	if others && !tainted {
		n.Taints = append(n.Taints, &containerpb.NodeTaint{Key: gpuTaint, Value: "present", Effect: containerpb.NodeTaint_NO_SCHEDULE})
	}
}

const gpuTaint = "nvidia.com/gpu"

// fillPool adds what the server adds beside the nodes' configuration.
func fillPool(d *containerpb.NodePool, k *cluster) {
	set(&d.Management, &containerpb.NodeManagement{AutoRepair: !d.GetConfig().GetFlexStart(), AutoUpgrade: true})
	if shortLived(d) {
		set(&d.UpgradeSettings, &containerpb.NodePool_UpgradeSettings{Strategy: containerpb.NodePoolUpdateStrategy_SHORT_LIVED.Enum()})
	}
	set(&d.UpgradeSettings, &containerpb.NodePool_UpgradeSettings{MaxSurge: 1})
	set(&d.UpgradeSettings.Strategy, containerpb.NodePoolUpdateStrategy_SURGE.Enum())
	set(&d.MaxPodsConstraint, proto.Clone(k.proto.GetDefaultMaxPodsConstraint()).(*containerpb.MaxPodsConstraint))
	standard(&d.PodIpv4CidrSize, podBits(d.GetMaxPodsConstraint().GetMaxPodsPerNode()))
	set(&d.NetworkConfig, &containerpb.NodeNetworkConfig{})
	standard(&d.NetworkConfig.PodRange, k.proto.GetIpAllocationPolicy().GetClusterSecondaryRangeName())
	standard(&d.NetworkConfig.PodIpv4CidrBlock, k.proto.GetClusterIpv4Cidr())
	if k.proto.GetNetworkConfig().GetDefaultEnablePrivateNodes() { // false is not written
		set(&d.NetworkConfig.EnablePrivateNodes, proto.Bool(true))
	}
	set(&d.NetworkConfig.NetworkTierConfig, &containerpb.NetworkTierConfig{NetworkTier: containerpb.NetworkTierConfig_NETWORK_TIER_DEFAULT})
	standard(&d.NetworkConfig.Subnetwork, k.proto.GetNetworkConfig().GetSubnetwork())
	if d.GetQueuedProvisioning().GetEnabled() {
		d.Config.Taints = append(d.Config.Taints, &containerpb.NodeTaint{Key: "cloud.google.com/gke-queued", Value: "true", Effect: containerpb.NodeTaint_NO_SCHEDULE})
	}
	if d.GetAutoscaling() != nil {
		fillAutoscaling(d.Autoscaling)
	}
}

func fillAutoscaling(a *containerpb.NodePoolAutoscaling) {
	if a.GetEnabled() {
		standard(&a.LocationPolicy, containerpb.NodePoolAutoscaling_BALANCED)
	}
}
