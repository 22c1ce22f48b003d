package firewall

import (
	"slices"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Diff is what differs, line by line. Changing rules interrupts nothing by
// itself: what the rules cut is found by Cuts.
func Diff(want Spec, have Have) []host.Change {
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
