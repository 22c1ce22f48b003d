package metal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/drain"
	"github.com/stokehq/stoke/providers/metal/host"
)

// processState is what all resources of the provider in this process have in common,
// whatever their provider block and phase.
type processState struct {
	locks *host.Locks
	roll  *drain.Roll
}

func newShared() *processState {
	who := host.ThisProcess()
	return &processState{locks: &host.Locks{Holder: who}, roll: &drain.Roll{By: who}}
}

func (s *processState) countBy(file types.String) diag.Diagnostics {
	var diags diag.Diagnostics
	if file.IsNull() || file.IsUnknown() {
		return diags
	}
	name, err := connect.ExpandHome(file.ValueString())
	if err == nil {
		err = s.roll.CountBy(name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // the cluster may be still to come
		diags.AddAttributeWarning(path.Root("cluster_kubeconfig"), "Nodes elsewhere are not counted", fmt.Sprintf("%s. As long as there is no such file, max_unavailable counts the machines of this configuration only.", err))
	case err != nil:
		diags.AddAttributeError(path.Root("cluster_kubeconfig"), "Invalid kubeconfig", fmt.Sprintf("%s.", err))
	}
	return diags
}

// disruptionModel is the part of a resource about disruptions of pods on a
// node. A model embeds it.
type disruptionModel struct {
	Disruption     types.String `tfsdk:"disruption"`
	MaxUnavailable types.Int64  `tfsdk:"max_unavailable"`
	DrainData      types.Bool   `tfsdk:"drain_deletes_data"`
	DrainUnmanaged types.Bool   `tfsdk:"drain_unmanaged_pods"`
}

func disruptionAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"disruption": schema.StringAttribute{
			Optional: true, Validators: []validator.String{oneOf{"refuse", "drain"}},
			Description: `Where the machine is a Kubernetes node, and pods run there that a change would hurt: "refuse" the change (default), or "drain" the node first.`,
		},
		"max_unavailable": schema.Int64Attribute{
			Optional: true, Validators: []validator.Int64{atLeastOne{}},
			Description: "How many nodes of the cluster may be unavailable at once, those included that are already; 1 when left out.",
		},
		"drain_deletes_data": schema.BoolAttribute{
			Optional: true, Description: "Drain pods that have files of their own on the node (emptyDir), which are lost.",
		},
		"drain_unmanaged_pods": schema.BoolAttribute{
			Optional: true, Description: "Evict pods without a controller, too.",
		},
	}
}

func (m disruptionModel) policy() drain.Policy {
	return drain.Policy{
		Drain: m.Disruption.ValueString() == "drain", MaxUnavailable: int(m.MaxUnavailable.ValueInt64()),
		DeleteData: m.DrainData.ValueBool(), Unmanaged: m.DrainUnmanaged.ValueBool(),
	}
}

type atLeastOne struct{}

func (atLeastOne) Description(context.Context) string         { return "at least 1" }
func (atLeastOne) MarkdownDescription(context.Context) string { return "at least 1" }

func (atLeastOne) ValidateInt64(_ context.Context, req validator.Int64Request, resp *validator.Int64Response) {
	if v := req.ConfigValue; !v.IsNull() && !v.IsUnknown() && v.ValueInt64() < 1 {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid value", fmt.Sprintf("It is %d and has to be at least 1.", v.ValueInt64()))
	}
}

// inCluster is a policy in the cluster that the machine is a node of: where that
// declares max_unavailable, it wins over what the machine's resources say. The
// records of metal_node and metal_cluster on the machine have it.
func inCluster(ctx context.Context, m host.Machine, p drain.Policy) (drain.Policy, error) {
	type cluster struct {
		MaxUnavailable int `json:"max_unavailable"`
	}
	var own cluster
	var joined struct {
		Cluster cluster `json:"cluster"`
	}
	for kind, declared := range map[string]any{nodeRecord: &joined, clusterRecord: &own} {
		rec, err := host.OpenRecord(ctx, m, kind)
		if errors.Is(err, host.ErrNoRecord) {
			continue
		}
		if err == nil && len(rec.LastDeclared()) > 0 {
			err = json.Unmarshal(rec.LastDeclared(), declared)
		}
		if err != nil {
			return p, fmt.Errorf("how many nodes of the cluster may be unavailable is not known: %w", err)
		}
	}
	p.MaxUnavailable = cmp.Or(own.MaxUnavailable, joined.Cluster.MaxUnavailable, p.MaxUnavailable)
	return p, nil
}

