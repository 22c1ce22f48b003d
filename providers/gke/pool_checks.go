package gke

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/gke/catalogue"
)

// checkSettings refuses values of settings that the API would refuse.
func (m *poolModel) checkSettings(j job) {
	wrong := func(at path.Path, v types.String, all ...string) {
		if s := v.ValueString(); s != "" && !slices.Contains(all, s) {
			j.diags.AddAttributeError(at, "Unknown value", fmt.Sprintf("%q is not valid: give one of %s.", s, strings.Join(all, ", ")))
		}
	}
	lasts := func(at path.Path, v types.String) {
		if !isGiven(v) {
			return
		}
		if d, err := time.ParseDuration(v.ValueString()); err != nil || d <= 0 {
			j.diags.AddAttributeError(at, "Invalid duration", fmt.Sprintf("%q is not a duration such as 30m or 24h.", v.ValueString()))
		}
	}
	lasts(path.Root("max_run_duration"), m.MaxRun)
	if k, at := objectOf[kubeletModel](m.Kubelet), path.Root("kubelet"); k != nil {
		wrong(at.AtName("cpu_manager_policy"), k.CPUManager, "none", "static")
		wrong(at.AtName("memory_manager_policy"), k.Memory, "none", "static")
		wrong(at.AtName("topology_manager_policy"), k.Topology, "none", "restricted", "best-effort", "single-numa-node")
		lasts(at.AtName("cpu_cfs_quota_period"), k.CFSPeriod)
	}
	if l, at := objectOf[linuxModel](m.Linux), path.Root("linux"); l != nil {
		wrong(at.AtName("cgroup_mode"), l.Cgroup, enumNames(containerpb.LinuxNodeConfig_CgroupMode_value)...)
		wrong(at.AtName("transparent_hugepage"), l.HugeAuto, enumNames(containerpb.LinuxNodeConfig_TransparentHugepageEnabled_value)...)
	}
	if d, at := objectOf[drainModel](m.Drain), path.Root("drain"); d != nil {
		lasts(at.AtName("pdb_timeout"), d.PDB)
		lasts(at.AtName("grace_termination"), d.Grace)
	}
	for i, d := range elementsOf[bootDiskModel](m.BootDisks) {
		wrong(path.Root("secondary_boot_disks").AtListIndex(i).AtName("mode"), d.Mode, enumNames(containerpb.SecondaryBootDisk_Mode_value)...)
	}
	if len(m.BootDisks.Elements()) > 0 && !m.ImageStreaming.ValueBool() && !j.open("image_streaming") {
		j.diags.AddAttributeError(path.Root("secondary_boot_disks"), "Secondary boot disks without image streaming", "Set image_streaming = true: it is what uses them.")
	}
	if m.FastSocket.ValueBool() && !m.GVNIC.ValueBool() && isGiven(m.GVNIC) {
		j.diags.AddAttributeError(path.Root("fast_socket"), "Fast socket without gVNIC", "Set gvnic = true.")
	}
	if m.MaxSurge.ValueInt64() == 0 && m.MaxUnavailable.ValueInt64() == 0 && isGiven(m.MaxSurge) && isGiven(m.MaxUnavailable) && m.BlueGreen.IsNull() && !(j.omitted("max_surge") && j.omitted("max_unavailable")) {
		j.diags.AddAttributeError(path.Root("max_surge"), "Upgrades without a node", "Give max_surge or "+
			"max_unavailable: with neither no node can be recreated.")
	}
	m.checkBlueGreen(j, lasts)
}

func (m *poolModel) checkBlueGreen(j job, lasts func(path.Path, types.String)) {
	b, at := objectOf[blueGreenModel](m.BlueGreen), path.Root("blue_green")
	if b == nil {
		return
	}
	lasts(at.AtName("batch_soak"), b.BatchSoak)
	lasts(at.AtName("pool_soak"), b.PoolSoak)
	switch p := b.Percentage.ValueFloat64(); {
	case isGiven(b.Percentage) && isGiven(b.Count):
		j.diags.AddAttributeError(at, "Batch given twice", "Give batch_percentage or batch_node_count.")
	case isGiven(b.Percentage) && (p <= 0 || p > 1):
		j.diags.AddAttributeError(at.AtName("batch_percentage"), "Batch is no part", fmt.Sprintf("%v is not between 0 and 1.", p))
	}
}

// checkZones looks whether the zones have the GPU: Google's own list tells, and
// where that cannot be read a table that may be out of date.
func (m *poolModel) checkZones(ctx context.Context, j job, at path.Path) {
	a := m.gpus()
	if a == nil || !isGiven(a.Type) {
		return
	}
	where := at.AtName("zones")
	if len(at.Steps()) == 0 {
		where = path.Root("zones")
	}
	kind := a.Type.ValueString()
	zones, _ := m.nodeZones(ctx, j)
	for _, zone := range zones {
		all, live := acceleratorsIn(ctx, j, zone)
		switch known := catalogue.Zones[kind]; {
		case live && !slices.Contains(all, kind):
			j.diags.AddAttributeError(where, "Zone does not have this GPU", fmt.Sprintf("%s has no %s. It has: %s.%s", zone, kind, firstNonEmpty(strings.Join(all, ", "), "no GPUs"), otherZones(kind, zone)))
		case !live && known != nil && !slices.Contains(known, zone):
			j.diags.AddAttributeWarning(where, "Zone may not have this GPU", fmt.Sprintf("By the table of %s, %s has no %s.%s", catalogue.ZonesAsOf, zone, kind, otherZones(kind, zone)))
		}
	}
}

