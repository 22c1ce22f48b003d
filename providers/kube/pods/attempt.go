package pods

import (
	"slices"
	"strconv"

	core "k8s.io/api/core/v1"
)

// container is one container of a pod, and what its lines are said to come from.
type container struct {
	name string
	role string // the pod's role, with the container's name if there are several
}

// containers returns the containers of a pod, initial ones first.
func (s *Set) containers(p *core.Pod) []container {
	var names []string
	for _, c := range p.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range p.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range p.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	role := s.role(p)
	all := make([]container, len(names))
	for i, name := range names {
		all[i] = container{name, role}
		if len(names) > 1 {
			all[i].role += "/" + name
		}
	}
	return all
}

// attempt is one life of a container: it ends when the container does, and the
// next one begins when it is started again.
type attempt struct {
	id      string // "" for none
	running bool
}

// attempts returns the present run of a container, whose id is "" before its
// start, and the one before, whose log the kubelet still has.
func attempts(p *core.Pod, name string) (present, before attempt) {
	status := statusOf(p, name)
	if status == nil {
		return attempt{}, attempt{}
	}
	number := int(status.RestartCount)
	if t := status.LastTerminationState.Terminated; t != nil {
		before.id = idOf(t.ContainerID, number-1)
	}
	switch {
	case status.State.Running != nil:
		present = attempt{idOf(status.ContainerID, number), true}
	case status.State.Terminated != nil:
		present.id = idOf(status.State.Terminated.ContainerID, number)
	default: // it waits for a restart: its log is from the last run
		present.id, before.id = before.id, ""
	}
	return present, before
}

// idOf is the id of a container in its runtime; without one, the number of its
// starts is as good.
func idOf(id string, number int) string {
	if id == "" {
		return strconv.Itoa(number)
	}
	return id
}

func statusOf(p *core.Pod, name string) *core.ContainerStatus {
	for _, all := range [][]core.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses} {
		if i := slices.IndexFunc(all, func(c core.ContainerStatus) bool { return c.Name == name }); i >= 0 {
			return &all[i]
		}
	}
	return nil
}

// isOver reports whether a pod's containers will not be started again.
func isOver(p *core.Pod) bool {
	return p.Status.Phase == core.PodSucceeded || p.Status.Phase == core.PodFailed
}

// waiting returns the reason why a container has no log yet.
func waiting(p *core.Pod) string {
	if why := reason(p); why != "" {
		return phase(p) + ": " + why
	}
	return phase(p)
}
