package gke

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/catalogue"
)

// check implements model: the plan rejects values that the API would reject after
// minutes, or that cost money without any use.
func (m *poolModel) check(ctx context.Context, j job, prior *poolModel) {
	m.checkPlace(j)
	if prior != nil {
		m.adopt(ctx, j, prior)
	}
	m.checkWords(j)
	checkPods(m, j)
	m.checkSettings(j)
	for n := range len(m.steps()) + 1 {
		at := path.Empty()
		if n > 0 {
			at = path.Root("fallback").AtListIndex(n - 1)
		}
		step := m.step(n)
		step.checkStep(ctx, j, at, prior)
		if prior == nil {
			step.checkZones(ctx, j, at)
		}
	}
	checkFallback(m, j)
	checkRefused(m, prior, j)
	m.checkVersion(ctx, prior)
	if prior != nil {
		m.checkLoss(j, prior)
	}
	if m.Status.IsUnknown() { // its create continues, perhaps with another step
		m.Step, m.Taken = types.Int64Unknown(), types.ObjectUnknown(stepTypes())
	}
	m.forecast(ctx, j, prior)
}

// checkPlace finds the project of the pool, which is the project of its
// cluster.
func (m *poolModel) checkPlace(j job) {
	if m.Cluster.IsUnknown() {
		return
	}
	project, _, _, err := m.place(j)
	switch {
	case err != nil:
		j.diags.AddAttributeError(path.Root("cluster"), "No such place", sentence(err))
	case m.Project.IsUnknown():
		m.Project = types.StringValue(project)
	case m.Project.ValueString() != project:
		j.diags.AddAttributeError(path.Root("project"), "Cluster is in another project", fmt.Sprintf("The cluster is in %s, and project says %s. Leave project out: a node pool is where its cluster is.", project, m.Project.ValueString()))
	}
}

// checkVersion plans an upgrade where the nodes are older than declared.
func (m *poolModel) checkVersion(ctx context.Context, prior *poolModel) {
	m.NodeVersion = types.StringUnknown()
	if prior != nil && !outdated(prior.NodeVersion, m.Version) && !m.Version.IsUnknown() {
		m.NodeVersion = prior.NodeVersion
		upgraded(ctx, "nodes", m.Version, prior.NodeVersion)
	}
}

// validate rejects a size together with autoscaling, and the first pool's name.
func (m *poolModel) validate(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) {
	var size types.Int64
	var scaling types.Object
	var name types.String
	diags.Append(config.GetAttribute(ctx, path.Root("node_count"), &size)...)
	diags.Append(config.GetAttribute(ctx, path.Root("autoscaling"), &scaling)...)
	var initial types.Int64
	diags.Append(config.GetAttribute(ctx, path.Root("name"), &name)...)
	diags.Append(config.GetAttribute(ctx, path.Root("initial_node_count"), &initial)...)
	if isGiven(initial) && scaling.IsNull() {
		diags.AddAttributeError(path.Root("initial_node_count"), "Size without autoscaling",
			"Give node_count: initial_node_count is for pools with autoscaling.")
	}
	if isGiven(size) && isGiven(scaling) {
		diags.AddAttributeError(path.Root("node_count"), "Size and autoscaling at once", "Leave node_count out.")
	}
	if name.ValueString() == bootstrap {
		diags.AddAttributeError(path.Root("name"), "Name is taken", fmt.Sprintf("%q is the first pool of a cluster, "+
			"which is removed once another one runs. Take another name.", bootstrap))
	}
}

