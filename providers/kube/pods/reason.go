package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Reasons as the kubelet writes them into the states of containers,
// https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet/images/types.go
const (
	crashLoop = "CrashLoopBackOff"
	completed = "Completed"
)

// reason returns why a pod waits, or what is wrong with it; "" where there is
// nothing to say.
func reason(p *core.Pod) string {
	if p.Status.Reason != "" && p.Status.Phase != core.PodRunning { // evicted, past its deadline, on a lost node
		return sentence(p.Status.Reason, p.Status.Message)
	}
	containers := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	for _, look := range []func(core.ContainerStatus) string{waits, describeFailure, restarted} {
		for _, c := range containers {
			if said := look(c); said != "" {
				return said
			}
		}
	}
	for _, kind := range []core.PodConditionType{core.DisruptionTarget, core.PodScheduled, core.PodReady} {
		for _, c := range p.Status.Conditions {
			bad := c.Status == core.ConditionFalse
			if kind == core.DisruptionTarget {
				bad = c.Status == core.ConditionTrue
			}
			if c.Type == kind && bad && c.Message != "" && p.Status.Phase != core.PodSucceeded {
				return c.Message
			}
		}
	}
	if p.DeletionTimestamp != nil && len(p.Finalizers) > 0 {
		return "held back by the finalizers " + strings.Join(p.Finalizers, ", ")
	}
	return ""
}

// sentence joins a reason in one word with its message.
func sentence(word, message string) string {
	if message == "" {
		return word
	}
	return word + ": " + message
}

// waits returns the reason why a container does not start.
func waits(c core.ContainerStatus) string {
	w := c.State.Waiting
	if w == nil || w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
		return ""
	}
	switch w.Reason {
	case crashLoop:
		if t := c.LastTerminationState.Terminated; t != nil {
			return fmt.Sprintf("%s of container %s: it ended with %s", crashLoop, c.Name, ending(t))
		}
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		return fmt.Sprintf("image of container %s cannot be pulled (%s)", c.Name, sentence(w.Reason, w.Message))
	}
	return sentence(w.Reason+" of container "+c.Name, w.Message)
}

// describeFailure describes the failure of a container that is not started again.
func describeFailure(c core.ContainerStatus) string {
	t := c.State.Terminated
	if t == nil || t.Reason == completed || t.ExitCode == 0 && t.Reason == "" {
		return ""
	}
	return fmt.Sprintf("container %s ended with %s", c.Name, ending(t))
}

// restarted returns the reason why a running container was restarted.
func restarted(c core.ContainerStatus) string {
	t := c.LastTerminationState.Terminated
	if t == nil || c.RestartCount == 0 || t.Reason == completed {
		return ""
	}
	return fmt.Sprintf("container %s was started again: it had ended with %s", c.Name, ending(t))
}

// ending is how a container ended: "OOMKilled (exit code 137)".
func ending(t *core.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" {
		text = fmt.Sprintf("%s (%s)", t.Reason, text)
	}
	if message := strings.Join(strings.Fields(t.Message), " "); message != "" {
		text += ": " + message
	}
	return text
}

// unbound names the claims that keep a pod from getting a node.
func (c *claims) unbound(ctx context.Context, p *core.Pod) string {
	var all []string
	for _, v := range p.Spec.Volumes {
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = p.Name + "-" + v.Name
		default:
			continue
		}
		u := c.get(ctx, p.Namespace, name)
		if u == nil { // the scheduler says so where it is not there
			continue
		}
		if at, _, _ := unstructured.NestedString(u.Object, "status", "phase"); at == string(core.ClaimBound) {
			continue
		}
		class, _, _ := unstructured.NestedString(u.Object, "spec", "storageClassName")
		if class == "" {
			class = "no storage class"
		} else {
			class = "storage class " + class
		}
		all = append(all, fmt.Sprintf("claim %s (%s) has no volume yet", name, class))
	}
	return strings.Join(all, "; ")
}

// condition is what an object's controller says about why it does not get on.
func condition(u *unstructured.Unstructured) string {
	for _, c := range conditions(u) {
		kind, status := c["type"], c["status"]
		bad := kind == "ReplicaFailure" && status == "True" || kind == "Failed" && status == "True" || kind == "FailureTarget" && status == "True" || kind == "Progressing" && status == "False"
		if message, _ := c["message"].(string); bad && message != "" {
			return message
		}
	}
	return ""
}

func conditions(u *unstructured.Unstructured) (all []map[string]any) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range list {
		if m, ok := c.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}
