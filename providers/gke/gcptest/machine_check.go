package gcptest

import (
	"math/bits"
	"slices"
	"strings"

	compute "google.golang.org/api/compute/v1"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// attached are the GPUs that N1 machines can have: by how many of them, the most
// CPUs of the machine. https://cloud.google.com/compute/docs/gpus#n1-gpus
var attached = map[string]map[int64]int{
	"nvidia-tesla-t4":   {1: 48, 2: 48, 4: 96},
	"nvidia-tesla-v100": {1: 12, 2: 24, 4: 48, 8: 96},
	"nvidia-tesla-p100": {1: 16, 2: 32, 4: 96},
	"nvidia-tesla-p4":   {1: 24, 2: 48, 4: 96},
}

// checkMachine refuses machines and GPUs that a zone does not have, or that do not
// go together.
func (c *Cloud) checkMachine(zone string, n *containerpb.NodeConfig) error {
	for _, gpu := range n.GetAccelerators() {
		if err := c.acceleratorIn(zone, gpu.GetAcceleratorType()); err != nil {
			return err
		}
		if gpu.GetAcceleratorCount() <= 0 {
			return invalid("Accelerator count must be positive.")
		}
		if err := checkParts(gpu); err != nil {
			return err
		}
	}
	m, err := c.machineIn(zone, n.GetMachineType())
	if err != nil {
		return err
	}
	if err := checkBootDisk(m, n); err != nil {
		return err
	}
	if m.Accelerator == "" {
		return checkAttached(m, n.GetAccelerators())
	}
	for _, gpu := range n.GetAccelerators() {
		if gpu.GetAcceleratorType() != m.Accelerator || int(gpu.GetAcceleratorCount()) != m.AcceleratorCount {
			return invalid("Machine type %q has %d accelerators of type %q; %d of type %q cannot be attached.",
				m.Name, m.AcceleratorCount, m.Accelerator, gpu.GetAcceleratorCount(), gpu.GetAcceleratorType())
		}
	}
	if len(n.GetAccelerators()) == 0 {
		return invalid("Machine type %q requires accelerators of type %q.", m.Name, m.Accelerator)
	}
	return nil
}

// partitions are the parts that GPUs can be cut into.
// https://cloud.google.com/kubernetes-engine/docs/how-to/gpus-multi
var partitions = map[string][]string{
	"nvidia-tesla-a100":     {"1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"},
	"nvidia-a100-80gb":      {"1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"},
	"nvidia-h100-80gb":      {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "7g.80gb"},
	"nvidia-h100-mega-80gb": {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "7g.80gb"},
	"nvidia-h200-141gb":     {"1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "7g.141gb"},
}

// mostClients is how many may share a GPU.
// https://cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus
const mostClients = 48

// checkParts refuses parts that a GPU does not have, and too many that share one.
func checkParts(gpu *containerpb.AcceleratorConfig) error {
	sharing := gpu.GetGpuSharingConfig()
	switch part := gpu.GetGpuPartitionSize(); {
	case part != "" && !slices.Contains(partitions[gpu.GetAcceleratorType()], part):
		return invalid("GPU partition size %q is not supported by accelerator type %q.", part, gpu.GetAcceleratorType())
	case sharing != nil && (sharing.GetMaxSharedClientsPerGpu() < 2 || sharing.GetMaxSharedClientsPerGpu() > mostClients):
		return invalid("Invalid value for max_shared_clients_per_gpu: %d. Must be between 2 and %d.", sharing.GetMaxSharedClientsPerGpu(), mostClients)
	}
	return nil
}

// checkAttached refuses GPUs that cannot be attached to a machine without any of
// its own.
func checkAttached(m Machine, gpus []*containerpb.AcceleratorConfig) error {
	for _, gpu := range gpus {
		most, ok := attached[gpu.GetAcceleratorType()][gpu.GetAcceleratorCount()]
		switch {
		case !strings.HasPrefix(m.Name, "n1-") || attached[gpu.GetAcceleratorType()] == nil:
			return invalid("[%s, %s] accelerator type and machine type combination is not supported.", gpu.GetAcceleratorType(), m.Name)
		case !ok:
			return invalid("Number of accelerators %d of type %q is not supported.", gpu.GetAcceleratorCount(), gpu.GetAcceleratorType())
		case m.CPUs > most:
			return invalid("Machine type %q has %d CPUs; with %d of accelerator type %q it may have %d.", m.Name, m.CPUs, gpu.GetAcceleratorCount(), gpu.GetAcceleratorType(), most)
		}
	}
	return nil
}

// bootDisks are the types of disk that machines boot from: of Hyperdisk these two
// (https://cloud.google.com/compute/docs/disks/hd-types/hyperdisk-balanced-ha), and
// of these GKE takes the zonal one.
var bootDisks = []string{"pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced"}

// hyperOnly tells of machines that have no persistent disks: N4 and C4A of
// hashicorp/terraform-provider-google#19890 and #20247, C4, A3 Ultra and A4.
// https://cloud.google.com/compute/docs/disks/persistent-disks
func hyperOnly(machineType string) bool {
	return slices.ContainsFunc([]string{"n4-", "c4-", "c4a-", "a3-ultragpu-", "a4-"}, func(series string) bool { return strings.HasPrefix(machineType, series) })
}

// checkBootDisk refuses what a node cannot boot from; nothing declared is fine. The
// words of the second refusal are those of astronomer/astronomer#2463.
func checkBootDisk(m Machine, n *containerpb.NodeConfig) error {
	kind, size := n.GetDiskType(), int64(n.GetDiskSizeGb())
	standard(&kind, n.GetBootDisk().GetDiskType())
	standard(&size, n.GetBootDisk().GetSizeGb())
	switch {
	case kind != "" && !slices.Contains(bootDisks, kind):
		return invalid("Disk type %q is not supported for boot disks.", kind)
	case strings.HasPrefix(kind, "pd-") && hyperOnly(m.Name):
		return invalid("[%s, %s] features are not compatible for creating instance.", kind, m.Name)
	case size != 0 && size < 10:
		return invalid("Disk size %d GB is too small: a boot disk has 10 GB at least.", size)
	}
	return nil
}

// podBits is the size of a node's range of addresses: twice as many as it may have
// pods, as the next power of two (NetworkConfig.pod_cidr_overprovision_config of
// container v1, rancher/rancher#31110).
func podBits(pods int64) int32 { return int32(32 - bits.Len64(uint64(2*pods-1))) } //nolint:gosec // small and positive

// checkPods refuses a number of pods that no node has.
// https://cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr
func checkPods(limit *containerpb.MaxPodsConstraint) error {
	if n := limit.GetMaxPodsPerNode(); limit != nil && (n < 8 || n > 256) {
		return invalid("Invalid value for max_pods_per_node: %d. Must be between 8 and 256.", n)
	}
	return nil
}

// checkRangeName refuses the name of a secondary range that the cluster's
// subnetwork does not have.
func (c *Cloud) checkRangeName(k *containerpb.Cluster, region, field, name string) error {
	if name == "" {
		return nil
	}
	project := strings.Split(k.GetNetworkConfig().GetSubnetwork(), "/")[1]
	for _, sub := range c.subnetworks(project, region) {
		if sub.Name == k.GetSubnetwork() && slices.ContainsFunc(sub.SecondaryIpRanges, func(one *compute.SubnetworkSecondaryRange) bool { return one.RangeName == name }) {
			return nil
		}
	}
	return invalid("%s: subnetwork %q has no secondary range %q.", field, k.GetSubnetwork(), name)
}