// forecast plans what the nodes will have, and says how many there will be.
func (m *poolModel) forecast(ctx context.Context, j job, prior *poolModel) {
	is := m.withStep(m.stepTaken())
	zones, all := is.nodeZones(ctx, j)
	planned := is.capacity(ctx, zones, nil)
	call := providers.CallFrom(ctx)
	switch n := m.Step.ValueInt64(); {
	case prior == nil:
	case n > 0:
		call.AddNote(providers.Note{Kind: providers.NoteFact, Text: fmt.Sprintf("It runs by step %d of its fallback. Where there is capacity again, go back with: stoke apply -replace='%s'", n, call.Address)})
	case len(m.steps()) > 0 && strings.HasSuffix(prior.Status.ValueString(), "ERROR"):
		call.AddNote(providers.Note{Kind: providers.NoteFact, Text: fmt.Sprintf("It is %s: some of its nodes may be missing. "+
			"It keeps its present ones; to recreate it by the first step that has capacity: stoke apply -replace='%s'", prior.Status.ValueString(), call.Address)})
	}
	if j.open("cluster", "name", "machine_type", "disk_size_gb", "labels", "taints", "zones", "node_count", "autoscaling", "accelerator", "max_pods_per_node", "fallback") || !all {
		m.Capacity = types.ObjectUnknown(planned.AttributeTypes(ctx))
		return
	}
	if prior != nil {
		was := prior.withStep(prior.stepTaken())
		if before, _ := was.nodeZones(ctx, j); planned.Equal(was.capacity(ctx, before, nil)) {
			m.Capacity = prior.Capacity // what the cluster adds is in there
			return
		}
	}
	m.Capacity = planned
	for n := range m.steps() { // the step is not known yet
		step := m.step(n + 1)
		there, _ := step.nodeZones(ctx, j)
		if (prior == nil || m.Step.IsUnknown()) && !planned.Equal(step.capacity(ctx, there, nil)) {
			m.Capacity = types.ObjectUnknown(planned.AttributeTypes(ctx))
		}
	}
	if n := m.NodeCount.ValueInt64(); n > 0 && len(zones) > 1 {
		call.AddNote(providers.Note{Kind: providers.NoteFact, Text: fmt.Sprintf("%d zones × %d = %d nodes", len(zones), n, int64(len(zones))*n)})
	}
}

// nodeZones returns the zones of the nodes, as far as they are known: the zones of the cluster if
// the pool names none. all is false where there may be more: a cluster that does not exist yet has
// its own zone, and may have others.
func (m *poolModel) nodeZones(ctx context.Context, j job) (zones []string, all bool) {
	if zones := list(m.Zones); zones != nil || j.open("zones", "cluster") {
		return zones, zones != nil
	}
	where, of, err := m.locate(j)
	if err != nil {
		return nil, false
	}
	if k, _ := clusterAt(ctx, of, where.cluster); len(k.GetLocations()) > 0 {
		return k.GetLocations(), true
	}
	if _, location, _, _ := m.place(j); isZone(location) {
		return []string{location}, false
	}
	return nil, false
}

// beginningOf is the number of nodes in each zone that a pool is made with. The autoscaler brings a pool
// that begins without nodes to no least number (kubernetes/autoscaler#2288). known is false where a part
// is not known yet.
func beginningOf(m *poolModel, zones int64) (n int64, known bool) {
	s := m.scaling()
	switch {
	case isGiven(m.Initial):
		return m.Initial.ValueInt64(), true
	case m.Initial.IsUnknown() || m.Autoscaling.IsUnknown() || m.NodeCount.IsUnknown() && s == nil:
		return 0, false
	case s == nil:
		return m.NodeCount.ValueInt64(), true
	case s.TotalMax.IsNull():
		return s.Min.ValueInt64(), !s.Min.IsUnknown()
	}
	n = (s.TotalMin.ValueInt64() + zones - 1) / zones
	if n*zones > s.TotalMax.ValueInt64() {
		n = s.TotalMin.ValueInt64() / zones
	}
	return n, !s.TotalMin.IsUnknown()
}

// checkFallback rejects a fallback that never acts: creating a pool without nodes succeeds without
// any machines.
func checkFallback(m *poolModel, j job) {
	if n, known := beginningOf(m, 1); len(m.steps()) > 0 && !m.Autoscaling.IsNull() && known && n == 0 {
		j.diags.AddAttributeError(path.Root("fallback"), "Fallback of a pool without nodes",
			"With autoscaling from 0 the pool is made without machines, so no create of it fails for want of them, and no step is taken. "+
				"Begin with a node in each zone (initial_node_count, or min), or leave fallback out: "+
				"for pods that wait, a ComputeClass of GKE names machines in an order, and makes pools for them.")
	}
}

// checkRefused warns of settings that GKE has taken back for most projects: the API refuses them when the
// pool is made.
func checkRefused(m, prior *poolModel, j job) {
	l, changes := objectOf[linuxModel](m.Linux), prior == nil || !m.Linux.Equal(prior.Linux)
	if l != nil && changes && l.Cgroup.ValueString() == "CGROUP_MODE_V1" {
		j.diags.AddAttributeWarning(path.Root("linux").AtName("cgroup_mode"), "GKE may refuse CGROUP_MODE_V1",
			"Nodes of current versions have CGROUP_MODE_V2 only. Leave cgroup_mode out.")
	}
	d, changes := objectOf[drainModel](m.Drain), prior == nil || !m.Drain.Equal(prior.Drain)
	if d != nil && changes && (isGiven(d.PDB) || isGiven(d.Grace)) {
		j.diags.AddAttributeWarning(path.Root("drain"), "GKE may refuse timeouts of drains",
			"They are enabled for some projects. The API refuses them elsewhere with "+
				"\"node drain timeout is not enabled for this project\".")
	}
}

