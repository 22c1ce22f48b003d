package kubernetes

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stokehq/stoke/providers/train/launch"
)

const (
	container    = "trainer" // in each pod of a run; others are added by the cluster
	nobody       = 65532     // the user of the pods, as in distroless images
	specFolder   = "/etc/stoke"
	secretFolder = "/etc/stoke-secret"
	stateFolder  = "/state"
	// gpuProgram is the trainer of workers with GPUs, in the PATH of the image. The other
	// roles run the entry point.
	gpuProgram = "stoke-trainer-gpu"
	// lostNode is how long a pod stays on a node that does not answer.
	lostNode = 30
	// grace is how long a pod may take to end once it was asked to: a checkpoint
	// is cut in that time.
	grace = 45
	// linger is how long a coordinator waits for what is left of its run to be
	// collected, in Go's notation.
	linger = "4m"
)

// template is what pods of a role are made from.
func (l *layout) template(role string) core.PodTemplateSpec {
	r := l.role(role)
	meta := metav1.ObjectMeta{Labels: labels(l.id, role)}
	if r.Bandwidth > 0 {
		rate := fmt.Sprintf("%dM", r.Bandwidth)
		meta.Annotations = map[string]string{"kubernetes.io/ingress-bandwidth": rate, "kubernetes.io/egress-bandwidth": rate}
	}
	volumes, mounts := l.volumes(role)
	image, first := l.images(role)
	pod := core.PodSpec{
		Subdomain:                     l.id,
		RestartPolicy:                 core.RestartPolicyNever,
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		TerminationGracePeriodSeconds: new(l.grace(role)),
		NodeSelector:                  r.NodeSelector,
		Tolerations:                   tolerations(role, r),
		PriorityClassName:             class(r.Priority),
		Volumes:                       volumes,
		InitContainers:                first,
		SecurityContext: &core.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(nobody)), RunAsGroup: new(int64(nobody)), FSGroup: new(int64(nobody)),
			SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []core.Container{{
			Name: container, Image: image, ImagePullPolicy: core.PullPolicy(l.PullPolicy),
			Args: l.arguments(role), Env: l.environment(role, r), VolumeMounts: mounts, Resources: resources(r),
			LivenessProbe:            l.probe(),
			TerminationMessagePolicy: core.TerminationMessageFallbackToLogsOnError,
			SecurityContext:          restricted(),
		}},
	}
	switch {
	case len(first) > 0:
		pod.Containers[0].Command = []string{agentProgram}
	case r.GPUs > 0 && !l.spec.HasProgram():
		pod.Containers[0].Command = []string{gpuProgram}
	}
	for _, name := range l.PullSecrets {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, core.LocalObjectReference{Name: name})
	}
	if r.SpreadOver != "" {
		pod.TopologySpreadConstraints = []core.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: r.SpreadOver, WhenUnsatisfiable: core.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: labels(l.id, role)},
		}}
	}
	if role == coordinator {
		pod.RestartPolicy, pod.Hostname = core.RestartPolicyOnFailure, coordinator
	}
	if l.listens(role) {
		c := &pod.Containers[0]
		c.Ports = []core.ContainerPort{{Name: "roles", ContainerPort: int32(l.Port)}}
		if role == coordinator {
			c.Ports = append(c.Ports, core.ContainerPort{Name: "api", ContainerPort: int32(l.api())})
		}
	}
	return core.PodTemplateSpec{ObjectMeta: meta, Spec: pod}
}

// restricted is what containers may do: the Pod Security level restricted allows it.
func restricted() *core.SecurityContext {
	return &core.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true),
		Capabilities:   &core.Capabilities{Drop: []core.Capability{"ALL"}},
		SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault},
	}
}

// probe makes the kubelet kill a process that hangs, at most 46 s after its last
// answer: a hung process makes no use of a longer grace period. The process itself
// answers, without a token, because a token would be visible in the pod.
func (l *layout) probe() *core.Probe {
	return &core.Probe{
		ProbeHandler: core.ProbeHandler{
			HTTPGet: &core.HTTPGetAction{Path: "/", Port: intstr.FromInt(l.alive()), Scheme: core.URISchemeHTTP},
		},
		PeriodSeconds: 10, TimeoutSeconds: 5, SuccessThreshold: 1, FailureThreshold: 4,
		TerminationGracePeriodSeconds: new(int64(1)),
	}
}

// role is what the placement says of a role.
func (l *layout) role(role string) launch.PodRole {
	switch role {
	case coordinator:
		return l.Coordinator
	case server:
		return l.Server
	case workerHigh:
		r := l.Worker
		r.Priority = launch.PriorityHigh
		return r
	}
	return l.Worker
}

func class(priority string) string {
	switch priority {
	case launch.PriorityHigh:
		return classHigh
	case launch.PriorityLow:
		return classLow
	}
	return ""
}

