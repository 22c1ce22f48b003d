package metal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
)

// ModifyPlan connects to the machine and observes it: the changes of an apply,
// their disruptions, and changes that it must not make.
func (r *hostResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	plan, prior, ok := r.planned(ctx, req, resp)
	if !ok {
		return
	}
	plan.prior, plan.config = prior, new(hostModel)
	if resp.Diagnostics.Append(req.Config.Get(ctx, plan.config)...); resp.Diagnostics.HasError() {
		return
	}
	way, known := plan.way()
	known = known && r.settings != nil
	if known && plan.HostKey.IsUnknown() && plan.AcceptNewHostKey.ValueBool() {
		way.HostKey = r.meet(ctx, way, &resp.Diagnostics)
		if way.HostKey != "" {
			plan.HostKey = types.StringValue(way.HostKey)
		}
	}
	plan.derive(ctx, way, &resp.Diagnostics)
	plan.CordonedBy = types.StringNull()
	for _, s := range sections(r.settings) {
		s.plan(ctx, prior, plan, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	if resp.Diagnostics.HasError() || !known || way.HostKey == "" {
		return
	}
	same := !req.State.Raw.IsNull() && resp.Plan.Raw.Equal(req.State.Raw)
	if same && !unfinished(ctx, req.Private) {
		return // Read has found no difference
	}
	changes, looked := r.examine(ctx, way, plan, &resp.Diagnostics)
	if same && len(changes) == 0 {
		return // nothing is left of what failed
	}
	if !plan.Facts.IsUnknown() { // what changes may change them, too
		plan.Facts = types.ObjectUnknown(factsTypes())
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	}
	var most promise
	if looked {
		most = promising(changes)
	}
	most.keep(ctx, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("id"), plan.ID)...)
}

func (m *hostModel) derive(ctx context.Context, way connect.SSH, diags *diag.Diagnostics) {
	m.SSH = types.ObjectUnknown(connect.MachineTypes())
	if _, known := m.way(); known && way.HostKey != "" {
		o, d := way.Object(ctx)
		diags.Append(d...)
		m.SSH = o
	}
	m.NodeAddress = m.PrivateAddress
	if m.PrivateAddress.IsNull() {
		m.NodeAddress = m.Address
	}
}

// meet asks a machine for its key, which is "" when it cannot be reached. The
// plan shows the key, so that the user can compare it.
func (r *hostResource) meet(ctx context.Context, way connect.SSH, diags *diag.Diagnostics) string {
	shown := ""
	m, err := r.settings.reach(way, func(key string) error { shown = key; return nil })
	if errors.Is(err, connect.ErrUnknown) {
		return ""
	}
	if err == nil {
		_, err = m.Run(ctx, host.Command{Args: []string{"true"}, Unprivileged: true})
	}
	if err != nil {
		summary, detail := unreachable(way.Address, err)
		diags.AddAttributeWarning(path.Root("address"), summary, detail)
		return ""
	}
	print, err := ssh.Fingerprint(shown)
	if err != nil {
		diags.AddAttributeError(path.Root("host_key"), "Invalid host key", fmt.Sprintf("%s shows %q: %s.", way.Address, shown, err))
		return ""
	}
	note(ctx, diags, providers.NoteFact, []string{"host_key"}, fmt.Sprintf("accepted unseen from %s: %s", way.Address, print))
	return shown
}

// examine returns the changes of an apply; looked is false if they are not
// known.
func (r *hostResource) examine(ctx context.Context, way connect.SSH, plan *hostModel, diags *diag.Diagnostics) (changes []host.Change, looked bool) {
	at := path.Root("address")
	m, err := r.settings.reach(way, nil)
	if err == nil {
		_, err = m.Run(ctx, host.Command{Args: []string{"true"}, Unprivileged: true})
	} else if !plan.Credential.IsNull() {
		at = path.Root("credential")
	}
	switch {
	case err == nil:
	case errors.Is(err, connect.ErrUnknown):
		return nil, false // of the provider block; apply knows
	case ssh.IsPermanent(err):
		var key *ssh.HostKeyError
		if errors.As(err, &key) {
			at = keyOf(way, key)
		}
		summary, detail := unreachable(way.Address, err)
		diags.AddAttributeError(at, summary, detail)
		return nil, false
	default:
		notLooked(diags, path.Root("address"), way.Address, err)
		return nil, false
	}
	plan.ID = claim(ctx, m, hostRecord, "Machine is managed already", path.Root("address"), way, plan.ID, diags)
	for _, s := range sections(r.settings) {
		changes = append(changes, s.changes(ctx, m, plan, diags)...)
	}
	changes = append(changes, plannedRestores(ctx, r.settings, m, recordOf(ctx, m, hostRecord, plan.ID.ValueString()), plan, diags)...)
	plan.keepsRuntime(changes, diags)
	changes = append(changes, plannedRestores(ctx, r.settings, m, replaced(ctx, m, hostRecord), nil, diags)...)
	if f, err := r.settings.factsOf(ctx, m); err == nil && plan.prior != nil {
		another(plan.prior, f, way.Address, changes, diags)
	}
	r.settings.reportPlan(ctx, diags, m, changes, plan.policy())
	r.settings.noteSlowSudo(m, diags)
	return changes, true
}

// another warns if the way leads to another machine than before, or to a
// reinstalled one: by its host key these look the same. The plan compares with
// the values of the former machine, so the warning lists the differences.
func another(prior *hostModel, is facts.Facts, address string, changes []host.Change, diags *diag.Diagnostics) bool {
	was, _ := prior.Facts.Attributes()["machine_id"].(types.String)
	if was.ValueString() == "" || is.MachineID == "" || was.ValueString() == is.MachineID {
		return false
	}
	const most = 20
	var differ []string
	for _, c := range changes {
		differ = append(differ, c.Fact)
	}
	slices.Sort(differ)
	if differ = slices.Compact(differ); len(differ) > most {
		differ = append(differ[:most], fmt.Sprintf("and %d more", len(differ)-most))
	}
	would := "No declared value would be changed there."
	if len(differ) > 0 {
		would = "Apply would change there:\n  " + strings.Join(differ, "\n  ")
	}
	diags.AddAttributeWarning(path.Root("address"), "This is another machine", fmt.Sprintf(
		"%s has the machine id %s, and the machine in the state (%s) has %s: it was replaced or reinstalled, or the "+
			"address is wrong. Stoke's changes on the former machine stay there. %s",
		address, is.MachineID, prior.Address.ValueString(), was.ValueString(), would))
	return true
}

// keyOf returns the argument with a host key that differs from the machine's
// key; a hop other than the machine itself is named by its address.
func keyOf(way connect.SSH, shown *ssh.HostKeyError) path.Path {
	for i, hop := range way.Hops {
		if hop.Address == shown.Address && hop.Address != way.Address {
			return path.Root("bastion").AtListIndex(i).AtName("host_key")
		}
	}
	if print, err := ssh.Fingerprint(way.HostKey); err == nil && !strings.Contains(shown.Want, print) {
		return path.Root("address") // of the provider's bastion, or of a jump host
	}
	return path.Root("host_key")
}
