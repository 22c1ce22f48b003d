package metal

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// ModifyPlan looks at the machine and at its cluster: what stands in the way, what
// apply would do and whom that interrupts.
func (r *nodeResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	plan, state, ok := r.planned(ctx, req, resp)
	if !ok {
		return
	}
	replaces := false
	if state != nil {
		if otherMachine(ctx, state.Host, plan.Host) && !reinstalled(ctx, state.Host, plan.Host) {
			replaces = true
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root("host"))
		}
		if otherCluster(ctx, state.Cluster, plan.Cluster) {
			replaces = true
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root("cluster"))
		}
		if len(state.Drift.Elements()) == 0 && resp.Plan.Raw.Equal(req.State.Raw) && !unfinished(ctx, req.Private) {
			return // Read has looked, and all is as it is to be
		}
	}
	plan.Drift = types.MapValueMust(types.StringType, map[string]attr.Value{})
	plan.Capacity = types.ObjectUnknown(connect.CapacityAttribute("").GetType().(types.ObjectType).AttrTypes)
	plan.Name = plan.plannedName(replaces)
	r.examine(ctx, plan, state, &resp.Diagnostics).keep(ctx, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// plannedName is what a plan promises that the node will be called. A node of which an
// apply that was killed had not come to know the name has none in the state, and gets one.
func (m *nodeModel) plannedName(replaces bool) types.String {
	switch {
	case !m.NodeName.IsNull():
		return m.NodeName
	case replaces || m.Name.IsNull():
		return types.StringUnknown()
	}
	return m.Name
}

// reinstalled reports whether a machine with another key at the same address
// was reinstalled, and is not another machine: it joins again and keeps its
// name.
func reinstalled(ctx context.Context, was, is types.Object) bool {
	a, known := connect.MachineFromObject(ctx, was)
	b, also := connect.MachineFromObject(ctx, is)
	return known && also && a.Address == b.Address && a.Port == b.Port
}

// otherCluster tells another cluster from one whose arguments changed. A cluster that
// is there keeps its authority in plans: one that is not known is of a new cluster.
func otherCluster(ctx context.Context, was, is types.Object) bool {
	a, known := joinFrom(ctx, was)
	b, also := joinFrom(ctx, is)
	return known && also && a.CAHash.ValueString() != "" && a.CAHash.ValueString() != b.CAHash.ValueString()
}

// examine looks on behalf of a plan, and returns what it promises.
func (r *nodeResource) examine(ctx context.Context, plan, prior *nodeModel, diags *diag.Diagnostics) promise {
	var quiet diag.Diagnostics
	if _, ok := plan.read(ctx, &quiet); !ok || r.settings == nil || !isWhollyKnown(ctx, plan.Cluster) {
		return promise{}
	}
	m, way, err := r.machine(ctx, plan)
	var l *nodeLook
	if err == nil {
		l, err = r.settings.lookNode(ctx, m, plan)
	}
	var cluster *clusterError
	switch {
	case err == nil:
		return r.reportPlan(ctx, m, way, plan, l, l.plannedChanges(ctx, prior), diags)
	case errors.Is(err, connect.ErrUnknown):
	case errors.As(err, &cluster), errors.Is(err, errNoCluster):
		diags.AddAttributeWarning(path.Root("cluster"), "Cluster cannot be asked", sentence(err)+" The plan is made without looking; apply looks before it changes anything.")
	case ssh.IsPermanent(err):
		summary, detail := unreachable(way.Address, err)
		diags.AddAttributeError(path.Root("host"), summary, detail)
	case isUnreachable(err):
		notLooked(diags, path.Root("host"), way.Address, err)
	default:
		addError(diags, path.Root("host"), "Machine cannot be examined", err)
	}
	return promise{}
}

// plannedChanges is changes, and what another change of this plan brings: the configuration
// of kubelets that the cluster does not have yet.
func (l *nodeLook) plannedChanges(ctx context.Context, prior *nodeModel) []host.Change {
	changes := l.changes()
	if prior == nil || !l.hasJoined() || l.own || len(l.fields) > 0 {
		return changes
	}
	if was, known := joinFrom(ctx, prior.Cluster); known && !was.KubeletHash.Equal(l.join.KubeletHash) {
		changes = append(changes, host.Change{Fact: "kubelet configuration", Path: []string{"cluster"}, Disruption: host.RestartsKubelet})
	}
	return changes
}

// reportPlan reports obstacles, the changes of an apply, and their disruptions.
func (r *nodeResource) reportPlan(ctx context.Context, m host.Machine, way connect.SSH, plan *nodeModel, l *nodeLook, changes []host.Change, diags *diag.Diagnostics) promise {
	plan.ID = claim(ctx, m, nodeRecord, "Node is managed already", path.Root("host"), way, plan.ID, diags)
	if replaced(ctx, m, nodeRecord) == nil {
		for _, p := range l.problems(ctx, plan) {
			// Skip problems that other resources of this plan, such as metal_host, will
			// fix.
			if p.summary == "containerd does not run" || p.summary == "Machine has no such address" {
				diags.AddAttributeWarning(p.at, p.summary, m.Name()+": "+p.detail)
			} else {
				diags.AddAttributeError(p.at, p.summary, m.Name()+": "+p.detail)
			}
		}
	}
	if plan.Name.IsUnknown() && l.facts.Role != kubeadm.NoRole && l.node.Name != "" {
		plan.Name = types.StringValue(l.node.Name)
	}
	if !l.own {
		changes = append(changes, l.forecast(ctx, diags)...)
	}
	if l.facts.Role == kubeadm.NoRole && l.have != nil && l.have.Mark.ID == plan.ID.ValueString() {
		note(ctx, diags, providers.NoteFact, []string{"host"}, fmt.Sprintf("the machine is no longer a node, though "+
			"the cluster has node %s: it joins again, and that node is removed first", l.node.Name))
	}
	if !l.own && l.facts.Role == kubeadm.Worker && !l.facts.Whole {
		note(ctx, diags, providers.NoteFact, []string{"host"}, "kubeadm join was cut off there: the machine is reset and joins again")
	}
	noteFacts(ctx, diags, "gpus", l.lost)
	r.settings.reportPlan(ctx, diags, m, changes, plan.nodePolicy(l.join))
	return promising(changes)
}

// forecast is what apt would do besides what is declared.
func (l *nodeLook) forecast(ctx context.Context, diags *diag.Diagnostics) []host.Change {
	f, err := packages.Foresee(ctx, l.on, l.wantPkgs, l.packages)
	if err != nil {
		diags.AddWarning("The forecast of apt is not known", fmt.Sprintf("%s.", err))
		return nil
	}
	for _, why := range f.Refusals {
		diags.AddAttributeError(path.Root("cluster"), "Package change refused", fmt.Sprintf("%s: %s.", l.on.Name(), why))
	}
	for _, u := range f.Missing {
		diags.AddAttributeError(path.Root("cluster"), "Package cannot be had", fmt.Sprintf("%s: %s.", l.on.Name(), u.Why))
	}
	noteFacts(ctx, diags, "cluster", actionLines(f.Actions))
	if l.facts.Role == kubeadm.NoRole {
		return nil // no pods run there, and apply finds out the rest
	}
	for _, u := range f.Doubtful {
		f.Notes = append(f.Notes, u.Why)
	}
	noteFacts(ctx, diags, "cluster", f.Notes)
	return forecastChanges(nil, f, nil)
}
