package gke

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/gke/cloud"
)

// stepOf is the step that made a pool.
func stepOf(p *containerpb.NodePool) int {
	n, _ := strconv.Atoi(p.GetConfig().GetResourceLabels()[cloud.Step])
	return n
}

// read is that of model. A value that a step of the fallback chose for an argument
// is not a difference.
func (m *poolModel) read(ctx context.Context, j job) (bool, string, error) {
	where, j, err := m.locate(j)
	if err != nil {
		return false, "", err
	}
	p, err := getPool(ctx, j.cloud, where.pool)
	if p == nil || err != nil {
		return false, "", err
	}
	imported := m.ID.IsNull()
	project, _, _, _ := m.place(j)
	m.ID, m.Project, m.Status = types.StringValue(where.pool), types.StringValue(project), types.StringValue(p.GetStatus().String())
	if imported && stepOf(p) > 0 { // the plan compares that step with the declared one
		m.Fallback = types.ListNull(m.Fallback.ElementType(ctx))
	}
	m.record(stepOf(p))
	declared := *m
	m.readNodes(j, p, imported)
	m.readPolicies(p, imported)
	m.restore(&declared)
	if isGiven(m.Autoscaling) {
		m.NodeCount = types.Int64Null()
	} else if n, err := j.sizes.sizeOf(ctx, j.cloud, p, m.NodeCount.ValueInt64()); err == nil {
		m.NodeCount = types.Int64Value(n)
	} else {
		addWarning(j, "Size of the node pool cannot be read", err)
	}
	if m.Capacity = m.withStep(m.stepTaken()).capacity(ctx, locationsOf(m, j, p), p); m.Capacity.IsUnknown() { // an answer lacks parts
		m.Capacity = types.ObjectNull(m.Capacity.AttributeTypes(ctx))
	}
	return true, p.GetConfig().GetResourceLabels()[cloud.Mark], nil
}

func (m *poolModel) readNodes(j job, p *containerpb.NodePool, imported bool) {
	n := p.GetConfig()
	if m.NodeVersion = types.StringValue(p.GetVersion()); imported && outdated(m.NodeVersion, m.Version) {
		m.Version = types.StringNull()
	}
	m.Zones, m.MachineType = setOf(locationsOf(m, j, p)), textOrNull(n.GetMachineType())
	m.DiskType, m.DiskSize, m.ImageType = textOrNull(n.GetDiskType()), numberOrNull(n.GetDiskSizeGb()), imageType(m.ImageType, n.GetImageType())
	m.Labels, m.Tags = mapOrNull(m.Labels, n.GetLabels()), setOrNull(m.Tags, n.GetTags())
	m.head().readLabels(j.cloud, n.GetResourceLabels())
	m.readTaints(n.GetTaints())
	m.ServiceAccount = link(m.ServiceAccount, n.GetServiceAccount())
	m.Scopes = scopes(m.Scopes, n)
	m.Spot, m.FlexStart, m.Queued = types.BoolValue(n.GetSpot()), types.BoolValue(n.GetFlexStart()), types.BoolValue(p.GetQueuedProvisioning().GetEnabled())
	m.Reservation = types.StringNull()
	if r := n.GetReservationAffinity(); len(r.GetValues()) > 0 {
		m.Reservation = types.StringValue(r.GetValues()[0])
	}
	m.Compact = types.BoolValue(p.GetPlacementPolicy().GetType() == containerpb.NodePool_PlacementPolicy_COMPACT)
	m.LocalSSDs = types.Int64Value(int64(n.GetEphemeralStorageLocalSsdConfig().GetLocalSsdCount()))
	m.ImageStreaming, m.GVNIC, m.FastSocket = types.BoolValue(n.GetGcfsConfig().GetEnabled()), types.BoolValue(n.GetGvnic().GetEnabled()), types.BoolValue(n.GetFastSocket().GetEnabled())
	m.WorkloadMetadata = types.StringNull()
	if mode := n.GetWorkloadMetadataConfig().GetMode(); mode != 0 {
		m.WorkloadMetadata = types.StringValue(mode.String())
	}
	m.RawSSDs, m.MaxRun = types.Int64Value(int64(n.GetLocalNvmeSsdBlockConfig().GetLocalSsdCount())), durationText(m.MaxRun, n.GetMaxRunDuration(), true)
	if n.GetMaxRunDuration().AsDuration() == 0 {
		m.MaxRun = types.StringNull()
	}
	m.readBootDisks(n.GetSecondaryBootDisks())
	m.readKubelet(n.GetKubeletConfig(), imported)
	m.readLinux(n.GetLinuxNodeConfig(), imported)
	m.readGPUs(n.GetAccelerators())
}

