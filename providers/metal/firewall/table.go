package firewall

import (
	"slices"

	"github.com/stokehq/stoke/providers/metal/host"
)

const rulesKey = "firewall rules"

// rulesWas is what there was of our name before us, such as an import finds: as a
// rule nothing.
type rulesWas struct {
	Table           string    // as nft lists it; "" for none
	UFW             []ufwRule // those with our mark
	Enabled, Active bool      // the unit
}

func (w rulesWas) isEmpty() bool { return w.Table == "" && len(w.UFW) == 0 }

// Table is what this package looks after. The rules are one fact: they are loaded,
// confirmed and given back together.
var Table = host.Table[Spec, Have]{{
	Key:   rulesKey,
	Names: host.One[Spec, Have](func(w Spec) bool { return w.Role != "" }),
	Was: func(_ Spec, have Have, _ string) any {
		return rulesWas{Table: have.listed, UFW: have.ufw, Enabled: have.enabled, Active: have.active}
	},
	Files: func(string) []string { return []string{rulesFile, unitFile} },
	Diff:  diff,
	Back: func(rec *host.Record, _ string) host.Change {
		var was rulesWas
		if _, err := rec.ReadNote(rulesKey, &was); err == nil && was.isEmpty() {
			return removed
		}
		return host.Change{Fact: "firewall rules get their former values", Path: []string{"rules"}}
	},
}}

var removed = host.Change{Fact: "firewall rules are removed, and whom they keep out may connect", Path: []string{"rules"}}

// Undoing is what Restore changes. An earlier version noted no rules, for there were
// none.
func Undoing(rec *host.Record) []host.Change {
	changes := Table.Undoing(rec, Spec{})
	if len(changes) == 0 && len(rec.Keys(confirmKey)) > 0 {
		changes = append(changes, removed)
	}
	return changes
}

// diff is what differs, line by line. Changing rules interrupts nothing by
// itself: what the rules cut is found by Cuts.
func diff(want Spec, have Have) []host.Change {
	lines := want.Lines(have.Backend)
	missing, extra := difference(lines, have.Lines)
	var changes []host.Change
	for _, l := range extra {
		changes = append(changes, host.Change{Fact: "firewall rule", Path: []string{"rules"}, Have: l})
	}
	for _, l := range missing {
		changes = append(changes, host.Change{Fact: "firewall rule", Path: []string{"rules"}, Want: l})
	}
	if len(changes) == 0 && !slices.Equal(lines, have.Lines) {
		changes = append(changes, host.Change{
			Fact: "order of the firewall rules", Path: []string{"rules"}, Have: "changed by hand", Want: "as declared",
		})
	}
	if !have.Persistent {
		changes = append(changes, host.Change{Fact: "firewall after a reboot", Path: []string{"persistent"}, Have: have.Why, Want: "the same rules"})
	}
	return changes
}
