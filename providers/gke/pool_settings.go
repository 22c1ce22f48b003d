package gke

import (
	"context"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stokehq/stoke/providers/connect"
)

// Grouped settings are compared where they are declared, and otherwise left to
// Google; a removed group returns to Google's choice.

// kubeletModel has the settings of the kubelet of each node.
type kubeletModel struct {
	CPUManager     types.String `tfsdk:"cpu_manager_policy"`
	CFSQuota       types.Bool   `tfsdk:"cpu_cfs_quota"`
	CFSPeriod      types.String `tfsdk:"cpu_cfs_quota_period"`
	PIDs           types.Int64  `tfsdk:"pod_pids_limit"`
	Topology       types.String `tfsdk:"topology_manager_policy"`
	Memory         types.String `tfsdk:"memory_manager_policy"`
	ReadOnlyPort   types.Bool   `tfsdk:"insecure_readonly_port"`
	LogMaxSize     types.String `tfsdk:"container_log_max_size"`
	LogMaxFiles    types.Int64  `tfsdk:"container_log_max_files"`
	ParallelPulls  types.Int64  `tfsdk:"max_parallel_image_pulls"`
	UnsafeSysctls  types.Set    `tfsdk:"allowed_unsafe_sysctls"`
	SingleOOMKills types.Bool   `tfsdk:"single_process_oom_kill"`
}

// linuxModel has the settings of the kernel of each node.
type linuxModel struct {
	Sysctls  types.Map    `tfsdk:"sysctls"`
	Cgroup   types.String `tfsdk:"cgroup_mode"`
	Huge2M   types.Int64  `tfsdk:"hugepages_2m"`
	Huge1G   types.Int64  `tfsdk:"hugepages_1g"`
	HugeAuto types.String `tfsdk:"transparent_hugepage"`
}

// drainModel is how nodes are drained before they are recreated.
type drainModel struct {
	PDB     types.String `tfsdk:"pdb_timeout"`
	Grace   types.String `tfsdk:"grace_termination"`
	Respect types.Bool   `tfsdk:"respect_pdb_on_deletion"`
}

// blueGreenModel is an upgrade that doubles all nodes for a while.
type blueGreenModel struct {
	Percentage types.Float64 `tfsdk:"batch_percentage"`
	Count      types.Int64   `tfsdk:"batch_node_count"`
	BatchSoak  types.String  `tfsdk:"batch_soak"`
	PoolSoak   types.String  `tfsdk:"pool_soak"`
}

// bootDiskModel is a disk with container images or data, which each node has.
type bootDiskModel struct {
	Image types.String `tfsdk:"disk_image"`
	Mode  types.String `tfsdk:"mode"`
}

func optionalText(description string) schema.Attribute {
	return schema.StringAttribute{Optional: true, Description: description}
}

func optionalNumber(description string) schema.Attribute {
	return schema.Int64Attribute{Optional: true, Description: description}
}

func optionalFlag(description string) schema.Attribute {
	return schema.BoolAttribute{Optional: true, Description: description}
}

func kubeletSchema() schema.Attribute {
	return schema.SingleNestedAttribute{Optional: true, Description: "Settings of the kubelet. A change recreates " +
		"the nodes.", Attributes: map[string]schema.Attribute{
		"cpu_manager_policy":       optionalText("none, or static, which gives pods of whole processors exclusive ones."),
		"cpu_cfs_quota":            optionalFlag("Whether limits of processors are kept."),
		"cpu_cfs_quota_period":     optionalText(`Over which time they are kept, such as "100ms".`),
		"pod_pids_limit":           optionalNumber("Most processes of a pod."),
		"topology_manager_policy":  optionalText("none, restricted, best-effort, or single-numa-node, which keeps a pod's GPUs and processors together."),
		"memory_manager_policy":    optionalText("none or static."),
		"insecure_readonly_port":   optionalFlag("Whether the port 10255 answers all clients."),
		"container_log_max_size":   optionalText(`Size at which a log is rotated, such as "10Mi".`),
		"container_log_max_files":  optionalNumber("Logs that are kept of a container."),
		"max_parallel_image_pulls": optionalNumber("Images that are pulled at the same time."),
		"allowed_unsafe_sysctls":   optionalSet(`Sysctls that pods may set, such as "kernel.shm*".`),
		"single_process_oom_kill":  optionalFlag("Whether a lack of memory ends only one process, and not the container."),
	}}
}

