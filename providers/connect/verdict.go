package connect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Capability says whether nodes can take pods.
type Capability int

const (
	Unsure Capability = iota // it cannot be told
	Never                    // no node could ever take one such pod
	Fits                     // some node could, if it were empty
)

// Verdict is whether nodes can take the pods of a demand.
type Verdict struct {
	Fit Capability
	// Why is a sentence about it, without a full stop; "" where it fits.
	Why string
	// Discovered says of a Never that labels or extended resources lack altogether,
	// which agents on nodes may bring.
	Discovered bool
	// Most is how many of the pods empty nodes have room for at a time; NotKnown where
	// that cannot be told.
	Most int64
}

// CheckOn reports whether the nodes of a cluster can take the pods. c must have all
// nodes.
func (d Demand) CheckOn(c Capacity) Verdict {
	if d.Unclear != "" {
		return Verdict{Why: d.Unclear, Most: NotKnown}
	}
	groups := slices.DeleteFunc(slices.Clone(c.Groups), func(g NodeGroup) bool { return g.Max == 0 })
	if len(groups) == 0 {
		return Verdict{Why: "the cluster has no nodes yet", Most: NotKnown}
	}
	maybe := slices.DeleteFunc(slices.Clone(groups), func(g NodeGroup) bool { return d.matches(g) == no })
	if len(maybe) == 0 && d.Each {
		return Verdict{Fit: Fits}
	}
	if len(maybe) == 0 {
		return d.unmatched(groups)
	}
	large := slices.DeleteFunc(slices.Clone(maybe), func(g NodeGroup) bool { return d.holds(g) == no })
	if len(large) == 0 {
		return d.tooSmall(maybe, len(maybe) < len(groups))
	}
	open, unclear, taint := d.admitted(large)
	if len(open) == 0 && unclear != "" {
		return Verdict{Why: unclear, Most: NotKnown}
	}
	if len(open) == 0 && d.Each {
		return Verdict{Fit: Fits}
	}
	if len(open) == 0 {
		return Verdict{Fit: Never, Why: fmt.Sprintf("%s %s tainted by %s, which the pods do not tolerate", nameGroups(large, "with enough"), areOr(count(large)), taint)}
	}
	in := slices.DeleteFunc(slices.Clone(open), func(g NodeGroup) bool { return g.Unschedulable })
	if len(in) == 0 {
		return Verdict{Why: nameGroups(open, "that could take them") + " " + areOr(count(open)) + " cordoned", Most: NotKnown}
	}
	if !slices.ContainsFunc(in, func(g NodeGroup) bool {
		return d.matches(g) == yes && d.holds(g) == yes && (!g.Partial || g.Taints != nil)
	}) {
		return Verdict{Why: "what " + names(in) + " will have is not known yet", Most: NotKnown}
	}
	return Verdict{Fit: Fits, Most: d.most(in)}
}

// admitted are the groups whose taints the pods tolerate. unclear is why it is not
// known of others; taint names one that keeps pods away.
func (d Demand) admitted(groups []NodeGroup) (open []NodeGroup, unclear, taint string) {
	for _, g := range groups {
		var closed []Taint
		for _, t := range g.Taints {
			if t.hinders() && !d.tolerates(t) {
				closed = append(closed, t)
			}
		}
		if len(closed) == 0 {
			open = append(open, g)
			continue
		}
		var hard []Taint
		for _, t := range closed {
			if d.Requests[t.Key] == 0 {
				hard = append(hard, t)
			}
		}
		switch {
		case d.Rewritten != "":
			unclear = fmt.Sprintf("%s may add a toleration of %s", d.Rewritten, closed[0])
		case len(hard) == 0: // the admission plugin ExtendedResourceToleration, which clusters may have
			unclear = fmt.Sprintf("the cluster may add a toleration of %s to pods that ask for %s", closed[0], closed[0].Key)
		default:
			taint = hard[0].String()
		}
	}
	return open, unclear, taint
}

