package gcptest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

const cluster = zoneA + "/clusters/c"

func (w world) read() *containerpb.Cluster {
	w.Helper()
	k, err := w.client.GetCluster(w.Context(), &containerpb.GetClusterRequest{Name: cluster})
	if err != nil {
		w.Fatal(err)
	}
	return k
}

func (w world) update(u *containerpb.ClusterUpdate) (*containerpb.Operation, error) {
	return w.client.UpdateCluster(w.Context(), &containerpb.UpdateClusterRequest{Name: cluster, Update: u})
}

func (w world) updatePool(r *containerpb.UpdateNodePoolRequest) (*containerpb.Operation, error) {
	r.Name = cluster + "/nodePools/p"
	return w.client.UpdateNodePool(w.Context(), r)
}

func gpus(n int64) *containerpb.NodeConfig {
	return &containerpb.NodeConfig{MachineType: fmt.Sprintf("a2-highgpu-%dg", n), Accelerators: []*containerpb.AcceleratorConfig{{AcceleratorType: "nvidia-tesla-a100", AcceleratorCount: n}}}
}

func TestRefusedClusters(t *testing.T) {
	one := []*containerpb.NodePool{{Name: "p", InitialNodeCount: 1}}
	tests := []struct {
		name    string
		cluster *containerpb.Cluster
		code    codes.Code
		words   string
	}{
		{"no pool", &containerpb.Cluster{Name: "k"}, codes.InvalidArgument, "Cluster.initial_node_count must be greater than zero."},
		{"a pool without nodes", &containerpb.Cluster{Name: "k", NodePools: []*containerpb.NodePool{{Name: "p"}}}, codes.InvalidArgument, "Cluster.initial_node_count must be greater than zero."},
		{"both ways", &containerpb.Cluster{Name: "k", InitialNodeCount: 1, NodePools: one}, codes.InvalidArgument, "may not be specified together"},
		{"taken", &containerpb.Cluster{Name: "c", NodePools: one}, codes.AlreadyExists, "Already exists: projects/stoke-test/zones/us-central1-a/clusters/c."},
		{"name", &containerpb.Cluster{Name: "K", NodePools: one}, codes.InvalidArgument, "cluster.name"},
		{"output only", &containerpb.Cluster{Name: "k", NodePools: one, Endpoint: "1.2.3.4"}, codes.InvalidArgument, "cluster.endpoint"},
		{"version", &containerpb.Cluster{Name: "k", NodePools: one, InitialClusterVersion: "1.2"}, codes.InvalidArgument, "unsupported"},
		{"network", &containerpb.Cluster{Name: "k", NodePools: one, Network: "nowhere"}, codes.InvalidArgument, "does not exist"},
		{"label", &containerpb.Cluster{Name: "k", NodePools: one, ResourceLabels: map[string]string{"A": "b"}}, codes.InvalidArgument, "label"},
	}
	transports(t, gcptest.Options{}, func(w world) {
		w.cluster(zoneA)
		before := w.cloud.Paths()
		for _, test := range tests {
			_, err := w.client.CreateCluster(w.Context(), &containerpb.CreateClusterRequest{Parent: zoneA, Cluster: test.cluster})
			w.Log(test.name)
			w.refused(err, test.code, test.words)
		}
		if got := w.cloud.Paths(); !cmp.Equal(got, before) {
			w.Errorf("a refused create left something: %v", got)
		}
	})
}

