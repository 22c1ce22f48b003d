package kubernetes

import (
	"fmt"
	"strconv"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// The marks of a run's objects.
const (
	runLabel            = "stoke.dev/run"
	roleLabel           = "stoke.dev/role"
	operationAnnotation = "stoke.dev/operation"
	nameAnnotation      = "stoke.dev/name"
	mixAnnotation       = "stoke.dev/images" // digests that the run was last stopped with, where there were several
	turnAnnotation      = "stoke.dev/turn"   // grows when a run is resumed: what was seen before is not so any more
	manager             = "stoke"
)

// The roles, which are stoke-trainer's commands. Workers of the higher priority
// are a Job of their own.
const (
	coordinator = "coordinator"
	server      = "ps"
	worker      = "worker"
	workerHigh  = "worker-high"
)

// The keys of a run's ConfigMap and Secret.
const (
	keySpec        = "spec.json"
	keyPlacement   = "placement.json"
	keyHash        = "spec-hash"
	keyStatus      = "status.json" // the final one, once it was collected, or the run was stopped
	keyToken       = "token"
	keyCertificate = "certificate.pem"     // what workers recognise the run by
	keyIdentity    = "certificate-key.pem" // with its key: who listens has it
)

// Priority classes are the cluster's: made where they are not there, and never
// removed with a run.
const (
	classHigh = "stoke-high"
	classLow  = "stoke-low"
)

// job names the Job of a role.
func job(id, role string) string { return id + "-" + role }

// layout is what a run's objects follow from.
type layout struct {
	id   string
	spec spec.Spec
	launch.Placement
	parts int // of the program's code
}

// high is how many workers have the higher class.
func (l *layout) high() int { return min(l.HighPriority, l.spec.Worker.Replicas) }

// api is the port of the coordinator's API.
func (l *layout) api() int { return l.Port + 1 }

// alive is the port of probes, in the pods of all roles.
func (l *layout) alive() int { return l.Port + 2 }

// host is a pod's name in the cluster's DNS, through the run's Service.
func (l *layout) host(pod string) string {
	return fmt.Sprintf("%s.%s.%s.svc", pod, l.id, l.Namespace)
}

// coordinatorAddress is where workers connect.
func (l *layout) coordinatorAddress() string {
	return l.host(coordinator) + ":" + strconv.Itoa(l.Port)
}

// listens reports whether the pods of a role are connected to by others of the run.
func (l *layout) listens(role string) bool {
	if role == worker || role == workerHigh {
		return l.spec.Strategy == spec.StrategyAllReduce && !l.spec.HasProgram()
	}
	return !l.isAgent(role)
}

// isAgent reports whether the pods of a role run a program.
func (l *layout) isAgent(role string) bool { return l.spec.HasProgram() && role != coordinator }

// apiURL is where the coordinator answers the other roles.
func (l *layout) apiURL() string {
	return "https://" + l.host(coordinator) + ":" + strconv.Itoa(l.api())
}

// servers are the addresses of the parameter servers in their order.
func (l *layout) servers() []string {
	var all []string
	if l.spec.HasProgram() {
		return nil // they do not listen
	}
	for i := range l.spec.ParameterServer.Replicas {
		all = append(all, l.host(job(l.id, server)+"-"+strconv.Itoa(i))+":"+strconv.Itoa(l.Port))
	}
	return all
}

// labels are on all objects of a run; role "" is none.
func labels(id, role string) map[string]string {
	all := map[string]string{runLabel: id, "app.kubernetes.io/managed-by": manager}
	if role != "" {
		all[roleLabel] = role
	}
	return all
}