// checkWords refuses words that the API does not know.
func (m *poolModel) checkWords(j job) {
	oneOf := func(at path.Path, v types.String, all map[string]int32) {
		if s := v.ValueString(); s != "" && !slices.Contains(enumNames(all), s) {
			j.diags.AddAttributeError(at, "Unknown value", fmt.Sprintf("%q is not valid: give one of %s.", s, strings.Join(enumNames(all), ", ")))
		}
	}
	oneOf(path.Root("workload_metadata"), m.WorkloadMetadata, containerpb.WorkloadMetadataConfig_Mode_value)
	for i, t := range elementsOf[taintModel](m.Taints) {
		oneOf(path.Root("taints").AtListIndex(i).AtName("effect"), t.Effect, containerpb.NodeTaint_Effect_value)
		if isGiven(t.Key) && isGiven(t.Value) {
			checkNodeLabel(path.Root("taints").AtListIndex(i), t.Key.ValueString(), t.Value.ValueString(), j.diags)
		}
	}
	if a := m.gpus(); a != nil {
		at := path.Root("accelerator")
		oneOf(at.AtName("sharing"), a.Sharing, containerpb.GPUSharingConfig_GPUSharingStrategy_value)
		oneOf(at.AtName("driver_version"), a.Driver, containerpb.GPUDriverInstallationConfig_GPUDriverVersion_value)
		if a.Type.IsNull() || a.Count.IsNull() {
			j.diags.AddAttributeError(at, "Incomplete accelerator", "Give type and count.")
		}
		if a.Sharing.IsNull() != a.Clients.IsNull() {
			j.diags.AddAttributeError(at, "Incomplete sharing", "Give sharing and shared_clients, or neither.")
		}
	}
	if s := m.scaling(); s != nil {
		oneOf(path.Root("autoscaling").AtName("location_policy"), s.Location, containerpb.NodePoolAutoscaling_LocationPolicy_value)
		if !s.Max.IsNull() && !s.TotalMax.IsNull() {
			j.diags.AddAttributeError(path.Root("autoscaling"), "Limits given twice", "Give min and max, or total_min and total_max.")
		}
		if s.Max.IsNull() && s.TotalMax.IsNull() {
			j.diags.AddAttributeError(path.Root("autoscaling"), "No upper limit", "Give max or total_max.")
		}
	}
}

