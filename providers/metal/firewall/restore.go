package firewall

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// confirmKey is where the record keeps how long rules wait for confirmation.
const confirmKey = "confirm"

var tableRemoved = host.Outcome{Fact: "nftables table inet " + tableName, Fate: host.Removed}

// Restore removes only rules of stoke, also if an unsupported firewall was
// installed since. Rules that were there before us come back.
func Restore(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Outcome, error) {
	have, err := look(ctx, m, Spec{})
	if err != nil {
		return nil, err
	}
	var was rulesWas
	if _, err := rec.ReadNote(rulesKey, &was); err != nil {
		return nil, err
	}
	outcomes, err := giveBack(ctx, m, rec, was, have)
	if err != nil {
		return nil, err
	}
	host.Step(ctx, "removing the firewall table")
	table := "remove"
	if was.Table != "" {
		table = "keep"
	}
	said, err := host.Script(ctx, m, removeScript, table)
	if err != nil {
		return outcomes, fmt.Errorf("remove the firewall table: %w", err)
	}
	if strings.TrimSpace(string(said)) == "removed" {
		outcomes = append(outcomes, tableRemoved)
	}
	for _, name := range rec.KeptFiles() {
		o, err := rec.RestoreFile(ctx, name)
		if err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, o)
	}
	if was.Enabled || was.Active {
		if _, err := host.Script(ctx, m, unitScript, fmt.Sprint(was.Enabled), fmt.Sprint(was.Active)); err != nil {
			return outcomes, fmt.Errorf("start %s as before: %w", unitName, err)
		}
	}
	if _, err := host.Script(ctx, m, tidyScript); err != nil {
		return outcomes, fmt.Errorf("remove empty folders: %w", err)
	}
	return outcomes, rec.Forget(ctx, rulesKey, confirmKey)
}

// giveBack makes the rules what they were before us. Rules that were there may let
// us in no more, and one of ufw's that goes may be what does, so that this, too, is
// confirmed.
func giveBack(ctx context.Context, m host.Machine, rec *host.Record, was rulesWas, have Have) ([]host.Outcome, error) {
	ufw := ufwCommands(was.UFW, have.ufw)
	var outcomes []host.Outcome
	if !was.isEmpty() {
		outcomes = append(outcomes, host.Outcome{Fact: "firewall rules", Fate: host.Restored})
	}
	if len(ufw) == 0 && (was.Table == "" || was.Table == have.listed && have.pending == "") {
		return outcomes, nil
	}
	none := Spec{Role: NoRole}
	if _, err := rec.ReadNote(confirmKey, &none.Confirm); err != nil {
		return nil, err
	}
	_, done, err := commit(ctx, m, none, have, change{file: append(NftTable{}.File(), was.Table...), ufw: ufw})
	if err != nil {
		return nil, err
	}
	done()
	stay := ufwLines(was.UFW)
	for _, l := range ufwLines(have.ufw) {
		if !slices.Contains(stay, l) {
			outcomes = append(outcomes, host.Outcome{Fact: l, Fate: host.Removed})
		}
	}
	if have.table && was.Table == "" {
		outcomes = append(outcomes, tableRemoved)
	}
	return outcomes, nil
}
