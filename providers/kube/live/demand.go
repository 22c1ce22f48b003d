package live

import (
	core "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/resource"

	"github.com/stokehq/stoke/providers/connect"
)

// Ask says in d what a pod asks for. What the pod only limits becomes a request of
// it, as an API server has it.
func Ask(d *connect.Demand, pod *core.Pod) {
	spec := &pod.Spec
	switch {
	case len(spec.ResourceClaims) > 0:
		d.Unclear = "they ask for devices by resource claims"
	case spec.SchedulerName != "" && spec.SchedulerName != core.DefaultSchedulerName:
		d.Unclear = "the scheduler " + spec.SchedulerName + " has rules of its own"
	case len(spec.SchedulingGates) > 0:
		d.Unclear = "they wait for scheduling gates, which may change them"
	case spec.NodeName != "":
		d.Unclear = "they name a node, and need no scheduler"
	}
	if spec.RuntimeClassName != nil {
		d.Rewritten = "the runtime class " + *spec.RuntimeClassName
	}
	for _, containers := range [][]core.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			asLimits(&containers[i].Resources)
		}
	}
	d.Requests = map[string]int64{connect.ResourcePods: 1}
	for name, q := range helper.PodRequests(pod, helper.PodResourcesOptions{}) {
		if d.Requests[string(name)] = q.Value(); name == core.ResourceCPU {
			d.Requests[string(name)] = q.MilliValue()
		}
	}
	d.Selector = spec.NodeSelector
	for _, t := range spec.Tolerations {
		d.Tolerations = append(d.Tolerations, connect.Toleration{Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect)})
	}
	for _, c := range spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == core.DoNotSchedule {
			d.Present = append(d.Present, c.TopologyKey)
		}
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			d.Affinity = append(d.Affinity, connect.Term{Labels: requirements(term.MatchExpressions), Fields: requirements(term.MatchFields)})
		}
	}
}

// asLimits fills requests in as an API server does: what is limited is asked for.
func asLimits(r *core.ResourceRequirements) {
	for name, q := range r.Limits {
		if _, given := r.Requests[name]; !given {
			if r.Requests == nil {
				r.Requests = core.ResourceList{}
			}
			r.Requests[name] = q
		}
	}
}

func requirements(from []core.NodeSelectorRequirement) (all []connect.Requirement) {
	for _, r := range from {
		all = append(all, connect.Requirement{Key: r.Key, Operator: string(r.Operator), Values: r.Values})
	}
	return all
}

// groupOf is a node that is there.
func groupOf(n *core.Node) connect.NodeGroup {
	g := connect.NodeGroup{
		Name: n.Name, Min: 1, Max: 1, Labels: n.Labels, Unschedulable: n.Spec.Unschedulable, Extended: map[string]int64{},
	}
	for name, q := range n.Status.Allocatable {
		switch name {
		case core.ResourceCPU:
			g.CPU = q.MilliValue()
		case core.ResourceMemory:
			g.Memory = q.Value()
		case core.ResourceEphemeralStorage:
			g.EphemeralStorage = q.Value()
		case core.ResourcePods:
			g.Pods = q.Value()
		default:
			g.Extended[string(name)] = q.Value()
		}
	}
	for _, t := range n.Spec.Taints {
		g.Taints = append(g.Taints, connect.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return g
}