func linuxSchema() schema.Attribute {
	return schema.SingleNestedAttribute{Optional: true, Description: "Settings of the kernel. A change recreates " +
		"the nodes.", Attributes: map[string]schema.Attribute{
		"sysctls":              optionalMap(`Sysctls of the nodes, such as "net.core.rmem_max".`),
		"cgroup_mode":          optionalText("CGROUP_MODE_V1 or CGROUP_MODE_V2."),
		"hugepages_2m":         optionalNumber("Huge pages of 2 MiB."),
		"hugepages_1g":         optionalNumber("Huge pages of 1 GiB."),
		"transparent_hugepage": optionalText("TRANSPARENT_HUGEPAGE_ENABLED_ALWAYS, …_MADVISE or …_NEVER."),
	}}
}

func drainSchema() schema.Attribute {
	return schema.SingleNestedAttribute{Optional: true, Description: "How nodes are drained in upgrades.", Attributes: map[string]schema.Attribute{
		"pdb_timeout":             optionalText(`How long PodDisruptionBudgets hold it up, such as "1h", Google's choice, or "168h" at most.`),
		"grace_termination":       optionalText(`How long pods may take to end, such as "30m".`),
		"respect_pdb_on_deletion": optionalFlag("Whether they hold up the deletion of the pool, too."),
	}}
}

func blueGreenSchema() schema.Attribute {
	return schema.SingleNestedAttribute{Optional: true, Description: "Upgrades by a second set of nodes, in place of max_surge and max_unavailable: it needs as many machines again for a while.", Attributes: map[string]schema.Attribute{
		"batch_percentage": schema.Float64Attribute{Optional: true, Description: "Part of the old nodes that is drained at a time, between 0 and 1."},
		"batch_node_count": optionalNumber("The same, in nodes."),
		"batch_soak":       optionalText(`Pause after each batch, such as "5m".`),
		"pool_soak":        optionalText(`How long the old nodes are kept afterwards, such as "1h".`),
	}}
}

// optional is a proto's value where it was declared, or on an import where it says
// something; null otherwise.
func optional[V attr.Value](was V, null, is V, zero, imported bool) V {
	if was.IsNull() && (!imported || zero) {
		return null
	}
	return is
}

func optionalString(was types.String, is string, imported bool) types.String {
	return optional(was, types.StringNull(), types.StringValue(is), is == "", imported)
}

func optionalInt[N int32 | int64](was types.Int64, is N, imported bool) types.Int64 {
	return optional(was, types.Int64Null(), types.Int64Value(int64(is)), is == 0, imported)
}

func optionalBool(was types.Bool, is, imported bool) types.Bool {
	return optional(was, types.BoolNull(), types.BoolValue(is), !is, imported)
}

// durationText keeps the declared form of a duration.
func durationText(was types.String, is *durationpb.Duration, imported bool) types.String {
	if d, err := time.ParseDuration(was.ValueString()); err == nil && d == is.AsDuration() {
		return was
	}
	return optional(was, types.StringNull(), types.StringValue(short(is.AsDuration())), is.AsDuration() == 0, imported)
}

// short is a duration as people write it: 2h, not 2h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// duration is a declared one; nil for none. checkSettings refuses what is none.
func duration(v types.String) *durationpb.Duration {
	if d, err := time.ParseDuration(v.ValueString()); err == nil {
		return durationpb.New(d)
	}
	return nil
}

