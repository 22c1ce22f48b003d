package metal

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

type takenError struct {
	machine, kind string
	owner         string // its address when it began; "" where nobody wrote it down
	take          string // the command that takes it over; "" for whoever has no such
}

func (e *takenError) Error() string {
	as, take := "", ". "
	if e.owner != "" {
		as = " as " + e.owner
	}
	if e.take != "" {
		take = ":\n  " + e.take + "\n" // in a line of its own, to be copied
	}
	return fmt.Sprintf("%s is managed by stoke already%s (%s/%s/record.json). Import it to manage it here%sIf its "+
		"manager is gone for good, and nothing has to be restored, remove that file instead", e.machine, as, host.Root, e.kind, take)
}

func (e *takenError) withHolder(ctx context.Context, way connect.SSH) *takenError {
	if address := providers.CallFrom(ctx).Address; address != "" && way.HostKey != "" {
		e.take = "stoke import " + ssh.QuoteAll(address, importID(way))
	}
	return e
}

// isUnbegun says that a record is ours, of a create that failed before it changed
// anything.
func isUnbegun(ctx context.Context, rec *host.Record) bool {
	return rec.Owner() == providers.CallFrom(ctx).Address && len(rec.Keys("")) == 0
}

// openRecord opens the machine's record of a kind for the resource with the id, and
// makes it where there is none.
func openRecord(ctx context.Context, m host.Machine, kind, id string) (*host.Record, error) {
	rec, err := host.OpenRecord(ctx, m, kind)
	switch {
	case errors.Is(err, host.ErrNoRecord):
		return host.NewRecord(ctx, m, kind, id, providers.CallFrom(ctx).Address)
	case err != nil:
		return nil, err
	case rec.ID() != id && isUnbegun(ctx, rec):
		return host.NewRecord(ctx, m, kind, id, rec.Owner())
	case rec.ID() != id:
		return nil, &takenError{machine: m.Name(), kind: kind, owner: rec.Owner()}
	}
	return rec, nil
}

// claim is what own will say, for a plan. id is the resource's id, null or
// unknown if it is new. A resource that was imported without a connection gets
// the id of the object that it adopts. A machine that this very address manages,
// though the state knows nothing of it, is an error; one of another address is a
// warning, because this plan may be the end of that one.
func claim(ctx context.Context, m host.Machine, kind, summary string, at path.Path, way connect.SSH, id types.String, diags *diag.Diagnostics) types.String {
	rec, err := host.OpenRecord(ctx, m, kind)
	call := providers.CallFrom(ctx)
	taken := &takenError{machine: m.Name(), kind: kind}
	switch {
	case err != nil: // there is no record, or apply reports the error
		return id
	case id.ValueString() == imported:
		return types.StringValue(rec.ID())
	case rec.ID() == id.ValueString(), rec.ID() == textOf(call.Replaces, "id"), isUnbegun(ctx, rec):
		return id
	case call.Address == "" && rec.Owner() == "": // an engine that does not say whether this is a replacement
		return id
	}
	taken.owner = rec.Owner()
	if taken.withHolder(ctx, way); taken.take != "" && id.ValueString() != "" {
		taken.take = "stoke state rm " + ssh.QuoteAll(call.Address) + " && " + taken.take // it has another one's object
	}
	if call.Address != "" && call.Address == rec.Owner() {
		addError(diags, at, summary, taken)
	} else {
		diags.AddAttributeWarning(at, summary, fmt.Sprintf("%s. For a renamed resource write a moved block.", taken))
	}
	return id
}