func TestOneFieldPerUpdate(t *testing.T) {
	transports(t, gcptest.Options{}, func(w world) {
		w.cluster(zoneA)
		monitoring := &containerpb.MonitoringConfig{ManagedPrometheusConfig: &containerpb.ManagedPrometheusConfig{}}
		_, err := w.update(&containerpb.ClusterUpdate{DesiredMonitoringConfig: monitoring, DesiredShieldedNodes: &containerpb.ShieldedNodes{}})
		w.refused(err, codes.InvalidArgument, "at most one field can be provided, not desired_monitoring_config, desired_shielded_nodes")
		_, err = w.update(&containerpb.ClusterUpdate{})
		w.refused(err, codes.InvalidArgument, "Must specify a field")

		k := w.read()
		w.done(w.update(&containerpb.ClusterUpdate{DesiredMonitoringConfig: monitoring, Etag: k.GetEtag()}))
		_, err = w.update(&containerpb.ClusterUpdate{DesiredMonitoringConfig: monitoring, Etag: k.GetEtag()})
		w.refused(err, codes.Aborted, "stale")
		after := w.read()
		if after.GetMonitoringConfig().GetManagedPrometheusConfig().GetEnabled() || len(after.GetMonitoringConfig().GetComponentConfig().GetEnableComponents()) == 0 {
			w.Errorf("the update is not merged: %v", after.GetMonitoringConfig())
		}
		w.done(w.update(&containerpb.ClusterUpdate{DesiredControlPlaneEndpointsConfig: &containerpb.ControlPlaneEndpointsConfig{
			DnsEndpointConfig: &containerpb.ControlPlaneEndpointsConfig_DNSEndpointConfig{AllowExternalTraffic: proto.Bool(true)},
		}}))
		endpoints := w.read().GetControlPlaneEndpointsConfig()
		if !endpoints.GetDnsEndpointConfig().GetAllowExternalTraffic() || endpoints.GetDnsEndpointConfig().GetEndpoint() == "" || !endpoints.GetIpEndpointsConfig().GetEnabled() {
			w.Errorf("the update is not merged: %v", endpoints)
		}
		w.done(w.update(&containerpb.ClusterUpdate{DesiredMasterVersion: "1.36"}))
		if got := w.read().GetCurrentMasterVersion(); got != gcptest.Versions[0] {
			w.Errorf("master is %s, want %s", got, gcptest.Versions[0])
		}
		w.done(w.client.UpdateMaster(w.Context(), &containerpb.UpdateMasterRequest{Name: cluster, MasterVersion: "latest"}))
		_, err = w.update(&containerpb.ClusterUpdate{DesiredMasterVersion: "1.35"})
		w.refused(err, codes.InvalidArgument, "downgraded")
	})
}

// TestEveryUpdateField sends each field of an update on its own, with some
// value: the double applies it where the cluster shows it, or says that it does
// not.
func TestEveryUpdateField(t *testing.T) {
	transports(t, gcptest.Options{Polls: -1}, func(w world) {
		w.cluster(zoneA)
		fields := (&containerpb.ClusterUpdate{}).ProtoReflect().Descriptor().Fields()
		applied := 0
		for i := range fields.Len() {
			f := fields.Get(i)
			u := &containerpb.ClusterUpdate{}
			u.ProtoReflect().Set(f, sample(u.ProtoReflect(), f))
			o, err := w.update(u)
			if err == nil {
				w.done(o, nil)
				applied++
			}
		}
		if applied < 30 {
			w.Errorf("only %d of %d fields are applied", applied, fields.Len())
		}
		if counts := w.cloud.Counts(); counts["UpdateCluster"] != fields.Len() {
			w.Errorf("%d updates arrived, want %d", counts["UpdateCluster"], fields.Len())
		}
	})
}

func sample(m protoreflect.Message, f protoreflect.FieldDescriptor) protoreflect.Value {
	v := m.NewField(f)
	switch {
	case f.IsList() && f.Kind() == protoreflect.StringKind:
		v.List().Append(protoreflect.ValueOfString("us-central1-a"))
	case f.Kind() == protoreflect.StringKind:
		return protoreflect.ValueOfString("1.36")
	case f.Kind() == protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case f.Kind() == protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case f.Kind() == protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(200)
	}
	return v
}

func TestEveryPoolField(t *testing.T) {
	transports(t, gcptest.Options{Polls: -1}, func(w world) {
		w.cluster(zoneA)
		w.done(w.pool(zoneA, &containerpb.NodePool{Name: "p", InitialNodeCount: 1}))
		fields := (&containerpb.UpdateNodePoolRequest{}).ProtoReflect().Descriptor().Fields()
		var refused []string
		for i := range fields.Len() {
			r := &containerpb.UpdateNodePoolRequest{}
			r.ProtoReflect().Set(fields.Get(i), sample(r.ProtoReflect(), fields.Get(i)))
			if o, err := w.updatePool(r); err != nil {
				refused = append(refused, string(fields.Get(i).Name()))
			} else {
				w.done(o, nil)
			}
		}
		want := []string{
			"project_id", "zone", "cluster_id", "node_pool_id", // given up by Google
			"node_version", // newer than the master
			"name", "etag", // nothing to change
			"image", "image_project", // of custom images, which the double has none of
			"accelerators", "machine_type", "disk_type", "upgrade_settings", "flex_start", // not these values
		}
		slices.Sort(want)
		slices.Sort(refused)
		if diff := cmp.Diff(want, refused); diff != "" {
			w.Errorf("fields refused (-want +got):\n%s", diff)
		}
	})
}

