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

// undone is what undoing a record interrupts. On a node that is draining it,
// whatever it is that goes.
func undone(ctx context.Context, s *settings, m host.Machine, rec *host.Record, diags *diag.Diagnostics) []host.Change {
	if rec == nil {
		return nil
	}
	if node, err := s.shared.roll.Look(ctx, m); node != nil || err != nil {
		return []host.Change{{Fact: "what stoke prepared the node with goes", Disruption: host.Drains}}
	}
	changes, err := packages.Undoing(ctx, m, rec)
	if err != nil {
		diags.AddWarning("What destroying interrupts is not known", fmt.Sprintf("%s.", err))
	}
	return append(append(changes, containerd.Undoing(rec)...), system.Undoing(rec)...)
}
