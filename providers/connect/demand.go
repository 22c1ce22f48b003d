package connect

import (
	"slices"
	"strconv"
)

// Names of the resources that every node has.
const (
	ResourceCPU              = "cpu"    // in thousandths of a processor
	ResourceMemory           = "memory" // in bytes
	ResourceEphemeralStorage = "ephemeral-storage"
	ResourcePods             = "pods"
)

// Demand is what pods that are alike ask of the nodes they run on.
type Demand struct {
	Name  string // for messages, such as "Deployment training/web"
	Count int64  // of pods; 0 where it is not known
	// Requests are one pod's by resource, in the units of NodeGroup: "cpu" in
	// thousandths, "memory" and "ephemeral-storage" in bytes.
	Requests map[string]int64
	// Selector are labels that a node has to have.
	Selector map[string]string
	// Affinity are terms of which a node has to match one; none is no demand.
	Affinity []Term
	// Present are labels that a node has to have with any value: those over which
	// pods have to be spread.
	Present     []string
	Tolerations []Toleration
	// Each asks for a pod on every matching node, as a DaemonSet does: a cluster
	// without matching nodes fits.
	Each bool
	// Unclear is why nobody but the cluster can tell; "" where it can be told.
	Unclear string
	// Rewritten is why the pods' tolerations may be other ones than these; "" where
	// they are not.
	Rewritten string
}

// Term is what a node has to match, all of it.
type Term struct {
	Labels []Requirement
	Fields []Requirement // of metadata.name
}

// Requirement is about one label.
type Requirement struct {
	Key      string
	Operator string // In, NotIn, Exists, DoesNotExist, Gt, or Lt
	Values   []string
}

// Toleration lets a pod onto a node with a taint.
type Toleration struct {
	Key, Operator, Value, Effect string // Operator "" is Equal
}

// tolerates reports that one of the tolerations is of a taint.
func (d Demand) tolerates(t Taint) bool {
	return slices.ContainsFunc(d.Tolerations, func(by Toleration) bool {
		if by.Effect != "" && by.Effect != t.Effect || by.Key != "" && by.Key != t.Key {
			return false
		}
		have, haveErr := strconv.ParseInt(t.Value, 10, 64)
		want, wantErr := strconv.ParseInt(by.Value, 10, 64)
		switch by.Operator {
		case "Exists":
			return true
		case "Gt":
			return haveErr == nil && wantErr == nil && have > want
		case "Lt":
			return haveErr == nil && wantErr == nil && have < want
		}
		return by.Value == t.Value
	})
}

// hinders reports a taint that keeps pods from being scheduled, and that stays:
// those that say how a node is just now come and go.
func (t Taint) hinders() bool {
	if t.Effect == "PreferNoSchedule" {
		return false
	}
	return !slices.Contains([]string{
		"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/memory-pressure", "node.kubernetes.io/disk-pressure",
		"node.kubernetes.io/pid-pressure", "node.kubernetes.io/network-unavailable", "node.kubernetes.io/unschedulable", "node.cloudprovider.kubernetes.io/uninitialized",
	}, t.Key)
}

// gpuModel is the label by which nodes say which GPUs they have.
const gpuModel = "nvidia.com/gpu.product"

// label is one of a node's; known is false where it may have it all the same.
func (g NodeGroup) label(key string) (value string, has, known bool) {
	if value, has = g.Labels[key]; has {
		return value, true, true
	}
	if key == gpuModel && g.GPUModel != "" {
		return g.GPUModel, true, true
	}
	return "", false, !g.Partial
}

// answer is yes, no, or perhaps.
type answer int

const (
	no answer = iota
	perhaps
	yes
)

func (r Requirement) isMet(value string, has, known bool) answer {
	if !known {
		return perhaps
	}
	meets := false
	have, haveErr := strconv.ParseInt(value, 10, 64)
	var limit int64
	var limitErr error
	if len(r.Values) == 1 {
		limit, limitErr = strconv.ParseInt(r.Values[0], 10, 64)
	}
	numbers := has && haveErr == nil && limitErr == nil && len(r.Values) == 1
	switch r.Operator {
	case "In":
		meets = has && slices.Contains(r.Values, value)
	case "NotIn":
		meets = !has || !slices.Contains(r.Values, value)
	case "Exists":
		meets = has
	case "DoesNotExist":
		meets = !has
	case "Gt":
		meets = numbers && have > limit
	case "Lt":
		meets = numbers && have < limit
	}
	if meets {
		return yes
	}
	return no
}

// matches reports whether the pods may run on a node, by its labels.
func (d Demand) matches(g NodeGroup) answer {
	result := yes
	for key, want := range d.Selector {
		value, has, known := g.label(key)
		result = min(result, Requirement{Operator: "In", Values: []string{want}}.isMet(value, has, known))
	}
	for _, key := range d.Present {
		value, has, known := g.label(key)
		result = min(result, Requirement{Operator: "Exists"}.isMet(value, has, known))
	}
	if len(d.Affinity) == 0 {
		return result
	}
	best := no
	for _, term := range d.Affinity {
		best = max(best, term.matches(g))
	}
	return min(result, best)
}

func (t Term) matches(g NodeGroup) answer {
	if len(t.Labels)+len(t.Fields) == 0 {
		return no // as the scheduler has it: an empty term is for no node
	}
	result := yes
	for _, r := range t.Labels {
		value, has, known := g.label(r.Key)
		result = min(result, r.isMet(value, has, known))
	}
	for _, r := range t.Fields {
		result = min(result, r.isMet(g.Name, true, g.Min == g.Max && g.Max == 1))
	}
	return result
}

// amount is how much a node has of a resource.
func (g NodeGroup) amount(resource string) (n int64, known bool) {
	switch resource {
	case ResourceCPU:
		n = g.CPU
	case ResourceMemory:
		n = g.Memory
	case ResourceEphemeralStorage:
		n = g.EphemeralStorage
	case ResourcePods:
		n = g.Pods
	default:
		n, has := g.Extended[resource]
		return n, has || !g.Partial
	}
	return n, n != NotKnown
}

// holds tells whether an empty node has enough for one pod.
func (d Demand) holds(g NodeGroup) answer {
	result := yes
	for resource, asked := range d.Requests {
		switch have, known := g.amount(resource); {
		case asked == 0 || resource == ResourcePods && !known: // every node takes some
		case !known:
			result = min(result, perhaps)
		case have < asked:
			return no
		}
	}
	return result
}
