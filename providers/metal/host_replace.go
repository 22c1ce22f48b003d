package metal

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/containerd"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/packages"
	"github.com/stokehq/stoke/providers/metal/system"
)

// replaced is the record of a kind that a replacement undoes before it makes the
// same anew; nil where the plan of this call replaces nothing on the machine.
func replaced(ctx context.Context, m host.Machine, kind string) *host.Record {
	id := textOf(providers.CallFrom(ctx).Replaces, "id")
	if id == "" {
		return nil
	}
	rec, err := host.OpenRecord(ctx, m, kind)
	if err != nil || rec.ID() != id {
		return nil
	}
	return rec
}

// undone is what a replacement interrupts beside what changes: destroying comes
// first, and what was declared before comes back afterwards. On a node that is
// draining it, whatever it is that goes.
func undone(ctx context.Context, s *settings, m host.Machine, diags *diag.Diagnostics) []host.Change {
	rec := replaced(ctx, m, hostRecord)
	if rec == nil {
		return nil
	}
	if node, err := s.shared.roll.Look(ctx, m); node != nil || err != nil {
		return []host.Change{{Fact: "what stoke prepared the node with goes before it is made anew", Disruption: host.Drains}}
	}
	changes, err := packages.Undoing(ctx, m, rec)
	if err != nil {
		diags.AddWarning("What destroying interrupts is not known", fmt.Sprintf("%s.", err))
	}
	return append(append(changes, containerd.Undoing(rec)...), system.Undoing(rec)...)
}
