package metal

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/host"
)

// replaced is the record of a kind that a replacement undoes before it makes the
// same anew; nil where the plan of this call replaces nothing on the machine.
func replaced(ctx context.Context, m host.Machine, kind string) *host.Record {
	return recordOf(ctx, m, kind, textOf(providers.CallFrom(ctx).Replaces, "id"))
}

// recordOf is the record of a kind that the resource with the id has on the
// machine; nil where it has none.
func recordOf(ctx context.Context, m host.Machine, kind, id string) *host.Record {
	if id == "" {
		return nil
	}
	rec, err := host.OpenRecord(ctx, m, kind)
	if err != nil || rec.ID() != id {
		return nil
	}
	return rec
}

// plannedRestores is what is taken back because the record knows of it and want does not
// declare it, and what that interrupts; where want is nil, all of it, for which
// pods leave a node in any case.
func plannedRestores(ctx context.Context, s *settings, m host.Machine, rec *host.Record, want *hostModel,
	diags *diag.Diagnostics) []host.Change {
	if rec == nil {
		return nil
	}
	if want == nil && maybeNode(ctx, s, m) {
		return []host.Change{{Fact: "stoke's changes to the node are reverted", Disruption: host.Drains}}
	}
	var changes []host.Change
	for _, part := range slices.Backward(sections(s)) {
		did, err := part.undoing(ctx, m, rec, want)
		if err != nil {
			diags.AddWarning("The restored values are not known", fmt.Sprintf("%s.", err))
		}
		changes = append(changes, did...)
	}
	drains := func(c host.Change) bool { return c.Drains }
	if want != nil && slices.ContainsFunc(changes, drains) && maybeNode(ctx, s, m) {
		for i := range changes {
			if changes[i].Drains {
				changes[i].Disruption = host.Drains
			}
		}
	}
	return changes
}

// maybeNode reports whether pods may run on a machine.
func maybeNode(ctx context.Context, s *settings, m host.Machine) bool {
	node, err := s.shared.roll.Look(ctx, m)
	return node != nil || err != nil
}
