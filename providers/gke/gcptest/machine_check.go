package gcptest

import (
	"math/bits"
	"slices"
	"strings"

	compute "google.golang.org/api/compute/v1"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/stokehq/stoke/providers/gke/catalogue"
)

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
	if m.GPU == "" {
		return checkAttached(m, n.GetAccelerators())
	}
	for _, gpu := range n.GetAccelerators() {
		if gpu.GetAcceleratorType() != m.GPU || gpu.GetAcceleratorCount() != m.GPUs {
			return invalid("Machine type %q has %d accelerators of type %q; %d of type %q cannot be attached.",
				m.Name, m.GPUs, m.GPU, gpu.GetAcceleratorCount(), gpu.GetAcceleratorType())
		}
	}
	if len(n.GetAccelerators()) == 0 {
		return invalid("Machine type %q requires accelerators of type %q.", m.Name, m.GPU)
	}
	return nil
}

// maxClients is how many may share a GPU.
// https://cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus
const maxClients = 48

// checkParts refuses parts that a GPU does not have, and too many that share one.
func checkParts(gpu *containerpb.AcceleratorConfig) error {
	sharing := gpu.GetGpuSharingConfig()
	switch part := gpu.GetGpuPartitionSize(); {
	case part != "" && catalogue.Partitions[gpu.GetAcceleratorType()][part] == 0:
		return invalid("GPU partition size %q is not supported by accelerator type %q.", part, gpu.GetAcceleratorType())
	case sharing != nil && (sharing.GetMaxSharedClientsPerGpu() < 2 || sharing.GetMaxSharedClientsPerGpu() > maxClients):
		return invalid("Invalid value for max_shared_clients_per_gpu: %d. Must be between 2 and %d.", sharing.GetMaxSharedClientsPerGpu(), maxClients)
	}
	return nil
}

// checkAttached refuses GPUs that cannot be attached to a machine without any of
// its own.
func checkAttached(m catalogue.Machine, gpus []*containerpb.AcceleratorConfig) error {
	for _, gpu := range gpus {
		most, ok := catalogue.Attached[gpu.GetAcceleratorType()][gpu.GetAcceleratorCount()]
		switch {
		case !strings.HasPrefix(m.Name, "n1-") || catalogue.Attached[gpu.GetAcceleratorType()] == nil:
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

// checkBootDisk refuses what a node cannot boot from; nothing declared is fine. The
// words of the second refusal are those of astronomer/astronomer#2463.
func checkBootDisk(m catalogue.Machine, n *containerpb.NodeConfig) error {
	kind, size := n.GetDiskType(), int64(n.GetDiskSizeGb())
	standard(&kind, n.GetBootDisk().GetDiskType())
	standard(&size, n.GetBootDisk().GetSizeGb())
	switch {
	case kind != "" && !slices.Contains(bootDisks, kind):
		return invalid("Disk type %q is not supported for boot disks.", kind)
	case strings.HasPrefix(kind, "pd-") && catalogue.Hyperdisk(m.Name):
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