// checkStep holds the rules of where machines come from, of one step.
func (m *poolModel) checkStep(ctx context.Context, j job, at path.Path, prior *poolModel) {
	refuse := func(name, summary, detail string) {
		where := at.AtName(name)
		if len(at.Steps()) == 0 {
			where = path.Root(name)
		}
		j.diags.AddAttributeError(where, summary, detail)
	}
	flex, queued, spot, compact := m.FlexStart.ValueBool(), m.Queued.ValueBool(), m.Spot.ValueBool(), m.Compact.ValueBool()
	switch {
	case spot && flex:
		refuse("spot", "Spot and flex-start at once", "Take one of them.")
	case m.Reservation.ValueString() != "" && (spot || flex || queued):
		refuse("reservation", "Reservation of such machines", "Spot, flex-start and queued machines never come from a reservation; in a fallback, give reservation = \"\".")
	case flex && m.Autoscaling.IsNull():
		refuse("flex_start", "Flex-start without autoscaling", "Declare autoscaling, and leave node_count out.")
	case flex && m.AutoRepair.ValueBool() && !j.omitted("auto_repair"): // left out, it is what the step that was taken has
		refuse("flex_start", "Flex-start with repairs", "Leave auto_repair out: such machines are never recreated, "+
			"and others of this pool are.")
	case (flex || queued) && len(at.Steps()) == 0 && !(j.omitted("max_surge") && j.omitted("max_unavailable") && m.BlueGreen.IsNull()):
		refuse(map[bool]string{true: "flex_start", false: "queued_provisioning"}[flex], "Upgrades are not for such nodes", "Leave max_surge, max_unavailable and blue_green out: nodes of this kind are replaced as their work ends.")
	case queued && spot:
		refuse("queued_provisioning", "Queued and spot at once", "Take one of them.")
	case queued && !m.Autoscaling.IsUnknown() && (m.scaling() == nil || m.scaling().TotalMin.ValueInt64() != 0 || m.scaling().TotalMax.IsNull()):
		refuse("queued_provisioning", "Queued without autoscaling from 0", "Declare autoscaling with total_min = 0 and total_max.")
	case queued && compact:
		refuse("queued_provisioning", "Queued and compact at once", "Take one of them.")
	case compact && isGiven(m.BlueGreen):
		refuse("compact_placement", "Compact placement with blue-green upgrades", "Leave blue_green out: a second set of nodes does not fit into the same place.")
	case compact && !m.Zones.IsUnknown() && len(list(m.Zones)) > 1, compact && m.ID.IsUnknown() && m.Zones.IsUnknown() && j.omitted("zones") && m.regional(j):
		refuse("zones", "Compact placement in several zones", "Name one zone.")
	case compact && (strings.HasPrefix(m.MachineType.ValueString(), "e2-") || strings.HasPrefix(m.MachineType.ValueString(), "n1-")):
		refuse("machine_type", "Machine cannot be placed compactly", fmt.Sprintf("%s machines have no compact placement; take one such as c3, n2, g2, a2 or a3.", m.MachineType.ValueString()[:2]))
	}
	if d := duration(m.MaxRun); flex && d != nil && d.AsDuration() > maxFlex {
		refuse("max_run_duration", "Flex-start nodes live seven days", fmt.Sprintf("%s is longer: give 168h at most, or leave it out.", m.MaxRun.ValueString()))
	}
	if prior == nil || changed(m.MachineType, prior.MachineType) {
		checkOffer(ctx, m, j, refuse)
		return
	}
	kind, ok := machineOf(m.MachineType.ValueString())
	m.checkGPUs(j, kind, ok, refuse)
	m.checkLocalSSDs(j, refuse)
}

// maxFlex is how long machines of flex-start live at most:
// https://cloud.google.com/kubernetes-engine/docs/concepts/dws
const maxFlex = 7 * 24 * time.Hour

// regional reports whether the pool's cluster is in a region.
func (m *poolModel) regional(j job) bool {
	_, location, _, err := m.place(j)
	return err == nil && !isZone(location) && !m.Cluster.IsUnknown()
}

// checkGPUs looks whether machine type and GPUs go together.
func (m *poolModel) checkGPUs(j job, kind catalogue.Machine, ok bool, refuse func(name, summary, detail string)) {
	a, name := m.gpus(), m.MachineType.ValueString()
	switch {
	case m.MachineType.IsUnknown() || m.Accelerator.IsUnknown() || !ok || a != nil && (a.Type.IsUnknown() || a.Count.IsUnknown()):
		return
	case kind.GPU != "" && a == nil:
		refuse("machine_type", "GPUs are not declared", fmt.Sprintf("%s always has %d × %s: declare accelerator { "+
			"type = %q, count = %d }.", name, kind.GPUs, kind.GPU, kind.GPU, kind.GPUs))
	case kind.GPU != "" && (a.Type.ValueString() != kind.GPU || a.Count.ValueInt64() != kind.GPUs):
		refuse("machine_type", "Machine has other GPUs", fmt.Sprintf("%s always has %d × %s, and accelerator says %d "+
			"× %s.", name, kind.GPUs, kind.GPU, a.Count.ValueInt64(), a.Type.ValueString()))
	case kind.GPU == "" && a != nil && !strings.HasPrefix(name, "n1-"):
		refuse("machine_type", "Machine cannot have GPUs", fmt.Sprintf("GPUs are attached to n1 machines, or come with a2, a3, a4, a4x, g2 and g4 ones; %s has none.", firstNonEmpty(name, catalogue.Default)))
	case kind.GPU == "" && a != nil && unattachable(name, kind.CPUs, a) != "":
		refuse("machine_type", "Machine cannot have these GPUs", unattachable(name, kind.CPUs, a))
	}
	if a == nil {
		return
	}
	if m.regional(j) && m.ID.IsUnknown() && m.Zones.IsUnknown() && j.omitted("zones") {
		refuse("zones", "Zones of the GPUs are missing", "Name the zones: few zones of a region have the GPU, and each has node_count nodes.")
	}
}