// object is settings as they are stored: null where none are.
func object[T any](a schema.Attribute, was types.Object, now T, said bool) types.Object {
	if was.IsNull() && !said {
		return types.ObjectNull(typesOf(a))
	}
	return connect.MustConvert(types.ObjectValueFrom(context.Background(), typesOf(a), now))
}

// kubelet renders the settings for UpdateNodePool and CreateNodePool; an empty
// one removes former settings.
func (m *poolModel) kubelet() *containerpb.NodeKubeletConfig {
	k := objectOf[kubeletModel](m.Kubelet)
	out := &containerpb.NodeKubeletConfig{}
	if k == nil {
		return out
	}
	out.CpuManagerPolicy, out.CpuCfsQuotaPeriod, out.PodPidsLimit = k.CPUManager.ValueString(), k.CFSPeriod.ValueString(), k.PIDs.ValueInt64()
	out.ContainerLogMaxSize, out.ContainerLogMaxFiles = k.LogMaxSize.ValueString(), int32(k.LogMaxFiles.ValueInt64()) //nolint:gosec // files
	out.MaxParallelImagePulls, out.AllowedUnsafeSysctls = int32(k.ParallelPulls.ValueInt64()), list(k.UnsafeSysctls)  //nolint:gosec // a few
	out.InsecureKubeletReadonlyPortEnabled, out.SingleProcessOomKill = k.ReadOnlyPort.ValueBoolPointer(), k.SingleOOMKills.ValueBoolPointer()
	if isGiven(k.CFSQuota) {
		out.CpuCfsQuota = wrapperspb.Bool(k.CFSQuota.ValueBool())
	}
	if p := k.Topology.ValueString(); p != "" {
		out.TopologyManager = &containerpb.TopologyManager{Policy: p}
	}
	if p := k.Memory.ValueString(); p != "" {
		out.MemoryManager = &containerpb.MemoryManager{Policy: p}
	}
	return out
}

func (m *poolModel) readKubelet(k *containerpb.NodeKubeletConfig, imported bool) {
	was := kubeletModel{UnsafeSysctls: types.SetNull(types.StringType)}
	if d := objectOf[kubeletModel](m.Kubelet); d != nil {
		was = *d
	}
	now := kubeletModel{
		CPUManager: optionalString(was.CPUManager, k.GetCpuManagerPolicy(), imported),
		CFSPeriod:  optionalString(was.CFSPeriod, k.GetCpuCfsQuotaPeriod(), imported),
		CFSQuota: optional(was.CFSQuota, types.BoolNull(), types.BoolValue(k.GetCpuCfsQuota().GetValue()),
			k.GetCpuCfsQuota() == nil, imported),
		PIDs:     optionalInt(was.PIDs, k.GetPodPidsLimit(), imported),
		Topology: optionalString(was.Topology, k.GetTopologyManager().GetPolicy(), imported),
		Memory:   optionalString(was.Memory, k.GetMemoryManager().GetPolicy(), imported),
		// GKE fills in these two for each pool, by version and machine: where an import finds none declared,
		// they are its choice, and a difference would recreate the nodes.
		ReadOnlyPort:   optionalBool(was.ReadOnlyPort, k.GetInsecureKubeletReadonlyPortEnabled(), false),
		ParallelPulls:  optionalInt(was.ParallelPulls, k.GetMaxParallelImagePulls(), false),
		LogMaxSize:     optionalString(was.LogMaxSize, k.GetContainerLogMaxSize(), imported),
		LogMaxFiles:    optionalInt(was.LogMaxFiles, k.GetContainerLogMaxFiles(), imported),
		SingleOOMKills: optionalBool(was.SingleOOMKills, k.GetSingleProcessOomKill(), imported),
		UnsafeSysctls:  was.UnsafeSysctls,
	}
	if imported || !was.UnsafeSysctls.IsNull() {
		now.UnsafeSysctls = setOrNull(was.UnsafeSysctls, k.GetAllowedUnsafeSysctls())
	}
	m.Kubelet = object(kubeletSchema(), m.Kubelet, now, now.hasSettings())
}

