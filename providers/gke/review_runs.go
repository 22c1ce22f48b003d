package gke

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// runs looks for experiments that run in the cluster of a pool whose nodes go or are
// made anew: their work since the last checkpoint would be lost with them. Runs that
// the same plan ends are nobody's loss.
func (r *reviewed) runs(p plannedPool, all []providers.PlannedInstance) {
	why := p.describeRecreation()
	if why == "" || p.cluster == nil {
		return
	}
	access := p.cluster.value.GetAttr("access")
	var names []string
	for _, run := range all {
		if run.Type != "train_experiment" || run.Prior.IsNull() || run.Planned.IsNull() || textIn(run.Prior, "status") != "running" || !run.Prior.Type().HasAttribute("cluster") {
			continue
		}
		if sameCluster(run.Prior.GetAttr("cluster"), access) {
			names = append(names, run.Address)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	detail := fmt.Sprintf("%s, while %s is running in its cluster: its work on these nodes is stopped, and "+
		"continues from its last checkpoint.", why, strings.Join(names, ", "))
	value := p.value
	if value.IsNull() {
		value = p.prior
	}
	if on, _ := flagIn(value, "allow_data_loss"); on {
		r.report(providers.Warning, p.address, "allow_data_loss", "Experiments run in this cluster", detail)
		return
	}
	r.report(providers.Error, p.address, "allow_data_loss", "Experiments run in this cluster", detail+" Wait for them, or set allow_data_loss = true (of a pool that is destroyed: apply it before).")
}

// describeRecreation describes what a plan does to the nodes of an existing pool; "" for
// nothing.
func (p plannedPool) describeRecreation() string {
	switch {
	case p.prior.IsNull():
		return ""
	case p.value.IsNull():
		return "The pool is destroyed"
	case !p.value.GetAttr("id").IsKnown():
		return "The pool is replaced"
	}
	taken := p.value.GetAttr("step_arguments") // which stay, whatever is declared in their place
	for _, row := range poolTable {
		name := row.attribute
		if taken.IsKnown() && !taken.IsNull() && taken.Type().HasAttribute(name) && !taken.GetAttr(name).IsNull() {
			continue
		}
		if name == "version" {
			name = "node_version"
		}
		if row.anew && !p.value.GetAttr(name).RawEquals(p.prior.GetAttr(name)) {
			return fmt.Sprintf("The change of %s recreates the nodes", row.attribute)
		}
	}
	return ""
}

// sameCluster tells whether two connections are known to lead to one cluster.
func sameCluster(a, b cty.Value) bool {
	if a.IsNull() || b.IsNull() || !a.IsKnown() || !b.IsKnown() {
		return false
	}
	if x, y := textIn(a, "id"), textIn(b, "id"); x != "" && y != "" {
		return x == y
	}
	at := textIn(a, "endpoint")
	return at != "" && at == textIn(b, "endpoint")
}
