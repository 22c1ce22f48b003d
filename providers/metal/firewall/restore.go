package firewall

import (
	"context"
	"fmt"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// confirmKey is where the record keeps how long rules wait for confirmation.
const confirmKey = "confirm"

var tableRemoved = host.Outcome{Fact: "nftables table inet " + tableName, Fate: host.Removed}

// Restore takes away what is ours and nobody else's, also where another firewall
// has come meanwhile that stoke does not work with.
func Restore(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Outcome, error) {
	have, err := look(ctx, m, Spec{})
	if err != nil {
		return nil, err
	}
	var outcomes []host.Outcome
	if len(have.ufw) > 0 {
		removed, err := restoreUFW(ctx, m, rec, have)
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, removed...)
	}
	host.Step(ctx, "removing the firewall table")
	said, err := host.Script(ctx, m, removeScript)
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
	if _, err := host.Script(ctx, m, tidyScript); err != nil {
		return outcomes, fmt.Errorf("remove empty folders: %w", err)
	}
	return outcomes, nil
}

// restoreUFW deletes our rules. It may be one of them that lets us in, so that
// this, too, is confirmed.
func restoreUFW(ctx context.Context, m host.Machine, rec *host.Record, have Have) ([]host.Outcome, error) {
	none := Spec{Role: NoRole}
	if _, err := rec.Was(confirmKey, &none.Confirm); err != nil {
		return nil, err
	}
	gone := have
	gone.Lines = ufwLines(have.ufw)
	_, done, err := commit(ctx, m, none, gone, change{ufw: ufwCommands(nil, have.ufw)})
	if err != nil {
		return nil, err
	}
	done()
	var outcomes []host.Outcome
	for _, l := range gone.Lines {
		outcomes = append(outcomes, host.Outcome{Fact: l, Fate: host.Removed})
	}
	if have.table {
		outcomes = append(outcomes, tableRemoved)
	}
	return outcomes, nil
}