func TestPoolUpdates(t *testing.T) {
	transports(t, gcptest.Options{}, func(w world) {
		w.cluster(zoneA)
		w.done(w.pool(zoneA, &containerpb.NodePool{Name: "p", InitialNodeCount: 1, Config: gpus(1)}))
		p := w.get(cluster + "/nodePools/p")
		_, err := w.updatePool(&containerpb.UpdateNodePoolRequest{Locations: []string{"us-central1-a"}, MachineType: "a2-highgpu-2g"})
		w.refused(err, codes.InvalidArgument, "together")
		other := gpus(2).GetAccelerators()
		_, err = w.updatePool(&containerpb.UpdateNodePoolRequest{Accelerators: other})
		w.refused(err, codes.InvalidArgument, "Accelerator count: 2 should not be updated")
		_, err = w.updatePool(&containerpb.UpdateNodePoolRequest{Etag: "old", ImageType: "UBUNTU_CONTAINERD"})
		w.refused(err, codes.Aborted, "stale")

		shared := proto.Clone(p.GetConfig().GetAccelerators()[0]).(*containerpb.AcceleratorConfig)
		shared.GpuSharingConfig = &containerpb.GPUSharingConfig{MaxSharedClientsPerGpu: 2, GpuSharingStrategy: containerpb.GPUSharingConfig_TIME_SHARING.Enum()}
		w.done(w.updatePool(&containerpb.UpdateNodePoolRequest{Etag: p.GetEtag(), Accelerators: []*containerpb.AcceleratorConfig{shared}, ImageType: "UBUNTU_CONTAINERD"}))
		if got := w.cloud.Recreations(cluster + "/nodePools/p"); got != 1 {
			w.Errorf("nodes were made anew %d times, want once", got)
		}
		after := w.get(cluster + "/nodePools/p")
		if diff := cmp.Diff(shared, after.GetConfig().GetAccelerators()[0], protocmp.Transform()); diff != "" {
			w.Errorf("accelerators (-sent +read):\n%s", diff)
		}
		// Labels and taints replace: GKE's own go away unless they are sent again.
		w.done(w.updatePool(&containerpb.UpdateNodePoolRequest{Taints: &containerpb.NodeTaints{}, ResourceLabels: &containerpb.ResourceLabels{Labels: map[string]string{"a": "b"}}}))
		after = w.get(cluster + "/nodePools/p")
		if len(after.GetConfig().GetTaints()) != 0 || len(after.GetConfig().GetResourceLabels()) != 1 {
			w.Errorf("taints %v and labels %v are not replaced", after.GetConfig().GetTaints(), after.GetConfig().GetResourceLabels())
		}
		if got := w.cloud.Recreations(cluster + "/nodePools/p"); got != 1 {
			w.Errorf("nodes were made anew %d times, want once", got)
		}
	})
}

func TestServerFillsIn(t *testing.T) {
	transports(t, gcptest.Options{}, func(w world) {
		// Without any other nodes, GPU pools get no taint.
		w.done(w.client.CreateCluster(w.Context(), &containerpb.CreateClusterRequest{Parent: zoneA, Cluster: &containerpb.Cluster{
			Name: "c", NodePools: []*containerpb.NodePool{{Name: "p", InitialNodeCount: 1, Config: gpus(1)}},
			AddonsConfig: &containerpb.AddonsConfig{GcePersistentDiskCsiDriverConfig: &containerpb.GcePersistentDiskCsiDriverConfig{}},
		}}))
		p := w.get(cluster + "/nodePools/p")
		if len(p.GetConfig().GetTaints()) != 0 {
			w.Errorf("taints: %v", p.GetConfig().GetTaints())
		}
		if v := p.GetConfig().GetAccelerators()[0].GetGpuDriverInstallationConfig().GetGpuDriverVersion(); v != containerpb.GPUDriverInstallationConfig_DEFAULT {
			w.Errorf("driver: %v", v)
		}
		if !w.read().GetAddonsConfig().GetGcePersistentDiskCsiDriverConfig().GetEnabled() {
			w.Error("the driver of persistent disks is off")
		}
		for _, on := range []bool{false, true} {
			w.done(w.client.UpdateCluster(w.Context(), &containerpb.UpdateClusterRequest{Name: cluster, Update: &containerpb.ClusterUpdate{
				DesiredAddonsConfig: &containerpb.AddonsConfig{GcePersistentDiskCsiDriverConfig: &containerpb.GcePersistentDiskCsiDriverConfig{Enabled: on}}}}))
			if w.read().GetAddonsConfig().GetGcePersistentDiskCsiDriverConfig().GetEnabled() != on {
				w.Errorf("the driver of persistent disks is not switched to %v", on)
			}
		}
		config := p.GetConfig()
		if config.GetMetadata()["disable-legacy-endpoints"] != "true" || config.GetBootDisk().GetSizeGb() != 100 || config.GetServiceAccount() != "default" ||
			!p.GetManagement().GetAutoUpgrade() || p.GetUpgradeSettings().GetMaxSurge() != 1 {
			w.Errorf("not filled in: %v", p)
		}
	})
}

