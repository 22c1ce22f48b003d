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
	"github.com/stokehq/stoke/providers/metal/firewall"
)

const maxCuts = 20

// ModifyPlan computes the rules, and says whom they would cut.
func (r *firewallResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	plan, prior, ok := r.planned(ctx, req, resp)
	if !ok {
		return
	}
	want, known := plan.spec(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	var state firewallModel // of this very machine
	switch {
	case prior == nil:
	case otherMachine(ctx, prior.Host, plan.Host):
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("host"))
	default:
		state = *prior
	}
	plan.Backend, plan.Persistent = types.StringUnknown(), types.BoolValue(true)
	plan.Lines = types.ListUnknown(types.StringType)
	backend := state.Backend.ValueString() // Read has just looked
	if known && backend != "" {
		plan.setLines(ctx, firewall.Backend(backend), want.Lines(firewall.Backend(backend)), &resp.Diagnostics)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
		if resp.Plan.Raw.Equal(req.State.Raw) {
			return
		}
	}
	var have *firewall.Have
	if known {
		have = r.examine(ctx, plan, &state, want, &resp.Diagnostics)
	}
	if have != nil {
		plan.setLines(ctx, have.Backend, want.Lines(have.Backend), &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

func (m *firewallModel) setLines(ctx context.Context, backend firewall.Backend, lines []string, diags *diag.Diagnostics) {
	if lines == nil {
		lines = []string{}
	}
	v, d := types.ListValueFrom(ctx, types.StringType, lines)
	diags.Append(d...)
	m.Lines, m.Backend = v, types.StringValue(string(backend))
}

// examine looks at the machine on behalf of a plan. nil is that it could not.
func (r *firewallResource) examine(ctx context.Context, plan, state *firewallModel, want firewall.Spec, diags *diag.Diagnostics) *firewall.Have {
	m, way, err := r.machine(ctx, plan)
	if errors.Is(err, connect.ErrUnknown) {
		return nil
	}
	var have firewall.Have
	if err == nil {
		have, err = firewall.Observe(ctx, m, want)
	}
	var seen firewall.Connections
	if err == nil {
		seen, err = firewall.ReadConnections(ctx, m)
	}
	switch {
	case err == nil:
	case isUnreachable(err):
		notLooked(diags, path.Root("host"), way.Address, err)
		return nil
	default:
		addError(diags, path.Root("host"), "Firewall cannot be managed", err)
		return nil
	}
	switch err := have.Usable(want); {
	case errors.Is(err, firewall.ErrNoNft): // its metal_host may install it before, which the review sees
		if r.settings.seen.lacksNft(way.Address, way.HostKey) {
			break
		}
		diags.AddAttributeWarning(path.Root("host"), "Program nft is missing", fmt.Sprintf("%s: %s.", m.Name(), err))
	case err != nil:
		diags.AddAttributeError(path.Root("host"), "Firewall cannot be managed", fmt.Sprintf("%s: %s.", m.Name(), err))
	}
	if state.ID.IsNull() {
		if err := foreign(ctx, m, plan.ID.ValueString(), have.Exists()); err != nil {
			addError(diags, path.Root("host"), "Firewall cannot be managed", err)
		}
	}
	plan.ID = claim(ctx, m, firewallRecord, "Firewall is managed already", path.Root("host"), way, plan.ID, diags)
	if replaced(ctx, m, firewallRecord) != nil {
		note(ctx, diags, providers.NoteDisruption, []string{"rules"}, "the rules are removed before they are made "+
			"again: everything is open in between")
	}
	var before *firewall.Spec
	if !state.ID.IsNull() {
		var quiet diag.Diagnostics
		if s, ok := state.spec(ctx, &quiet); ok && len(have.Lines) > 0 {
			before = &s
		}
	}
	seen.LetIn = have.LetsIn
	noteCuts(ctx, diags, seen.Cuts(want, before))
	noteOthers(ctx, diags, have)
	if plan.SSHFrom.IsNull() {
		note(ctx, diags, providers.NoteFact, []string{"ssh_from"}, "SSH stays open to all addresses")
	}
	return &have
}

func noteCuts(ctx context.Context, diags *diag.Diagnostics, cuts []firewall.CutConnection) {
	for i, c := range cuts {
		if i == maxCuts {
			note(ctx, diags, providers.NoteDisruption, []string{"rules"}, fmt.Sprintf("and %d more", len(cuts)-i))
			return
		}
		note(ctx, diags, providers.NoteDisruption, []string{"rules"}, c.Text)
		if c.Own {
			diags.AddAttributeWarning(path.Root("ssh_from"), "Rules would cut stoke off", "This "+c.Text+".")
		}
	}
}

// noteOthers lists other tables that filter: a rule of stoke is not enough
// then.
func noteOthers(ctx context.Context, diags *diag.Diagnostics, have firewall.Have) {
	others := have.Others
	if have.Backend != firewall.Nftables { // ufw, whose own chains these are
		others = slices.DeleteFunc(slices.Clone(others), func(o string) bool { return strings.HasPrefix(o, "ip") })
		if theirs := have.Theirs; len(theirs) > 0 {
			more := ""
			if len(theirs) > maxCuts {
				theirs, more = theirs[:maxCuts], fmt.Sprintf("; and %d more", len(theirs)-maxCuts)
			}
			note(ctx, diags, providers.NoteFact, []string{"rules"},
				fmt.Sprintf("ufw has foreign rules, which stay and come first (%s%s)", strings.Join(theirs, "; "), more))
		}
	}
	if len(others) > 0 {
		note(ctx, diags, providers.NoteFact, []string{"rules"},
			fmt.Sprintf("other tables filter incoming packets, too (%s): a packet that they drop stays dropped", strings.Join(others, "; ")))
	}
}