// locationsOf are the zones of a pool. An answer without them has the links of its groups of machines; a pool
// of neither is in the zone of its cluster.
func locationsOf(m *poolModel, j job, p *containerpb.NodePool) []string {
	zones := slices.Clone(p.GetLocations())
	for _, url := range p.GetInstanceGroupUrls() {
		if zone := zoneOf(url); len(p.GetLocations()) == 0 && !slices.Contains(zones, zone) {
			zones = append(zones, zone)
		}
	}
	if _, location, _, err := m.place(j); len(zones) == 0 && err == nil && isZone(location) {
		return []string{location}
	}
	return append([]string{}, zones...)
}

// imageType keeps the declared case: the API answers in capitals.
func imageType(was types.String, now string) types.String {
	if now != "" && strings.EqualFold(was.ValueString(), now) {
		return was
	}
	return textOrNull(now)
}

// readTaints keeps the declared order of taints, which means nothing.
func (m *poolModel) readTaints(there []*containerpb.NodeTaint) {
	taints := []taintModel{}
	for _, t := range there {
		if !isGKETaint(t) || m.declares(t) {
			taints = append(taints, taintModel{types.StringValue(t.GetKey()), types.StringValue(t.GetValue()), types.StringValue(t.GetEffect().String())})
		}
	}
	if len(taints) == 0 && !isGiven(m.Taints) {
		m.Taints = types.ListNull(taintType())
		return
	}
	declared := elementsOf[taintModel](m.Taints)
	place := func(t taintModel) int {
		if n := slices.Index(declared, t); n >= 0 {
			return n
		}
		return len(declared)
	}
	slices.SortStableFunc(taints, func(a, b taintModel) int { return place(a) - place(b) })
	m.Taints = connect.MustConvert(types.ListValueFrom(context.Background(), taintType(), taints))
}

func (m *poolModel) readBootDisks(all []*containerpb.SecondaryBootDisk) {
	disks := []bootDiskModel{}
	for _, d := range all {
		now := bootDiskModel{Image: types.StringValue(d.GetDiskImage()), Mode: types.StringNull()}
		if d.GetMode() != 0 {
			now.Mode = types.StringValue(d.GetMode().String())
		}
		disks = append(disks, now)
	}
	kind := bootDisksSchema().(schema.ListNestedAttribute).NestedObject.Type()
	if len(disks) == 0 && !isGiven(m.BootDisks) {
		m.BootDisks = types.ListNull(kind)
		return
	}
	m.BootDisks = connect.MustConvert(types.ListValueFrom(context.Background(), kind, disks))
}

// The scopes that GKE adds to declared ones: those for logs and measurements, and for a service account
// of one's own two more (hashicorp/terraform-provider-google#1726, cloud-foundation-fabric#2054).
var (
	addedScopes = []string{"https://www.googleapis.com/auth/logging.write", "https://www.googleapis.com/auth/monitoring"}
	ownScopes   = []string{"https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email"}
)

// scopes leaves those out that GKE has added to declared ones.
func scopes(was types.Set, n *containerpb.NodeConfig) types.Set {
	declared, added := list(was), addedScopes
	if account := n.GetServiceAccount(); account != "" && account != "default" {
		added = slices.Concat(added, ownScopes)
	}
	now := slices.Clone(n.GetOauthScopes())
	if len(declared) > 0 {
		now = slices.DeleteFunc(now, func(s string) bool { return slices.Contains(added, s) && !slices.Contains(declared, s) })
	}
	return setOf(now)
}