func TestRefusedPools(t *testing.T) {
	none := &containerpb.ReservationAffinity{ConsumeReservationType: containerpb.ReservationAffinity_NO_RESERVATION}
	tests := []struct {
		pool  *containerpb.NodePool
		words string
	}{
		{&containerpb.NodePool{InitialNodeCount: 1, Management: &containerpb.NodeManagement{AutoRepair: true}}, "Auto_upgrade and auto_repair cannot be false when release_channel REGULAR is set."},
		{&containerpb.NodePool{InitialNodeCount: 1, Config: &containerpb.NodeConfig{MachineType: "a3-ultragpu-8g", Accelerators: []*containerpb.AcceleratorConfig{{AcceleratorType: "nvidia-gb200", AcceleratorCount: 8}}}}, `"nvidia-gb200" does not exist in zone us-central1-a`},
		{&containerpb.NodePool{InitialNodeCount: 1, Config: &containerpb.NodeConfig{MachineType: "g9-huge"}}, `"g9-huge" does not exist`},
		{&containerpb.NodePool{InitialNodeCount: 1, Config: &containerpb.NodeConfig{MachineType: "a2-highgpu-2g", Accelerators: gpus(1).Accelerators}}, "cannot be attached"},
		{&containerpb.NodePool{InitialNodeCount: 1, Config: &containerpb.NodeConfig{FlexStart: proto.Bool(true), ReservationAffinity: none}}, "Flex-start requires autoscaling"},
		{&containerpb.NodePool{InitialNodeCount: 1, Config: &containerpb.NodeConfig{FlexStart: proto.Bool(true), Spot: true}}, "Flex-start cannot"},
		{&containerpb.NodePool{QueuedProvisioning: &containerpb.NodePool_QueuedProvisioning{Enabled: true}}, "NO_RESERVATION"},
		{&containerpb.NodePool{Autoscaling: &containerpb.NodePoolAutoscaling{Enabled: true, MaxNodeCount: 1, TotalMaxNodeCount: 2}}, "Only one of"},
		{&containerpb.NodePool{Status: containerpb.NodePool_RUNNING}, "nodePool.status"},
	}
	transports(t, gcptest.Options{}, func(w world) {
		w.cluster(zoneA)
		for _, test := range tests {
			p := proto.Clone(test.pool).(*containerpb.NodePool)
			p.Name = "p"
			_, err := w.pool(zoneA, p)
			w.refused(err, codes.InvalidArgument, test.words)
		}
		if got := len(w.cloud.Inventory()); got != 2 {
			w.Errorf("%d objects, want the cluster and its first pool", got)
		}
	})
}

func TestConflicts(t *testing.T) {
	transports(t, gcptest.Options{Polls: 3}, func(w world) {
		w.cluster(zoneA)
		var last *containerpb.Operation
		for i := range 5 {
			o, err := w.pool(zoneA, &containerpb.NodePool{Name: fmt.Sprintf("p%d", i), InitialNodeCount: 1})
			if err != nil {
				w.Fatal(err)
			}
			last = o
		}
		_, err := w.pool(zoneA, &containerpb.NodePool{Name: "p5", InitialNodeCount: 1})
		w.refused(err, codes.ResourceExhausted, `Too many operations: cluster "c" hits the concurrent operations quota 5, please try again later.`)
		_, err = w.client.SetNodePoolSize(w.Context(), &containerpb.SetNodePoolSizeRequest{Name: cluster + "/nodePools/p4", NodeCount: 2})
		w.refused(err, codes.FailedPrecondition, "Cluster is running incompatible operation "+last.GetName()+".")
		_, err = w.update(&containerpb.ClusterUpdate{DesiredShieldedNodes: &containerpb.ShieldedNodes{}})
		w.refused(err, codes.FailedPrecondition, "incompatible operation")
		listed, err := w.client.ListOperations(w.Context(), &containerpb.ListOperationsRequest{Parent: zoneA})
		if err != nil || len(listed.GetOperations()) != 6 {
			w.Errorf("%d operations listed, %v; want 6", len(listed.GetOperations()), err)
		}
		if link := listed.GetOperations()[5].GetTargetLink(); !strings.HasSuffix(link, "/v1/projects/123456789012/zones/us-central1-a/clusters/c/nodePools/p4") {
			w.Errorf("target is %s", link)
		}
		w.cloud.Settle()
		if running := w.cloud.Running(); len(running) != 0 {
			w.Errorf("still running: %v", running)
		}
	})
}