// unmatched says which label lacks.
func (d Demand) unmatched(groups []NodeGroup) Verdict {
	for _, key := range slices.Sorted(maps.Keys(d.Selector)) {
		want, values, found := d.Selector[key], map[string]bool{}, false
		for _, g := range groups {
			value, has, _ := g.label(key)
			if has {
				values[value] = true
			}
			found = found || has && value == want
		}
		if found {
			continue
		}
		why := fmt.Sprintf("no node has the label %s=%s", key, want)
		if len(values) > 0 {
			why += "; there are " + shortList(slices.Sorted(maps.Keys(values)))
		}
		return Verdict{Fit: Never, Why: why, Discovered: true}
	}
	for _, key := range d.Present {
		if !slices.ContainsFunc(groups, func(g NodeGroup) bool { _, has, _ := g.label(key); return has }) {
			return Verdict{Fit: Never, Why: "no node has the label " + key + ", over which the pods have to be spread", Discovered: true}
		}
	}
	what := "what its node selector asks for"
	if len(d.Affinity) > 0 {
		what = "what its node affinity asks for"
	}
	return Verdict{Fit: Never, Why: "no node has " + what, Discovered: true}
}

// tooSmall says which resource lacks, and how much of it the largest node has.
func (d Demand) tooSmall(groups []NodeGroup, some bool) Verdict {
	of := "the largest node"
	if some {
		of = "the largest node that its selector matches"
	}
	for _, name := range slices.Sorted(maps.Keys(d.Requests)) {
		asked := d.Requests[name]
		largest, known := NodeGroup{}, true
		best := int64(-1)
		for _, g := range groups {
			have, told := g.amount(name)
			known = known && told
			if have > best {
				best, largest = have, g
			}
		}
		if !known || best >= asked {
			continue
		}
		if best == 0 && !standard(name) {
			whose := "no node has any"
			if some {
				whose = "no node that its selector matches has any"
			}
			return Verdict{Fit: Never, Why: fmt.Sprintf("each pod asks for %s %s, and %s", Amount(name, asked), name, whose), Discovered: true}
		}
		return Verdict{Fit: Never, Why: fmt.Sprintf("each pod asks for %s %s, and %s, %s, has %s", Amount(name, asked), name, of, largest.Name, Amount(name, best))}
	}
	var asked []string
	for _, name := range slices.Sorted(maps.Keys(d.Requests)) {
		asked = append(asked, Amount(name, d.Requests[name])+" "+name)
	}
	return Verdict{Fit: Never, Why: "each pod asks for " + strings.Join(asked, ", ") + ", and no one node has all of it"}
}

// most is how many pods have room on nodes that are empty.
func (d Demand) most(groups []NodeGroup) int64 {
	total := int64(0)
	for _, g := range groups {
		room := g.Pods
		for name, asked := range d.Requests {
			have, known := g.amount(name)
			if !known || room == NotKnown {
				return NotKnown
			}
			if asked > 0 {
				room = min(room, have/asked)
			}
		}
		if room == NotKnown || d.matches(g) != yes {
			return NotKnown
		}
		total += room * g.Max
	}
	return total
}

func standard(name string) bool {
	return slices.Contains([]string{ResourceCPU, ResourceMemory, ResourceEphemeralStorage, ResourcePods}, name)
}

// Amount is a number of a resource as Kubernetes writes it.
func Amount(name string, n int64) string {
	switch name {
	case ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case ResourceMemory, ResourceEphemeralStorage:
		return resource.NewQuantity(n, resource.BinarySI).String()
	}
	return fmt.Sprint(n)
}

func count(groups []NodeGroup) (n int64) {
	for _, g := range groups {
		n += g.Max
	}
	return n
}

// nameGroups is "the 3 nodes with enough (a, b, c)".
func nameGroups(groups []NodeGroup, which string) string {
	if count(groups) == 1 {
		return fmt.Sprintf("the one node %s (%s)", which, names(groups))
	}
	return fmt.Sprintf("the %d nodes %s (%s)", count(groups), which, names(groups))
}

func areOr(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func names(groups []NodeGroup) string {
	var all []string
	for _, g := range groups {
		all = append(all, cmp.Or(g.Name, "nodes without a name"))
	}
	return shortList(all)
}

// shortList is a list that stays short.
func shortList(all []string) string {
	const most = 4
	if len(all) > most {
		return strings.Join(all[:most-1], ", ") + fmt.Sprintf(" and %d more", len(all)-most+1)
	}
	return strings.Join(all, ", ")
}
