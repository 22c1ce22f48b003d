package metal

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/drain"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/member"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// pinnedError lists volumes whose data goes with the node.
type pinnedError struct {
	node    string
	volumes []member.Volume
}

func (e *pinnedError) Error() string {
	var all []string
	for _, v := range e.volumes {
		all = append(all, v.String())
	}
	return fmt.Sprintf("only pods on node %s can use the volumes %s, whose data would be out of reach for ever; copy it and delete them, or set drain_deletes_data = true to give it up", e.node, strings.Join(all, ", "))
}

// restore has the node leave: its pods first, then the node, then the machine is
// reset, and then its packages go.
func (m *nodeModel) restore(ctx context.Context, s *settings, on host.Machine, rec *host.Record) ([]host.Outcome, error) {
	limit, more := m.Timeouts.Delete(ctx, nodeRemoveLimit)
	if err := failed(more); err != nil {
		return nil, err
	}
	// A join that continues after stoke was killed might still succeed.
	if err := kubeadm.Await(ctx, on); err != nil {
		return nil, err
	}
	facts, err := kubeadm.Observe(ctx, on)
	if err != nil {
		return nil, err
	}
	j, known := joinFrom(ctx, m.Cluster)
	if !known {
		return nil, errors.New("the state does not say which cluster it is of")
	}
	c, head, err := s.cluster(ctx, j)
	if err == nil {
		err = revokeLeft(ctx, s, rec, head)
	}
	gone := errors.Is(err, errNoCluster)
	if err != nil && !gone {
		return nil, fmt.Errorf("the cluster cannot list the work on the node, so that it stays: %w. Where its control plane is gone for good, remove this from the state (stoke state rm) and reset the machine by hand (kubeadm reset)", err)
	}
	own := ownNode(ctx, m.Host, j)
	switch {
	case own && gone:
		return nil, nil
	case own:
		return nil, member.Release(ctx, c, facts.NodeName, m.ID.ValueString())
	}
	ours := facts.Role == kubeadm.Worker && (facts.CAHash == "" || facts.CAHash == j.CAHash.ValueString())
	reset := func(ctx context.Context) error {
		if facts.Role == kubeadm.ControlPlane {
			return nil
		}
		if ours || len(facts.Left) > 0 {
			if err := kubeadm.Reset(ctx, on, ""); err != nil {
				return err
			}
		}
		var enabled bool
		if noted, err := rec.ReadNote(nodeEnabled, &enabled); err != nil || !noted || enabled {
			return err
		}
		_, _, err := host.Status(ctx, on, "systemctl", "disable", "--quiet", "kubelet.service") // a unit that is gone has no link
		return err
	}
	name := m.Name.ValueString()
	if facts.NodeName != "" && ours {
		name = facts.NodeName
	}
	if gone || name == "" {
		err = reset(ctx)
	} else {
		policy := m.nodePolicy(j)
		policy.Limits.Drain = limit
		err = m.leaveCluster(ctx, s, c, name, policy, reset)
	}
	if err != nil {
		return nil, err
	}
	outcomes, err := packages.Restore(ctx, on, rec)
	if ours {
		outcomes = append([]host.Outcome{{Fact: "node " + name, Fate: host.Removed}}, outcomes...)
	}
	return outcomes, err
}

// revokeLeft ends what a join that was cut off has left.
func revokeLeft(ctx context.Context, s *settings, rec *host.Record, head *host.Remote) error {
	return (&nodeLook{settings: s, rec: rec, head: head}).revoke(ctx)
}

// leaveCluster has pods leave a node, which then ends. work is what is done on its
// machine before it does: a kubelet that runs would register it again.
func (m *nodeModel) leaveCluster(ctx context.Context, s *settings, c *kubernetes.Client, name string, p drain.Policy, work func(context.Context) error) error {
	have, err := member.Observe(ctx, c, name)
	if err != nil {
		return err
	}
	if have == nil || !m.owns(ctx, have) {
		return work(ctx) // the node was removed, or its name now belongs to another machine
	}
	if m.Verify.ValueBool() { // a pod of ours would be in the way
		if err := member.RemoveProbes(ctx, c, name); err != nil {
			return err
		}
	}
	volumes, err := member.Pinned(ctx, c, have)
	if err != nil {
		return err
	}
	if len(volumes) > 0 && !m.DrainData.ValueBool() {
		return &pinnedError{name, volumes}
	}
	node, err := s.shared.roll.LookBy(ctx, c, name)
	if err != nil {
		return err
	}
	return s.shared.roll.Leave(ctx, node, "the node leaves the cluster", p, func(ctx context.Context) error {
		if err := work(ctx); err != nil {
			return err
		}
		host.Step(ctx, "removing node %s", name)
		return member.Delete(ctx, c, have)
	})
}

// owns reports whether a node of the cluster belongs to this resource: by its
// mark, or by its address while it has none because a join was cut off.
func (m *nodeModel) owns(ctx context.Context, have *member.State) bool {
	if have.Mark.ID != "" {
		return have.Mark.ID == m.ID.ValueString()
	}
	way, _ := connect.MachineFromObject(ctx, m.Host)
	ip, err := m.address(way)
	return err == nil && slices.ContainsFunc(have.Node.Status.Addresses, func(a core.NodeAddress) bool {
		is, wrong := netip.ParseAddr(a.Address)
		return a.Type == core.NodeInternalIP && wrong == nil && is == ip.Unmap()
	})
}

