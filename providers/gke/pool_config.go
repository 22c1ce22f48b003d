package gke

import (
	"slices"
	"strconv"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// render renders the request for the pool.
func (m *poolModel) render(j job, mark string, n int) *containerpb.NodePool {
	labels := j.cloud.Marked(texts(m.ResourceLabels), mark)
	if n > 0 {
		labels[cloud.Step] = strconv.Itoa(n)
	}
	config := &containerpb.NodeConfig{
		MachineType: m.MachineType.ValueString(), DiskType: m.DiskType.ValueString(), DiskSizeGb: int32(m.DiskSize.ValueInt64()), //nolint:gosec // GiB
		ImageType: m.ImageType.ValueString(), Labels: texts(m.Labels), Tags: list(m.Tags), Taints: m.taints(nil), ResourceLabels: labels,
		ServiceAccount: m.ServiceAccount.ValueString(), OauthScopes: list(m.Scopes), Spot: m.Spot.ValueBool(),
		Accelerators: m.accelerators(),
	}
	if len(config.OauthScopes) == 0 {
		config.OauthScopes = []string{"https://www.googleapis.com/auth/cloud-platform"}
	}
	if m.FlexStart.ValueBool() {
		flex := true
		config.FlexStart = &flex
	}
	config.ReservationAffinity = m.affinity()
	if isGiven(m.WorkloadMetadata) {
		config.WorkloadMetadataConfig = m.metadata()
	}
	if k := m.LocalSSDs.ValueInt64(); k > 0 {
		config.EphemeralStorageLocalSsdConfig = &containerpb.EphemeralStorageLocalSsdConfig{LocalSsdCount: int32(k)} //nolint:gosec // a few
	}
	if k := m.RawSSDs.ValueInt64(); k > 0 {
		config.LocalNvmeSsdBlockConfig = &containerpb.LocalNvmeSsdBlockConfig{LocalSsdCount: int32(k)} //nolint:gosec // a few
	}
	m.settings(config)
	if isGiven(m.ImageStreaming) {
		config.GcfsConfig = &containerpb.GcfsConfig{Enabled: m.ImageStreaming.ValueBool()}
	}
	if isGiven(m.GVNIC) {
		config.Gvnic = &containerpb.VirtualNIC{Enabled: m.GVNIC.ValueBool()}
	}
	if isGiven(m.FastSocket) {
		config.FastSocket = &containerpb.FastSocket{Enabled: m.FastSocket.ValueBool()}
	}
	p := &containerpb.NodePool{Name: m.Name.ValueString(), Config: config, Locations: list(m.Zones)}
	if v := m.Version.ValueString(); strings.Contains(v, wholeVersion) { // otherwise the version of the control plane
		p.Version = v
	}
	m.policies(p)
	return p
}

// policies sets the parts of the pool other than the nodes' configuration.
func (m *poolModel) policies(p *containerpb.NodePool) {
	if isGiven(m.Autoscaling) {
		p.Autoscaling = m.scaling().render()
	}
	flex := m.FlexStart.ValueBool()
	if isGiven(m.AutoRepair) || isGiven(m.AutoUpgrade) || flex {
		p.Management = m.management()
	}
	if !flex && !m.Queued.ValueBool() && (isGiven(m.MaxSurge) || isGiven(m.MaxUnavailable) || isGiven(m.BlueGreen)) { // those upgrade by SHORT_LIVED, and by nothing else
		p.UpgradeSettings = m.upgrade()
	}
	if isGiven(m.Drain) {
		p.NodeDrainConfig = m.drain()
	}
	if m.Excluded.ValueBool() {
		p.MaintenancePolicy = m.maintenance()
	}
	if k := m.PodsPerNode.ValueInt64(); k > 0 {
		p.MaxPodsConstraint = &containerpb.MaxPodsConstraint{MaxPodsPerNode: k}
	}
	if r := m.PodRange.ValueString(); r != "" {
		p.NetworkConfig = &containerpb.NodeNetworkConfig{PodRange: r}
	}
	if m.Compact.ValueBool() {
		p.PlacementPolicy = &containerpb.NodePool_PlacementPolicy{Type: containerpb.NodePool_PlacementPolicy_COMPACT}
	}
	if m.Queued.ValueBool() {
		p.QueuedProvisioning = &containerpb.NodePool_QueuedProvisioning{Enabled: true}
	}
}

// settings sets the grouped settings, and arguments that only count at
// creation.
func (m *poolModel) settings(config *containerpb.NodeConfig) {
	if isGiven(m.Kubelet) {
		config.KubeletConfig = m.kubelet()
	}
	if isGiven(m.Linux) {
		config.LinuxNodeConfig = m.linux()
	}
	config.MaxRunDuration = duration(m.MaxRun)
	for _, d := range elementsOf[bootDiskModel](m.BootDisks) {
		config.SecondaryBootDisks = append(config.SecondaryBootDisks, &containerpb.SecondaryBootDisk{
			DiskImage: d.Image.ValueString(), Mode: containerpb.SecondaryBootDisk_Mode(containerpb.SecondaryBootDisk_Mode_value[d.Mode.ValueString()])})
	}
}

// maintenance keeps Google from upgrading nodes while their version is supported.
func (m *poolModel) maintenance() *containerpb.NodePool_NodePoolMaintenancePolicy {
	return &containerpb.NodePool_NodePoolMaintenancePolicy{ExclusionUntilEndOfSupport: &containerpb.NodePool_ExclusionUntilEndOfSupport{Enabled: m.Excluded.ValueBool()}}
}

// affinity is where machines are taken from. Flex-start, queued and spot ones
// never come from reservations.
func (m *poolModel) affinity() *containerpb.ReservationAffinity {
	switch r := m.Reservation.ValueString(); {
	case r != "":
		return &containerpb.ReservationAffinity{ConsumeReservationType: containerpb.ReservationAffinity_SPECIFIC_RESERVATION, Key: "compute.googleapis.com/reservation-name", Values: []string{r}}
	case m.FlexStart.ValueBool() || m.Queued.ValueBool() || m.Spot.ValueBool():
		return &containerpb.ReservationAffinity{ConsumeReservationType: containerpb.ReservationAffinity_NO_RESERVATION}
	}
	return nil
}

func (m *poolModel) metadata() *containerpb.WorkloadMetadataConfig {
	return &containerpb.WorkloadMetadataConfig{Mode: containerpb.WorkloadMetadataConfig_Mode(containerpb.WorkloadMetadataConfig_Mode_value[m.WorkloadMetadata.ValueString()])}
}

// management is as declared, on where nothing is: false there would be a choice.
func (m *poolModel) management() *containerpb.NodeManagement {
	on := func(v types.Bool, otherwise bool) bool {
		if isGiven(v) {
			return v.ValueBool()
		}
		return otherwise
	}
	return &containerpb.NodeManagement{AutoRepair: on(m.AutoRepair, !m.FlexStart.ValueBool()), AutoUpgrade: on(m.AutoUpgrade, true)}
}

func (s *scalingModel) render() *containerpb.NodePoolAutoscaling {
	if s == nil {
		return &containerpb.NodePoolAutoscaling{}
	}
	return &containerpb.NodePoolAutoscaling{
		Enabled: true, MinNodeCount: int32(s.Min.ValueInt64()), MaxNodeCount: int32(s.Max.ValueInt64()), //nolint:gosec // nodes
		TotalMinNodeCount: int32(s.TotalMin.ValueInt64()), TotalMaxNodeCount: int32(s.TotalMax.ValueInt64()), //nolint:gosec // nodes
		LocationPolicy: containerpb.NodePoolAutoscaling_LocationPolicy(containerpb.NodePoolAutoscaling_LocationPolicy_value[s.Location.ValueString()]),
	}
}

func (m *poolModel) accelerators() []*containerpb.AcceleratorConfig {
	a := m.gpus()
	if a == nil {
		return nil
	}
	out := &containerpb.AcceleratorConfig{AcceleratorType: a.Type.ValueString(), AcceleratorCount: a.Count.ValueInt64(), GpuPartitionSize: a.Partition.ValueString()}
	if s := a.Sharing.ValueString(); s != "" {
		strategy := containerpb.GPUSharingConfig_GPUSharingStrategy(containerpb.GPUSharingConfig_GPUSharingStrategy_value[s])
		out.GpuSharingConfig = &containerpb.GPUSharingConfig{GpuSharingStrategy: &strategy, MaxSharedClientsPerGpu: a.Clients.ValueInt64()}
	}
	if d := a.Driver.ValueString(); d != "" {
		version := containerpb.GPUDriverInstallationConfig_GPUDriverVersion(containerpb.GPUDriverInstallationConfig_GPUDriverVersion_value[d])
		out.GpuDriverInstallationConfig = &containerpb.GPUDriverInstallationConfig{GpuDriverVersion: &version}
	}
	return []*containerpb.AcceleratorConfig{out}
}

// taints returns the declared taints and the existing taints of GKE: a request
// replaces all.
func (m *poolModel) taints(there []*containerpb.NodeTaint) []*containerpb.NodeTaint {
	var all []*containerpb.NodeTaint
	for _, t := range elementsOf[taintModel](m.Taints) {
		all = append(all, &containerpb.NodeTaint{Key: t.Key.ValueString(), Value: t.Value.ValueString(), Effect: containerpb.NodeTaint_Effect(containerpb.NodeTaint_Effect_value[t.Effect.ValueString()])})
	}
	for _, t := range there {
		if isGKETaint(t) && !m.declares(t) {
			all = append(all, t)
		}
	}
	return all
}

// isGKETaint reports whether GKE sets a taint by itself: for GPUs and TPUs, for queued
// pools, and where images for other machines would not run, such as on Arm
// (hashicorp/terraform-provider-google#13308).
func isGKETaint(t *containerpb.NodeTaint) bool {
	switch t.GetKey() {
	case "nvidia.com/gpu":
		return t.GetValue() == "present"
	case "cloud.google.com/gke-queued", "google.com/tpu", "kubernetes.io/arch", "node.kubernetes.io/os", "sandbox.gke.io/runtime":
		return true
	}
	return false
}

func (m *poolModel) declares(t *containerpb.NodeTaint) bool {
	return slices.ContainsFunc(elementsOf[taintModel](m.Taints), func(d taintModel) bool {
		return d.Key.ValueString() == t.GetKey() && d.Effect.ValueString() == t.GetEffect().String()
	})
}
