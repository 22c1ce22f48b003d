package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stokehq/stoke/providers"
)

// Phases in words, of pods and of sets, the most important first. A set is in
// the first phase of any of its objects.
const (
	Failed    = "failed"
	Crashing  = "crashing" // containers end and are started again, with pauses
	NotReady  = "not ready"
	Pending   = "pending" // it has no node yet
	Starting  = "starting"
	Stopping  = "stopping"
	Running   = "running"
	Scheduled = "scheduled" // a CronJob between two of its Jobs
	Suspended = "suspended"
	Stopped   = "stopped" // no pods are wanted
	Succeeded = "succeeded"
)

var byWeight = [...]string{Failed, Crashing, NotReady, Pending, Starting, Stopping, Running, Scheduled, Suspended, Stopped, Succeeded}

// most is how many objects a status names.
const most = 5

// Metrics fails: what pods measure is not the cluster's to know.
func (s *Set) Metrics(context.Context, providers.RunMetrics, func(providers.RunEvent) error) error {
	return errors.New(`pods have no metrics of their own; "stoke status" and "stoke logs" tell how they are`)
}

// Status returns the state of the objects and their pods: ErrNoRun if none of
// the objects exists.
func (s *Set) Status(ctx context.Context) (providers.RunStatus, error) {
	f, err := s.find(ctx)
	if err != nil {
		return providers.RunStatus{}, err
	}
	is := providers.RunStatus{Percent: -1, Checkpoint: -1, Roles: []providers.RunRole{}}
	c := &claims{s: s, had: make(map[types.NamespacedName]*unstructured.Unstructured)}
	for _, p := range f.pods {
		is.Roles = append(is.Roles, s.roleOf(ctx, p, c))
	}
	var names, messages []string
	weight := len(byWeight)
	for _, r := range f.roots {
		names = append(names, r.String())
		stands := f.stateOf(r)
		weight = min(weight, slices.Index(byWeight[:], stands.phase))
		is.Wanted, is.Workers = is.Wanted+stands.wanted, is.Workers+stands.ready
		if stands.message != "" {
			messages = append(messages, r.String()+": "+stands.message)
		}
		if began := r.u.GetCreationTimestamp().Time; is.Started.IsZero() || began.Before(is.Started) {
			is.Started = began
		}
		if stands.ended.After(is.Ended) {
			is.Ended = stands.ended
		}
	}
	is.Phase, is.Message = byWeight[weight], strings.Join(messages, "\n")
	if is.Phase != Succeeded && is.Phase != Failed {
		is.Ended = time.Time{}
	}
	is.Progress = fmt.Sprintf("%d of %d pods ready", is.Workers, is.Wanted)
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	is.Run = strings.Join(names, ", ")
	return is, nil
}

// roleOf returns the state of one pod.
func (s *Set) roleOf(ctx context.Context, p *core.Pod, c *claims) providers.RunRole {
	r := providers.RunRole{Name: s.role(p), Phase: phase(p), Since: p.CreationTimestamp.Time, Node: p.Spec.NodeName, Reason: reason(p)}
	r.Pod = p.Namespace + "/" + p.Name
	ready := 0
	for _, status := range p.Status.ContainerStatuses {
		if status.Ready {
			ready++
		}
	}
	r.Ready = fmt.Sprintf("%d/%d", ready, len(p.Spec.Containers))
	for _, statuses := range [][]core.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, status := range statuses {
			r.Restarts += int(status.RestartCount)
		}
	}
	if r.Phase == Pending {
		if unbound := c.unbound(ctx, p); unbound != "" {
			r.Reason = strings.TrimPrefix(r.Reason+"; "+unbound, "; ")
		}
	}
	return r
}

// phase is a pod's in words.
func phase(p *core.Pod) string {
	switch {
	case p.Status.Phase == core.PodSucceeded:
		return Succeeded
	case p.Status.Phase == core.PodFailed:
		return Failed
	case p.DeletionTimestamp != nil:
		return Stopping
	case crashes(p):
		return Crashing
	case p.Status.Phase == core.PodRunning && isReady(p):
		return Running
	case p.Status.Phase == core.PodRunning:
		return NotReady
	case p.Spec.NodeName == "":
		return Pending
	}
	return Starting
}

func crashes(p *core.Pod) bool {
	for _, status := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := status.State.Waiting; w != nil && w.Reason == crashLoop {
			return true
		}
	}
	return false
}

func isReady(p *core.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == core.PodReady {
			return c.Status == core.ConditionTrue
		}
	}
	return false
}

// standing is the state of an object.
type standing struct {
	phase         string
	wanted, ready int
	message       string
	ended         time.Time
}

// stateOf returns the state of a root, from its controller's status and its pods.
func (f *objectSet) stateOf(r *root) standing {
	is := standing{message: condition(r.u)}
	worst := len(byWeight)
	for _, p := range f.pods {
		if f.owner(p) != r {
			continue
		}
		if isReady(p) {
			is.ready++
		}
		if at := phase(p); at != Failed || r.Kind == barePod { // its controller makes another one
			worst = min(worst, slices.Index(byWeight[:], at))
		}
	}
	number := func(fields ...string) int {
		n, _, _ := unstructured.NestedInt64(r.u.Object, fields...)
		return int(n)
	}
	switch r.Kind {
	case barePod:
		is.wanted, is.phase = 1, byWeight[min(worst, len(byWeight)-1)]
		return is
	case job:
		return f.job(r, is, worst)
	case cronJob:
		is.wanted, is.phase = is.ready, Scheduled
		if worst < len(byWeight) && byWeight[worst] != Succeeded {
			is.phase = byWeight[worst]
		} else if off, _, _ := unstructured.NestedBool(r.u.Object, "spec", "suspend"); off {
			is.phase = Suspended
		}
		return is
	case daemonSet:
		is.wanted = number("status", "desiredNumberScheduled")
	default:
		is.wanted = number("spec", "replicas")
	}
	switch {
	case is.wanted == 0:
		is.phase = Stopped
	case is.ready >= is.wanted:
		is.phase = Running
	case worst < len(byWeight) && byWeight[worst] != Running:
		is.phase = byWeight[worst]
	default:
		is.phase = Pending // not all of its pods are there
	}
	return is
}

func (f *objectSet) job(r *root, is standing, worst int) standing {
	parallel, there, _ := unstructured.NestedInt64(r.u.Object, "spec", "parallelism")
	if !there {
		parallel = 1
	}
	done, _, _ := unstructured.NestedInt64(r.u.Object, "status", "succeeded")
	completions, there, _ := unstructured.NestedInt64(r.u.Object, "spec", "completions")
	is.wanted = int(parallel)
	if there {
		is.wanted = int(max(0, min(parallel, completions-done)))
	}
	for _, c := range conditions(r.u) {
		if c["status"] != "True" {
			continue
		}
		switch c["type"] {
		case "Complete", "Failed":
			is.wanted, is.phase = 0, Succeeded
			if c["type"] == "Failed" {
				is.phase = Failed
			}
			at, _ := c["lastTransitionTime"].(string)
			is.ended, _ = time.Parse(time.RFC3339, at)
			return is
		case "Suspended":
			is.wanted, is.phase = 0, Suspended
			return is
		}
	}
	is.phase = Pending
	if worst < len(byWeight) && byWeight[worst] != Succeeded {
		is.phase = byWeight[worst]
	}
	return is
}