// hasSettings reports whether an import has found a setting that differs from Google's
// choice.
func (k kubeletModel) hasSettings() bool {
	return slices.ContainsFunc([]attr.Value{k.CPUManager, k.CFSPeriod, k.CFSQuota, k.PIDs, k.Topology, k.Memory, k.ReadOnlyPort, k.LogMaxSize, k.LogMaxFiles, k.ParallelPulls, k.SingleOOMKills, k.UnsafeSysctls}, isGiven)
}

func (m *poolModel) linux() *containerpb.LinuxNodeConfig {
	l := objectOf[linuxModel](m.Linux)
	out := &containerpb.LinuxNodeConfig{}
	if l == nil {
		return out
	}
	out.Sysctls = texts(l.Sysctls)
	out.CgroupMode = containerpb.LinuxNodeConfig_CgroupMode(containerpb.LinuxNodeConfig_CgroupMode_value[l.Cgroup.ValueString()])
	out.TransparentHugepageEnabled = containerpb.LinuxNodeConfig_TransparentHugepageEnabled(containerpb.LinuxNodeConfig_TransparentHugepageEnabled_value[l.HugeAuto.ValueString()])
	if isGiven(l.Huge2M) || isGiven(l.Huge1G) {
		small, large := int32(l.Huge2M.ValueInt64()), int32(l.Huge1G.ValueInt64()) //nolint:gosec // pages
		out.Hugepages = &containerpb.LinuxNodeConfig_HugepagesConfig{HugepageSize2M: &small, HugepageSize1G: &large}
	}
	return out
}

func (m *poolModel) readLinux(l *containerpb.LinuxNodeConfig, imported bool) {
	was := linuxModel{Sysctls: types.MapNull(types.StringType)}
	if d := objectOf[linuxModel](m.Linux); d != nil {
		was = *d
	}
	word := func(n int32, s string) string {
		if n == 0 {
			return ""
		}
		return s
	}
	now := linuxModel{
		Sysctls: was.Sysctls, Cgroup: optionalString(was.Cgroup, word(int32(l.GetCgroupMode()), l.GetCgroupMode().String()), imported),
		Huge2M: optionalInt(was.Huge2M, l.GetHugepages().GetHugepageSize2M(), imported), Huge1G: optionalInt(was.Huge1G, l.GetHugepages().GetHugepageSize1G(), imported),
		HugeAuto: optionalString(was.HugeAuto, word(int32(l.GetTransparentHugepageEnabled()), l.GetTransparentHugepageEnabled().String()), imported),
	}
	if imported || !was.Sysctls.IsNull() {
		now.Sysctls = mapOrNull(was.Sysctls, l.GetSysctls())
	}
	said := slices.ContainsFunc([]attr.Value{now.Sysctls, now.Cgroup, now.Huge2M, now.Huge1G, now.HugeAuto}, isGiven)
	m.Linux = object(linuxSchema(), m.Linux, now, said)
}

func (m *poolModel) drain() *containerpb.NodePool_NodeDrainConfig {
	d := objectOf[drainModel](m.Drain)
	if d == nil {
		return &containerpb.NodePool_NodeDrainConfig{}
	}
	return &containerpb.NodePool_NodeDrainConfig{PdbTimeoutDuration: duration(d.PDB), GraceTerminationDuration: duration(d.Grace), RespectPdbDuringNodePoolDeletion: d.Respect.ValueBoolPointer()}
}

func (m *poolModel) readDrain(d *containerpb.NodePool_NodeDrainConfig, imported bool) {
	was := drainModel{}
	if w := objectOf[drainModel](m.Drain); w != nil {
		was = *w
	}
	now := drainModel{PDB: durationText(was.PDB, d.GetPdbTimeoutDuration(), imported), Grace: durationText(was.Grace, d.GetGraceTerminationDuration(), imported),
		Respect: optionalBool(was.Respect, d.GetRespectPdbDuringNodePoolDeletion(), imported)}
	m.Drain = object(drainSchema(), m.Drain, now, slices.ContainsFunc([]attr.Value{now.PDB, now.Grace, now.Respect}, isGiven))
}

