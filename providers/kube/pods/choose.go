package pods

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers"
)

// defaultContainer is the annotation of a pod that says which container people
// mean, https://kubernetes.io/docs/reference/labels-annotations-taints/#kubectl-kubernetes-io-default-container
const defaultContainer = "kubectl.kubernetes.io/default-container"

// chosen is a container that runs.
type chosen struct {
	pod *core.Pod
	container
	others bool // the role would have fitted others as well
}

// choose finds a running container of a role: in a ready pod if possible, and
// the oldest one.
func (s *Set) choose(ctx context.Context, role string) (*chosen, error) {
	f, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	type candidate struct {
		chosen
		weight int
	}
	var run []candidate
	var fit []*core.Pod
	for _, p := range f.pods {
		var names []container
		for _, c := range s.containers(p) {
			if wants(role, f, p, c) {
				names = append(names, c)
			}
		}
		if len(names) == 0 {
			continue
		}
		fit = append(fit, p)
		if c, ok := oneOf(p, names); ok {
			weight := 0
			if !isReady(p) {
				weight = 1
			}
			if p.DeletionTimestamp != nil {
				weight = 2
			}
			run = append(run, candidate{chosen{p, c, false}, weight})
		}
	}
	if len(run) == 0 {
		return nil, s.noneRuns(f, role, fit)
	}
	first := slices.MinFunc(run, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	first.others = len(run) > 1 || role != first.role && strings.Contains(first.role, "/")
	return &first.chosen, nil
}

// oneOf chooses a container of a pod: the container that its annotation names,
// else the first running one, with sidecars last.
func oneOf(p *core.Pod, names []container) (container, bool) {
	runs := func(c container) bool {
		present, _ := attempts(p, c.name)
		return present.running
	}
	if i := slices.IndexFunc(names, func(c container) bool { return c.name == p.Annotations[defaultContainer] }); i >= 0 && runs(names[i]) {
		return names[i], true
	}
	for _, main := range []bool{true, false} {
		for _, c := range names {
			own := slices.ContainsFunc(p.Spec.Containers, func(of core.Container) bool { return of.Name == c.name })
			if own == main && runs(c) {
				return c, true
			}
		}
	}
	return container{}, false
}

// noneRuns returns the reason why no container can be chosen.
func (s *Set) noneRuns(f *objectSet, role string, fit []*core.Pod) error {
	switch {
	case len(f.pods) == 0:
		why := explainNoPods(f)
		return &providers.RunError{Summary: "Nothing runs there", Detail: strings.ToUpper(why[:1]) + why[1:] + "."}
	case len(fit) == 0:
		var names []string
		for _, p := range f.pods[:min(most, len(f.pods))] {
			names = append(names, s.role(p))
		}
		return &providers.RunError{Summary: noSuchRole, Detail: fmt.Sprintf("Pod or container %q does not exist. There are %s; \"stoke status\" lists all.", role, strings.Join(names, ", "))}
	}
	var why []string
	for _, p := range fit[:min(most, len(fit))] {
		why = append(why, "Pod "+s.role(p)+" is "+strings.TrimSuffix(waiting(p), ".")+".")
	}
	return &providers.RunError{Summary: "Nothing runs there", Detail: strings.Join(why, "\n")}
}

// noSuchRole is the summary of an error that time does not mend.
const noSuchRole = "No such role"