// undoing is what destroying interrupts.
func (m *nodeModel) undoing(ctx context.Context, s *settings, on host.Machine, _ *host.Record, diags *diag.Diagnostics) []host.Change {
	if j, known := joinFrom(ctx, m.Cluster); known && ownNode(ctx, m.Host, j) {
		return nil
	} else if known {
		m.warnPinned(ctx, s, j, diags)
	}
	if node, err := s.shared.roll.Look(ctx, on); node == nil && err == nil {
		return nil
	}
	return []host.Change{{Fact: "the node leaves the cluster", Disruption: host.Drains}}
}

// warnPinned tells a plan to destroy which volumes stand in its way.
func (m *nodeModel) warnPinned(ctx context.Context, s *settings, j joinModel, diags *diag.Diagnostics) {
	c, _, err := s.cluster(ctx, j)
	if err != nil {
		return // apply says so
	}
	have, err := member.Observe(ctx, c, m.Name.ValueString())
	if err != nil || have == nil {
		return
	}
	volumes, err := member.Pinned(ctx, c, have)
	if err != nil || len(volumes) == 0 {
		return
	}
	is := &pinnedError{m.Name.ValueString(), volumes}
	if m.DrainData.ValueBool() {
		diags.AddWarning("Data of volumes is given up", fmt.Sprintf("Only pods on node %s can use %s.", is.node, volumes))
	} else {
		diags.AddWarning("Volumes are pinned to the node", sentence(is))
	}
}

// Delete has the node leave. Where its machine cannot be reached, what the cluster
// knows of it goes: see removeDead.
func (r *nodeResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	state := new(nodeModel)
	if resp.Diagnostics.Append(req.State.Get(ctx, state)...); resp.Diagnostics.HasError() {
		return
	}
	k := state.kind()
	way, err := r.locked(ctx, state, func(ctx context.Context, m host.Machine) error {
		return r.undo(ctx, m, state, &resp.Diagnostics)
	})
	if err != nil && (isUnreachable(err) || ssh.IsPermanent(err)) && !errors.As(err, new(*host.LockedError)) && !errors.Is(err,
		host.ErrStopped) {
		r.removeDead(ctx, state, way, err, &resp.Diagnostics)
		return
	}
	k.refuse(ctx, &resp.Diagnostics, k.at, way, err, "Node has not left")
	if err == nil && !resp.Diagnostics.HasError() {
		r.sweep(ctx, state, &resp.Diagnostics)
	}
}

// sweep removes the node of a machine that was installed anew, and so knows
// nothing of it any more.
func (r *nodeResource) sweep(ctx context.Context, state *nodeModel, diags *diag.Diagnostics) {
	j, known := joinFrom(ctx, state.Cluster)
	name := state.Name.ValueString()
	if !known || name == "" || ownNode(ctx, state.Host, j) {
		return
	}
	c, _, err := r.settings.cluster(ctx, j)
	if err != nil {
		if !errors.Is(err, errNoCluster) {
			diags.AddWarning("Node may still be there", fmt.Sprintf("Whether the cluster still has the node %s is not known: %s", name, sentence(err)))
		}
		return
	}
	have, err := member.Observe(ctx, c, name)
	if err == nil && have != nil && have.Mark.ID == state.ID.ValueString() && !have.Ready() {
		err = member.Delete(ctx, c, have)
	}
	if err != nil {
		addError(diags, state.kind().at, "Node has not left", err)
	}
}

// removeDead removes a node whose machine does not answer. While its kubelet
// reports, the machine is alive, and only we cannot reach it: then nothing is
// removed, because its pods would run twice.
func (r *nodeResource) removeDead(ctx context.Context, state *nodeModel, way connect.SSH, unreached error, diags *diag.Diagnostics) {
	summary, detail := unreachable(way.Address, unreached)
	refuse := func(format string, args ...any) { diags.AddError(summary, detail+" "+fmt.Sprintf(format, args...)) }
	j, known := joinFrom(ctx, state.Cluster)
	if !known {
		refuse("The state does not say which cluster it is of.")
		return
	}
	c, _, err := r.settings.cluster(ctx, j)
	switch {
	case errors.Is(err, errNoCluster):
		diags.AddWarning("Machine was not reset", detail+" Its cluster is gone. Should the machine come back, run kubeadm reset there.")
		return
	case err != nil:
		refuse("Its cluster cannot be reached either: %s", sentence(err))
		return
	}
	name := state.Name.ValueString()
	have, err := member.Observe(ctx, c, name)
	switch {
	case err != nil:
		refuse("Its cluster cannot be reached either: %s", sentence(err))
		return
	case have != nil && have.Ready():
		refuse("The cluster says that the machine is alive: the kubelet of node %s reports. Mend the way to the machine, or turn it off, and destroy again.", name)
		return
	}
	p := state.nodePolicy(j)
	p.Force = state.OutOfService.ValueBool()
	err = state.leaveCluster(ctx, r.settings, c, name, p, func(context.Context) error { return nil })
	var overdue *drain.OverdueError
	switch {
	case errors.As(err, &overdue):
		refuse("%s Where the machine is off for certain, apply out_of_service = true first: that confirms it.", sentence(err))
	case err != nil:
		addError(diags, state.kind().at, "Node has not left", err)
	default:
		diags.AddWarning("Machine was not reset", detail+" Its node is removed from the cluster. Should the machine come back, it is still set up as a node: run kubeadm reset there.")
	}
}