// upgrade returns how nodes are recreated: blue and green, or a few at a time.
func (m *poolModel) upgrade() *containerpb.NodePool_UpgradeSettings {
	b := objectOf[blueGreenModel](m.BlueGreen)
	if b == nil {
		surge := containerpb.NodePoolUpdateStrategy_SURGE
		out := &containerpb.NodePool_UpgradeSettings{MaxSurge: int32(m.MaxSurge.ValueInt64()), MaxUnavailable: int32(m.MaxUnavailable.ValueInt64()), Strategy: &surge} //nolint:gosec // nodes
		if out.MaxSurge == 0 && out.MaxUnavailable == 0 && !isGiven(m.MaxSurge) && !isGiven(m.MaxUnavailable) {
			out.MaxSurge = 1 // Google's own choice, which an update has to say
		}
		return out
	}
	policy := &containerpb.BlueGreenSettings_StandardRolloutPolicy{BatchSoakDuration: duration(b.BatchSoak)}
	switch {
	case isGiven(b.Count):
		policy.UpdateBatchSize = &containerpb.BlueGreenSettings_StandardRolloutPolicy_BatchNodeCount{BatchNodeCount: int32(b.Count.ValueInt64())} //nolint:gosec // nodes
	case isGiven(b.Percentage):
		policy.UpdateBatchSize = &containerpb.BlueGreenSettings_StandardRolloutPolicy_BatchPercentage{BatchPercentage: float32(b.Percentage.ValueFloat64())}
	}
	strategy := containerpb.NodePoolUpdateStrategy_BLUE_GREEN
	return &containerpb.NodePool_UpgradeSettings{Strategy: &strategy, BlueGreenSettings: &containerpb.BlueGreenSettings{NodePoolSoakDuration: duration(b.PoolSoak),
		RolloutPolicy: &containerpb.BlueGreenSettings_StandardRolloutPolicy_{StandardRolloutPolicy: policy}}}
}

func (m *poolModel) readUpgrade(u *containerpb.NodePool_UpgradeSettings, imported bool) {
	surge := u.GetStrategy() == containerpb.NodePoolUpdateStrategy_SURGE || u.GetStrategy() == containerpb.NodePoolUpdateStrategy_NODE_POOL_UPDATE_STRATEGY_UNSPECIFIED
	if surge || !isGiven(m.MaxSurge) || !isGiven(m.MaxUnavailable) {
		m.MaxSurge, m.MaxUnavailable = types.Int64Value(int64(u.GetMaxSurge())), types.Int64Value(int64(u.GetMaxUnavailable()))
	} // those of a pool that is upgraded otherwise say nothing
	if u.GetStrategy() != containerpb.NodePoolUpdateStrategy_BLUE_GREEN {
		m.BlueGreen = types.ObjectNull(typesOf(blueGreenSchema()))
		return
	}
	was := blueGreenModel{}
	if w := objectOf[blueGreenModel](m.BlueGreen); w != nil {
		was = *w
	}
	b := u.GetBlueGreenSettings()
	p := b.GetStandardRolloutPolicy()
	now := blueGreenModel{Percentage: was.Percentage, Count: optionalInt(was.Count, p.GetBatchNodeCount(), imported),
		BatchSoak: durationText(was.BatchSoak, p.GetBatchSoakDuration(), imported), PoolSoak: durationText(was.PoolSoak, b.GetNodePoolSoakDuration(), imported)}
	if float32(was.Percentage.ValueFloat64()) != p.GetBatchPercentage() { // the API has fewer digits
		now.Percentage = optional(was.Percentage, types.Float64Null(), types.Float64Value(float64(p.GetBatchPercentage())), p.GetBatchPercentage() == 0, imported)
	}
	m.BlueGreen = object(blueGreenSchema(), m.BlueGreen, now, imported)
}
