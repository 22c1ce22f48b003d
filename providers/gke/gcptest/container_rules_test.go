package gcptest_test

import (
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	compute "google.golang.org/api/compute/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// node is the configuration of one machine with GPUs of a type, or without.
func node(machine, gpu string, count int64) *containerpb.NodeConfig {
	n := &containerpb.NodeConfig{MachineType: machine}
	if gpu != "" {
		n.Accelerators = []*containerpb.AcceleratorConfig{{AcceleratorType: gpu, AcceleratorCount: count}}
	}
	return n
}

func pods(n int64) *containerpb.MaxPodsConstraint {
	return &containerpb.MaxPodsConstraint{MaxPodsPerNode: n}
}

func TestPoolRules(t *testing.T) {
	disk := func(machine, kind string, size int32) *containerpb.NodeConfig {
		return &containerpb.NodeConfig{MachineType: machine, DiskType: kind, DiskSizeGb: size}
	}
	parted := func(n *containerpb.NodeConfig, part string, clients int64) *containerpb.NodeConfig {
		if n.Accelerators[0].GpuPartitionSize = part; clients != 0 {
			n.Accelerators[0].GpuSharingConfig = &containerpb.GPUSharingConfig{MaxSharedClientsPerGpu: clients, GpuSharingStrategy: containerpb.GPUSharingConfig_TIME_SHARING.Enum()}
		}
		return n
	}
	tests := []struct {
		pool  *containerpb.NodePool
		words string // "" for what is fine
	}{
		{&containerpb.NodePool{Name: "Pool"}, "Must be a match of regex"},
		{&containerpb.NodePool{Name: "pool-"}, "Must be a match of regex"},
		{&containerpb.NodePool{Name: strings.Repeat("a", 41)}, "no longer than 40 characters"},
		{&containerpb.NodePool{Version: "1.36"}, `desired node version "1.36.2-gke.1400" cannot be greater than current master version "1.35.6-gke.1250".`},
		{&containerpb.NodePool{Version: "1.34"}, ""},
		{&containerpb.NodePool{MaxPodsConstraint: pods(7)}, "between 8 and 256"},
		{&containerpb.NodePool{MaxPodsConstraint: pods(257)}, "between 8 and 256"},
		{&containerpb.NodePool{NetworkConfig: &containerpb.NodeNetworkConfig{PodRange: "nowhere"}}, `no secondary range "nowhere"`},
		{&containerpb.NodePool{NetworkConfig: &containerpb.NodeNetworkConfig{PodRange: "pods"}}, ""},
		{&containerpb.NodePool{NetworkConfig: &containerpb.NodeNetworkConfig{PodRange: "mine", CreatePodRange: true}}, ""},
		{&containerpb.NodePool{Config: node("n1-standard-4", "nvidia-l4", 1)}, "combination is not supported"},
		{&containerpb.NodePool{Config: node("n2-standard-4", "nvidia-tesla-t4", 1)}, "combination is not supported"},
		{&containerpb.NodePool{Config: node("n1-standard-4", "nvidia-tesla-t4", 3)}, "Number of accelerators 3"},
		{&containerpb.NodePool{Config: node("n1-standard-16", "nvidia-tesla-v100", 1)}, "has 16 CPUs; with 1"},
		{&containerpb.NodePool{Config: node("n1-standard-16", "nvidia-tesla-v100", 2)}, ""},
		{&containerpb.NodePool{Config: parted(node("g2-standard-4", "nvidia-l4", 1), "1g.5gb", 0)}, `partition size "1g.5gb" is not supported by accelerator type "nvidia-l4"`},
		{&containerpb.NodePool{Config: parted(node("a2-ultragpu-1g", "nvidia-a100-80gb", 1), "1g.5gb", 0)}, "partition size"},
		{&containerpb.NodePool{Config: parted(gpus(1), "1g.5gb", 2)}, ""},
		{&containerpb.NodePool{Config: parted(gpus(1), "", 1)}, "between 2 and 48"},
		{&containerpb.NodePool{Config: parted(gpus(1), "", 49)}, "between 2 and 48"},
		{&containerpb.NodePool{Config: disk("n4-standard-2", "pd-balanced", 100)}, "[pd-balanced, n4-standard-2] features are not compatible for creating instance."},
		{&containerpb.NodePool{Config: disk("n4-standard-2", "", 100)}, ""},
		{&containerpb.NodePool{Config: disk("n2-standard-2", "hyperdisk-ml", 100)}, `Disk type "hyperdisk-ml" is not supported`},
		{&containerpb.NodePool{Config: disk("n2-standard-2", "pd-ssd", 9)}, "10 GB at least"},
	}
	secondary := []*compute.SubnetworkSecondaryRange{{RangeName: "pods", IpCidrRange: "10.1.0.0/16"}}
	transports(t, gcptest.Options{Subnetworks: []*compute.Subnetwork{{Name: "default", Region: "us-central1", SecondaryIpRanges: secondary}}}, func(w world) {
		w.cluster(zoneA)
		for _, test := range tests {
			p := proto.Clone(test.pool).(*containerpb.NodePool)
			if p.InitialNodeCount = 1; p.Name == "" {
				p.Name = "p"
			}
			o, err := w.pool(zoneA, p)
			if test.words != "" {
				w.refused(err, codes.InvalidArgument, test.words)
				continue
			}
			w.done(o, err)
			w.done(w.client.DeleteNodePool(w.Context(), &containerpb.DeleteNodePoolRequest{Name: cluster + "/nodePools/p"}))
		}
		for n, size := range map[int64]int32{8: 28, 32: 26, 55: 25, 110: 24, 256: 23} {
			w.done(w.pool(zoneA, &containerpb.NodePool{Name: "p", InitialNodeCount: 1, MaxPodsConstraint: pods(n)}))
			if got := w.get(cluster + "/nodePools/p").GetPodIpv4CidrSize(); got != size {
				w.Errorf("a node with %d pods has a /%d, want /%d", n, got, size)
			}
			w.done(w.client.DeleteNodePool(w.Context(), &containerpb.DeleteNodePoolRequest{Name: cluster + "/nodePools/p"}))
		}
		w.done(w.pool(zoneA, &containerpb.NodePool{Name: "p", InitialNodeCount: 1, Config: disk("n4-standard-2", "", 0)}))
		if got := w.get(cluster + "/nodePools/p").GetConfig().GetDiskType(); got != "hyperdisk-balanced" {
			w.Errorf("n4 boots from %s", got)
		}
		for words, r := range map[string]*containerpb.UpdateNodePoolRequest{
			"cannot be greater than":      {NodeVersion: "1.36"},
			"features are not compatible": {DiskType: "pd-ssd"},
			`"g9-huge" does not exist`:    {MachineType: "g9-huge"},
			"violates format constraints": {ResourceLabels: &containerpb.ResourceLabels{Labels: map[string]string{"A": "b"}}},
			"Locations cannot be updated": {Locations: []string{"us-central1-a"}, ImageType: "COS_CONTAINERD"},
			"At least one of the fields":  {},
			"is not in region":            {Locations: []string{"europe-west4-a"}},
			"cannot be added or removed":  {Accelerators: gpus(1).GetAccelerators()},
			"cannot both be zero":         {UpgradeSettings: &containerpb.NodePool_UpgradeSettings{}},
		} {
			_, err := w.updatePool(r)
			w.refused(err, codes.InvalidArgument, words)
		}
	})
}

func TestClusterRules(t *testing.T) {
	one := []*containerpb.NodePool{{Name: "p", InitialNodeCount: 1}}
	ranges := func(pods, services string) *containerpb.Cluster {
		return &containerpb.Cluster{IpAllocationPolicy: &containerpb.IPAllocationPolicy{ClusterSecondaryRangeName: pods, ServicesSecondaryRangeName: services}}
	}
	workload := func(pool string) *containerpb.WorkloadIdentityConfig {
		return &containerpb.WorkloadIdentityConfig{WorkloadPool: pool}
	}
	secondary := []*compute.SubnetworkSecondaryRange{{RangeName: "pods", IpCidrRange: "10.1.0.0/16"}, {RangeName: "services", IpCidrRange: "10.2.0.0/20"}}
	transports(t, gcptest.Options{Subnetworks: []*compute.Subnetwork{{Name: "default", Region: "us-central1", SecondaryIpRanges: secondary}}}, func(w world) {
		for words, k := range map[string]*containerpb.Cluster{
			"no longer than 40 characters":     {Name: strings.Repeat("a", 41)},
			"violates format constraints":      {ResourceLabels: map[string]string{"a": "B"}},
			"between 8 and 256":                {DefaultMaxPodsConstraint: pods(300)},
			`no secondary range "x"`:           ranges("x", "services"),
			`no secondary range "y"`:           ranges("pods", "y"),
			`must be "stoke-test.svc.id.goog"`: {WorkloadIdentityConfig: workload("other.svc.id.goog")},
		} {
			k = proto.Clone(k).(*containerpb.Cluster)
			if k.NodePools = one; k.Name == "" {
				k.Name = "c"
			}
			_, err := w.client.CreateCluster(w.Context(), &containerpb.CreateClusterRequest{Parent: zoneA, Cluster: k})
			w.refused(err, codes.InvalidArgument, words)
		}
		k := ranges("pods", "services")
		k.Name, k.NodePools, k.InitialClusterVersion, k.WorkloadIdentityConfig = "c", one, "1.34", workload("stoke-test.svc.id.goog")
		w.done(w.client.CreateCluster(w.Context(), &containerpb.CreateClusterRequest{Parent: zoneA, Cluster: k}))
		const skips = "Master version 1.34.9-gke.1700 cannot be upgraded to 1.36.2-gke.1400: cannot upgrade the master more than a minor version at a time."
		_, err := w.update(&containerpb.ClusterUpdate{DesiredMasterVersion: "1.36"})
		w.refused(err, codes.InvalidArgument, skips)
		_, err = w.client.UpdateMaster(w.Context(), &containerpb.UpdateMasterRequest{Name: cluster, MasterVersion: "latest"})
		w.refused(err, codes.InvalidArgument, skips)
		w.done(w.update(&containerpb.ClusterUpdate{DesiredMasterVersion: "1.35"}))
		w.done(w.update(&containerpb.ClusterUpdate{DesiredMasterVersion: "1.36"}))
		_, err = w.update(&containerpb.ClusterUpdate{DesiredWorkloadIdentityConfig: workload("other.svc.id.goog")})
		w.refused(err, codes.InvalidArgument, "Invalid workload pool")
	})
}
