package metal

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/firewall"
	"github.com/stokehq/stoke/providers/metal/host"
)

const firewallRecord = "firewall"

// While a trial of rules cuts us off, the lock cannot be renewed, and the
// machine rolls the rules back by itself.
func (*firewallModel) kind() kind {
	return kind{name: "firewall", record: firewallRecord, what: "Firewall", at: path.Root("host"), schema: firewallSchema, unleased: true}
}

func (m *firewallModel) adopt(ctx context.Context, by firewallModel) bool {
	m.Host = hostAsDeclared(ctx, m.Host, by.Host)
	return true
}

// observe reads what the machine has. Invalid arguments, for example of an
// import, do not prevent reading.
func (m *firewallModel) observe(ctx context.Context, _ *settings, on host.Machine, _ firewallModel, diags *diag.Diagnostics) error {
	var quiet diag.Diagnostics
	want, _ := m.spec(ctx, &quiet)
	have, err := firewall.Observe(ctx, on, want)
	if err == nil {
		m.readObserved(ctx, have, diags)
	}
	return err
}

func (m *firewallModel) readObserved(ctx context.Context, have firewall.Have, diags *diag.Diagnostics) {
	m.setLines(ctx, have.Backend, have.Lines, diags)
	m.Persistent = types.BoolValue(have.Persistent)
}

// work makes the firewall what is planned. After a failure it returns the prior
// values with the present rules: a change that was rolled back has not
// happened.
func (m *firewallModel) work(ctx context.Context, j job[firewallModel]) (*firewallModel, error) {
	want, known := m.spec(ctx, j.diags)
	if !known {
		if !j.diags.HasError() {
			j.diags.AddError("Firewall is not known", "Something that its rules depend on is still unknown.")
		}
		return nil, errRefused
	}
	host.Step(ctx, "looking at the firewall of %s", j.machine.Name())
	have, err := firewall.Observe(ctx, j.machine, want)
	if err == nil {
		err = foreign(ctx, j.machine, m.ID.ValueString(), have.Exists())
	}
	if err != nil {
		return nil, firewallError(j.diags, err)
	}
	rec, err := j.begin()
	if err != nil {
		return nil, err
	}
	stored := m
	if err = firewall.Apply(ctx, j.machine, rec, want, have); err != nil {
		err = firewallError(j.diags, err)
		if j.prior != nil {
			stored = j.prior
		}
	}
	unseen := stored.observe(context.WithoutCancel(ctx), j.settings, j.machine, *stored, j.diags)
	if unseen != nil { // what it is now is not known, so that the next plan looks
		stored.readObserved(ctx, firewall.Have{}, j.diags)
	}
	if err == nil && unseen != nil {
		err = firewallError(j.diags, unseen)
	}
	return stored, err
}

// foreign rejects an existing table without a record: it does not belong to
// stoke, whatever its name, unless it was imported.
func foreign(ctx context.Context, m host.Machine, id string, exists bool) error {
	if !exists || id == imported {
		return nil
	}
	if _, err := host.OpenRecord(ctx, m, firewallRecord); !errors.Is(err, host.ErrNoRecord) {
		return nil
	}
	return &firewall.UnfitError{Host: m.Name(), Err: errors.New("a table inet stoke, or rules of ufw with stoke's " +
		"mark, exist without a record. Remove them (nft delete table inet stoke), or import the firewall")}
}

// firewallError reports errors that only firewalls have, and returns the rest.
func firewallError(diags *diag.Diagnostics, err error) error {
	var rolledBack *firewall.RolledBackError
	var unfit *firewall.UnfitError
	switch {
	case errors.As(err, &unfit):
		addError(diags, path.Root("host"), "Firewall cannot be managed", err)
	case errors.As(err, &rolledBack):
		at := path.Root("ssh_from")
		if rolledBack.Slow() {
			at = path.Root("confirm_within")
		}
		diags.AddAttributeError(at, "Firewall rules were rolled back", rolledBack.Error())
	default:
		return err
	}
	return errRefused
}

func (*firewallModel) restore(ctx context.Context, _ *settings, m host.Machine, rec *host.Record) ([]host.Outcome, error) {
	return firewall.Restore(ctx, m, rec)
}

// undoing returns the changes of a removal: they interrupt no connections, and open
// what the rules kept out.
func (*firewallModel) undoing(ctx context.Context, _ *settings, _ host.Machine, rec *host.Record, diags *diag.Diagnostics) []host.Change {
	changes := firewall.Undoing(rec)
	for _, c := range changes {
		note(ctx, diags, providers.NoteDisruption, c.Path, c.Fact)
	}
	return changes
}