// locked calls work with the lock of a machine: no other process and no other
// resource of this process changes the machine. work uses only the given
// machine and context. Both end with the lock, unless it is unleased.
func (s *settings) locked(ctx context.Context, m host.Machine, unleased bool, work func(context.Context, host.Machine) error) error {
	lock, err := s.shared.locks.Lock(ctx, m)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if unleased {
		return work(ctx, m)
	}
	return work(lock.Context(), lock.Machine())
}

// disrupt does work on a machine, which is locked. Where the machine is a
// Kubernetes node, changes says what the work interrupts, and it is done so that
// no pod is hurt: see drain.Roll. Elsewhere nobody is asked.
func (s *settings) disrupt(ctx context.Context, m host.Machine, changes func(context.Context) ([]host.Change, error), p drain.Policy, work func(context.Context) error) error {
	node, unknown := s.shared.roll.Look(ctx, m)
	if node == nil && unknown == nil {
		return work(ctx)
	}
	ahead, err := changes(ctx)
	if err == nil {
		err = promised(ctx).covers(m, ahead)
	}
	if err == nil {
		p, err = inCluster(ctx, m, p)
	}
	switch {
	case err != nil:
		return err
	case unknown == nil:
		return s.shared.roll.Do(ctx, m, node, drain.Classed(ahead, node), p, bounded(ahead, work))
	case harmless(ahead):
		return bounded(ahead, work)(drain.Unknown(ctx, unknown))
	}
	return fmt.Errorf("what runs on the node is not known, so that nothing was changed that may hurt it: %w", unknown)
}

// leaveDrained has pods leave a machine that is a node, and then does work that ends the
// node under its name.
func (s *settings) leaveDrained(ctx context.Context, m host.Machine, what string, p drain.Policy, work func(context.Context) error) error {
	node, err := s.shared.roll.Look(ctx, m)
	if err != nil {
		return fmt.Errorf("what runs on the node is not known, so that nothing was changed: %w", err)
	}
	if p, err = inCluster(ctx, m, p); err != nil {
		return err
	}
	return s.shared.roll.Leave(ctx, node, what, p, work)
}

// cordonedBy is which run of stoke has cordoned the node and was cut off before
// it could undo that; null for none, and where that cannot be known.
func (s *settings) cordonedBy(ctx context.Context, m host.Machine) types.String {
	if node, err := s.shared.roll.Look(ctx, m); err == nil && node != nil && node.Mark != nil {
		return types.StringValue(node.Mark.String())
	}
	return types.StringNull()
}

// harmless reports whether pods go on in any case.
func harmless(changes []host.Change) bool {
	for _, c := range changes {
		if c.Reloads {
			return false
		}
		switch c.Disruption {
		case host.None, host.RestartsKubelet, host.RestartsContainer:
		default:
			return false
		}
	}
	return true
}

// reportPlan reports the disruptions of changes, and rejects disruptions that
// the policy forbids.
func (s *settings) reportPlan(ctx context.Context, diags *diag.Diagnostics, m host.Machine, changes []host.Change, p drain.Policy) {
	if host.Greatest(changes) == host.None {
		noteChanges(ctx, diags, changes)
		return
	}
	node, err := s.shared.roll.Look(ctx, m)
	changes = drain.Classed(changes, node)
	noteChanges(ctx, diags, changes)
	if err != nil {
		if !harmless(changes) {
			diags.AddWarning("The work on the node is not known", fmt.Sprintf("%s. Apply asks again, and changes nothing that may hurt pods before it knows.", err))
		}
		return
	}
	if node == nil {
		return
	}
	action, reason := drain.NeededAction(changes, node, p)
	switch action {
	case drain.Refuse:
		advice := `Wait until they have ended, or set disruption = "drain" to have them leave first`
		if p.Drain {
			advice = "Set drain_deletes_data or drain_unmanaged_pods if that loss is acceptable, or move them by hand"
		}
		diags.AddAttributeError(path.Root("disruption"), "Running pods would be hurt", fmt.Sprintf("%s: %s. %s.", m.Name(), reason, advice))
	case drain.KeepAway, drain.Tell:
		note(ctx, diags, providers.NoteDisruption, nil, reason)
	}
}
