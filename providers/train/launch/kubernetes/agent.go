package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/code"
)

// AgentProgram is the path of stoke-trainer in the pods of a program whose placement has
// an AgentImage: a first container copies it there.
const AgentProgram = "/stoke/stoke-trainer"

// Places in the pods of a program.
const (
	codeFolder   = "/etc/stoke-code"       // of the coordinator, with parts of the program's code
	agentFolder  = "/stoke"                // an agent's own
	agentProgram = AgentProgram            //
	ranksLogs    = agentFolder + "/logs"   //
	ownSaves     = agentFolder + "/saved"  // checkpoints that go with the pod
	agentState   = agentFolder + "/member" //
	// killTime is from the end of the time of grace to the end of an agent.
	killTime = 15
)

// images returns the image of a role's container. Where that is not the trainer's image,
// a first container copies stoke-trainer into the pod.
func (l *layout) images(role string) (image string, first []core.Container) {
	switch {
	case l.AgentImage == "":
		return l.Image, nil
	case !l.isAgent(role):
		return l.AgentImage, nil
	}
	return l.Image, []core.Container{{
		Name: "agent", Image: l.AgentImage, ImagePullPolicy: core.PullPolicy(l.PullPolicy), Args: []string{"install", agentProgram},
		VolumeMounts: []core.VolumeMount{{Name: "agent", MountPath: agentFolder}}, Resources: resources(l.role(role).WithoutGPUs()),
		TerminationMessagePolicy: core.TerminationMessageFallbackToLogsOnError, SecurityContext: restricted(),
	}}
}

// agentArguments are the arguments of an agent.
func (l *layout) agentArguments(role string) []string {
	command := server
	if role != server {
		command = worker
	}
	saves := ownSaves
	if l.Checkpoints != "" {
		saves = l.Checkpoints
	}
	args := []string{
		command, "--spec=" + specFolder + "/" + keySpec, "--token-file=" + secretFolder + "/" + keyToken,
		"--certificate-file=" + secretFolder + "/" + keyCertificate, "--listen-alive=:" + strconv.Itoa(l.alive()),
		"--run=" + l.id, "--coordinator=" + l.coordinatorAddress(), "--api=" + l.apiURL(),
		"--state=" + agentState, "--logs=" + ranksLogs, "--checkpoints=" + saves, "--tee",
	}
	if n := l.high(); n > 0 && role == worker {
		args = append(args, "--first-index="+strconv.Itoa(n))
	}
	return args
}

// grace is how long a pod of a role may take to end, in seconds.
func (l *layout) grace(role string) int64 {
	if l.isAgent(role) {
		return max(grace, int64(time.Duration(l.spec.Program.StopGrace)/time.Second)+killTime)
	}
	return grace
}

// sharedMemory is the size of /dev/shm in the pods of a role: half of the memory of
// an agent, where nothing else is given. "" is the container runtime's.
func (l *layout) sharedMemory(role string) string {
	r := l.role(role)
	if r.SharedMemory != "" || !l.isAgent(role) || r.Memory == "" {
		return r.SharedMemory
	}
	memory := resource.MustParse(r.Memory)
	return resource.NewQuantity(memory.Value()/2, resource.BinarySI).String()
}

// codeName is the name of the Secret that has a part of the program's code: equal
// names have equal content.
func (l *layout) codeName(part string) string {
	return fmt.Sprintf("%s-code-%.12s-%s", l.id, l.spec.Program.Code, strings.TrimPrefix(part, "part-"))
}

// codeLabel has the beginning of the hash of the code that a Secret has a part of.
const codeLabel = "stoke.dev/code"

// codeSource is the volume of the program's code, whose parts are in Secrets.
func (l *layout) codeSource() core.VolumeSource {
	var sources []core.VolumeProjection
	for n := range l.parts {
		part := code.PartName(n)
		sources = append(sources, core.VolumeProjection{Secret: &core.SecretProjection{
			LocalObjectReference: core.LocalObjectReference{Name: l.codeName(part)}, Items: []core.KeyToPath{{Key: part, Path: part}},
		}})
	}
	return core.VolumeSource{Projected: &core.ProjectedVolumeSource{Sources: sources}}
}

// codeKeeper keeps the code of a run's program in the cluster.
type codeKeeper struct {
	*cluster
	of *layout
}

// make makes the Secrets that do not exist.
func (c codeKeeper) make(ctx context.Context, code launch.Code, owner *metav1.OwnerReference) error {
	l := c.of
	l.parts = 0
	if l.spec.Program.Code == "" {
		return nil
	}
	parts, err := code.Snapshot.Parts(ctx, code.Folder)
	if err != nil {
		return err
	}
	l.parts = len(parts)
	for part, data := range parts {
		name := l.codeName(part)
		marks := labels(l.id, "")
		marks[codeLabel] = fmt.Sprintf("%.12s", l.spec.Program.Code)
		secret := &core.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.Namespace, Labels: marks},
			Immutable:  new(true), Type: core.SecretTypeOpaque, Data: map[string][]byte{part: data},
		}
		if _, err := c.create(ctx, secrets, secret, owner); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// removeOthers removes the Secrets of earlier code.
func (c codeKeeper) removeOthers(ctx context.Context) error {
	l := c.of
	all, err := list[core.Secret](ctx, c.cluster, secrets, l.id)
	if err != nil {
		return err
	}
	for _, s := range all {
		if mark := s.Labels[codeLabel]; mark != "" && !strings.HasPrefix(l.spec.Program.Code, mark) {
			if err := c.delete(ctx, secrets, s.Name, s.UID); err != nil {
				return err
			}
		}
	}
	return nil
}

// Ranks' lines in the output of an agent.
const rankMark = "[rank "

// rankLines returns a function that passes on the lines of one rank only, without
// their mark. Roles of other processes stay as they are.
func rankLines(o *launch.LogOptions, line func(launch.Line) error) func(launch.Line) error {
	number, ok := strings.CutPrefix(o.Role, "rank-")
	if !ok {
		return line
	}
	rank, mark := o.Role, rankMark+number+"] "
	o.Role = ""
	return func(l launch.Line) error {
		text, ok := strings.CutPrefix(l.Text, mark)
		if !ok || !slices.Contains([]string{worker, server}, strings.SplitN(l.Role, "-", 2)[0]) {
			return nil
		}
		l.Role, l.Text = rank, text
		return line(l)
	}
}