// otherZones names zones of the same region that have a GPU by the table.
func otherZones(kind, zone string) string {
	near := slices.DeleteFunc(slices.Clone(catalogue.Zones[kind]), func(other string) bool { return regionOf(other) != regionOf(zone) || other == zone })
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf(" By the table of %s it is in %s.", catalogue.ZonesAsOf, strings.Join(near, ", "))
}

// checkLocalSSDs looks whether a machine type can have so many local SSDs.
func (m *poolModel) checkLocalSSDs(j job, refuse func(name, summary, detail string)) {
	scratch, raw := m.LocalSSDs.ValueInt64(), m.RawSSDs.ValueInt64()
	name, n := "local_ssd_count", scratch
	if raw > 0 {
		name, n = "raw_local_ssd_count", raw
	}
	machine := firstNonEmpty(m.MachineType.ValueString(), catalogue.Default)
	allowed, ok := catalogue.SSDs(machine)
	switch {
	case scratch > 0 && raw > 0:
		refuse("raw_local_ssd_count", "Local SSDs of two kinds", "Give local_ssd_count for ephemeral storage, or raw_local_ssd_count for block devices.")
	case n == 0 || !ok || m.MachineType.IsUnknown() && !j.omitted("machine_type"):
	case len(allowed) == 0:
		refuse(name, "Machine cannot have local SSDs", machine+" machines have none.")
	case !slices.Contains(allowed, n):
		refuse(name, "Machine cannot have so many local SSDs", fmt.Sprintf("%s has %s of them, not %d.", machine, numbersOr(allowed), n))
	}
}

func numbersOr(all []int64) string {
	var words []string
	for _, n := range all {
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, " or ")
}

// poolFixed are the arguments whose change makes another pool.
var poolFixed = map[string]func(*poolModel) attr.Value{
	"cluster": func(m *poolModel) attr.Value { return m.Cluster }, "name": func(m *poolModel) attr.Value { return m.Name },
	"project": func(m *poolModel) attr.Value { return m.Project }, "service_account": func(m *poolModel) attr.Value { return m.ServiceAccount },
	"oauth_scopes": func(m *poolModel) attr.Value { return m.Scopes }, "max_pods_per_node": func(m *poolModel) attr.Value { return m.PodsPerNode },
	"pod_range": func(m *poolModel) attr.Value { return m.PodRange }, "spot": func(m *poolModel) attr.Value { return m.Spot },
	"flex_start": func(m *poolModel) attr.Value { return m.FlexStart }, "queued_provisioning": func(m *poolModel) attr.Value { return m.Queued },
	"reservation": func(m *poolModel) attr.Value { return m.Reservation }, "compact_placement": func(m *poolModel) attr.Value { return m.Compact },
	"local_ssd_count": func(m *poolModel) attr.Value { return m.LocalSSDs }, "raw_local_ssd_count": func(m *poolModel) attr.Value { return m.RawSSDs },
	"secondary_boot_disks": func(m *poolModel) attr.Value { return m.BootDisks },
}

// checkLoss rejects a plan that recreates nodes with data on local SSDs, unless
// that is allowed: the data cannot be restored.
func (m *poolModel) checkLoss(j job, prior *poolModel) {
	if prior.LocalSSDs.ValueInt64()+prior.RawSSDs.ValueInt64() == 0 {
		return
	}
	var why []string
	for _, name := range slices.Sorted(maps.Keys(poolFixed)) {
		if changed(poolFixed[name](m), poolFixed[name](prior)) {
			why = append(why, name)
		}
	}
	if gpusDiffer(m.gpus(), prior.gpus()) {
		why = append(why, "accelerator")
	}
	for _, row := range poolTable {
		if row.anew && !slices.Contains(why, row.attribute) && row.changed(m, prior) {
			why = append(why, row.attribute)
		}
	}
	if len(why) == 0 {
		return
	}
	detail := fmt.Sprintf("The change of %s recreates the nodes of this pool, and data on their local SSDs is lost.", strings.Join(why, ", "))
	if m.AllowDataLoss.ValueBool() {
		j.diags.AddAttributeWarning(path.Root("allow_data_loss"), "Data on local SSDs is lost", detail)
		return
	}
	j.diags.AddAttributeError(path.Root("allow_data_loss"), "Data on local SSDs would be lost", detail+" Save what is needed, and set allow_data_loss = true.")
}

func gpusDiffer(a, b *acceleratorModel) bool {
	if a == nil || b == nil {
		return a != b
	}
	return !reflect.DeepEqual([]attr.Value{a.Type, a.Count, a.Partition}, []attr.Value{b.Type, b.Count, b.Partition})
}