// sameScopes keeps the scopes of an imported pool where the configuration names all except the
// scopes that GKE adds: another set replaces the pool.
type sameScopes struct{}

func (sameScopes) Description(context.Context) string {
	return "Scopes that GKE adds are not a difference."
}

func (s sameScopes) MarkdownDescription(ctx context.Context) string { return s.Description(ctx) }

// PlanModifySet is that of planmodifier.Set.
func (sameScopes) PlanModifySet(_ context.Context, req planmodifier.SetRequest, resp *planmodifier.SetResponse) {
	if !isGiven(req.StateValue) || !isGiven(req.PlanValue) || len(req.PlanValue.Elements()) == 0 {
		return
	}
	declared, now := list(req.PlanValue), list(req.StateValue)
	for _, s := range addedScopes {
		declared, now = subtract(declared, []string{s}), subtract(now, []string{s})
	}
	if slices.Equal(declared, now) {
		resp.PlanValue = req.StateValue
	}
}

func (m *poolModel) readGPUs(all []*containerpb.AcceleratorConfig) {
	if len(all) == 0 {
		m.Accelerator = blockNull(acceleratorSchema())
		return
	}
	a := all[0]
	out := &acceleratorModel{Type: types.StringValue(a.GetAcceleratorType()), Count: types.Int64Value(a.GetAcceleratorCount()), Partition: textOrNull(a.GetGpuPartitionSize()), Driver: types.StringNull()}
	if s := a.GetGpuSharingConfig(); s.GetGpuSharingStrategy() != 0 {
		out.Sharing, out.Clients = types.StringValue(s.GetGpuSharingStrategy().String()), numberOrNull(s.GetMaxSharedClientsPerGpu())
	}
	if d := a.GetGpuDriverInstallationConfig().GetGpuDriverVersion(); d != 0 {
		out.Driver = types.StringValue(d.String())
	}
	m.Accelerator = blockOf(acceleratorSchema(), out)
}

func (m *poolModel) readPolicies(p *containerpb.NodePool, imported bool) {
	m.AutoRepair, m.AutoUpgrade = types.BoolValue(p.GetManagement().GetAutoRepair()), types.BoolValue(p.GetManagement().GetAutoUpgrade())
	m.readUpgrade(p.GetUpgradeSettings(), imported)
	m.readDrain(p.GetNodeDrainConfig(), imported)
	m.Excluded = types.BoolValue(p.GetMaintenancePolicy().GetExclusionUntilEndOfSupport().GetEnabled())
	m.PodsPerNode, m.PodRange = numberOrNull(p.GetMaxPodsConstraint().GetMaxPodsPerNode()), textOrNull(p.GetNetworkConfig().GetPodRange())
	a := p.GetAutoscaling()
	if !a.GetEnabled() {
		m.Autoscaling = blockNull(scalingSchema())
		return
	}
	was := scalingModel{}
	if s := m.scaling(); s != nil {
		was = *s
	}
	number := func(was types.Int64, now int32) types.Int64 {
		if now == 0 && was.IsNull() {
			return was
		}
		return types.Int64Value(int64(now))
	}
	out := &scalingModel{Min: number(was.Min, a.GetMinNodeCount()), Max: number(was.Max, a.GetMaxNodeCount()), TotalMin: number(was.TotalMin, a.GetTotalMinNodeCount()), TotalMax: number(was.TotalMax, a.GetTotalMaxNodeCount())}
	if !was.Location.IsNull() { // Google's choice otherwise
		out.Location = types.StringValue(a.GetLocationPolicy().String())
	}
	m.Autoscaling = blockOf(scalingSchema(), out)
}

// addWarning reports a failure to read something other than the object itself.
func addWarning(j job, summary string, err error) { j.diags.AddWarning(summary, sentence(err)) }

func taintType() attr.Type { return taintSchema().(schema.ListNestedAttribute).NestedObject.Type() }