// arguments are stoke-trainer's.
func (l *layout) arguments(role string) []string {
	if l.isAgent(role) {
		return l.agentArguments(role)
	}
	command := role
	if role == workerHigh {
		command = worker
	}
	args := []string{
		command, "--spec=" + specFolder + "/" + keySpec, "--token-file=" + secretFolder + "/" + keyToken, "--certificate-file=" + secretFolder + "/" + l.identity(role),
	}
	args = append(args, "--listen-alive=:"+strconv.Itoa(l.alive()))
	if role != coordinator {
		args = append(args, "--api="+l.apiURL())
	}
	var servers []string
	if all := l.servers(); len(all) > 0 {
		servers = []string{"--servers=" + strings.Join(all, ",")}
	}
	switch role {
	case coordinator:
		args = append(args, "--run="+l.id, "--state="+stateFolder)
		if l.spec.HasProgram() {
			args = append(args, "--code="+codeFolder)
		} else {
			args = append(append(args, servers...), "--data="+l.Dataset)
		}
		args = append(args, "--listen=:"+strconv.Itoa(l.Port), "--listen-api=:"+strconv.Itoa(l.api()),
			"--outcome=/dev/termination-log", "--metrics=-", "--linger="+linger)
	case server:
		args = append(args, "--listen=:"+strconv.Itoa(l.Port))
	default:
		args = append(append(append(args, "--coordinator="+l.coordinatorAddress()), servers...), "--data="+l.Dataset)
		if l.listens(role) {
			args = append(args, "--listen=:"+strconv.Itoa(l.Port))
		}
		if n := l.high(); n > 0 && role == worker {
			args = append(args, "--first-index="+strconv.Itoa(n))
		}
	}
	if l.Checkpoints != "" && l.listens(role) && !l.spec.HasProgram() {
		args = append(args, "--checkpoints="+l.Checkpoints)
	}
	return args
}

// identity returns the key of the certificate that a role is given: with its own
// key only where the role listens.
func (l *layout) identity(role string) string {
	if l.listens(role) {
		return keyIdentity
	}
	return keyCertificate
}

// environment gives indexed roles their index, and what the user wants.
func (l *layout) environment(role string, r launch.PodRole) []core.EnvVar {
	var all []core.EnvVar
	if role != coordinator {
		all = append(all, core.EnvVar{Name: "STOKE_INDEX", ValueFrom: &core.EnvVarSource{
			FieldRef: &core.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']"},
		}})
	}
	if role != coordinator && role != server && l.listens(role) { // a name would be resolved to an earlier pod for a while
		all = append(all, core.EnvVar{Name: "STOKE_ADDRESS", ValueFrom: &core.EnvVarSource{
			FieldRef: &core.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"},
		}})
	}
	if l.isAgent(role) || r.GPUs > 0 { // the user of the pods has none in the image; XLA keeps compiled programs there
		all = append(all, core.EnvVar{Name: "HOME", Value: "/tmp"})
	}
	for _, name := range slices.Sorted(maps.Keys(l.Environment)) {
		all = append(all, core.EnvVar{Name: name, Value: l.Environment[name]})
	}
	return all
}

// tolerations returns the user's tolerations, one for the requested GPUs, and a
// short one for nodes that do not answer.
func tolerations(role string, r launch.PodRole) []core.Toleration {
	var all []core.Toleration
	for _, t := range r.Tolerations {
		operator := core.TolerationOpExists
		if t.Value != "" {
			operator = core.TolerationOpEqual
		}
		all = append(all, core.Toleration{Key: t.Key, Operator: operator, Value: t.Value, Effect: core.TaintEffect(t.Effect)})
	}
	if r.GPUs > 0 {
		all = append(all, core.Toleration{Key: r.GPUResource, Operator: core.TolerationOpExists, Effect: core.TaintEffectNoSchedule})
	}
	for _, key := range []string{core.TaintNodeUnreachable, core.TaintNodeNotReady} {
		all = append(all, core.Toleration{Key: key, Operator: core.TolerationOpExists, Effect: core.TaintEffectNoExecute, TolerationSeconds: new(int64(lostNode))})
	}
	return all
}

// resources are requested and limited alike. Whoever writes placements has
// checked the quantities.
func resources(r launch.PodRole) core.ResourceRequirements {
	list := make(core.ResourceList)
	for name, quantity := range map[core.ResourceName]string{
		core.ResourceCPU: r.CPU, core.ResourceMemory: r.Memory, core.ResourceEphemeralStorage: r.EphemeralStorage,
	} {
		if quantity != "" {
			list[name] = resource.MustParse(quantity)
		}
	}
	if r.GPUs > 0 {
		list[core.ResourceName(r.GPUResource)] = *resource.NewQuantity(int64(r.GPUs), resource.DecimalSI)
	}
	if len(list) == 0 {
		return core.ResourceRequirements{}
	}
	return core.ResourceRequirements{Requests: list, Limits: list.DeepCopy()}
}
