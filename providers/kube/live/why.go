package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers/kube/object"
)

// whyTime is how long a look for reasons may take.
const whyTime = 5 * time.Second

// whyAfter is the wait for an object before stoke looks for the reason, and the
// time between later looks.
const whyAfter = 15 * time.Second

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// unreadyReason says what keeps an object from being ready that its own status does not
// say: what its pods wait for, and the last warning about itself. "" is nothing
// that is known, or may be read.
func (c *Cluster) unreadyReason(ctx context.Context, k object.Key) string {
	ctx, cancel := context.WithTimeout(ctx, whyTime)
	defer cancel()
	u, err := c.Get(ctx, k)
	if err != nil || u == nil {
		return ""
	}
	for _, condition := range object.Parts(u.Object, "status", "conditions") {
		if condition["type"] == "ReplicaFailure" && condition["status"] == "True" {
			return fmt.Sprint(condition["message"])
		}
	}
	if k.Kind == "Pod" && k.Group == "" {
		return podWaits(u)
	}
	selector, _, _ := unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
	if len(selector) == 0 || k.Group != "apps" && k.Group != "batch" {
		return c.warning(ctx, u)
	}
	found, err := c.Dynamic.Resource(pods).Namespace(k.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(selector).String(), Limit: page})
	if err != nil {
		return ""
	}
	slices.SortFunc(found.Items, func(a, b unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	for i := range found.Items {
		if reason := podWaits(&found.Items[i]); reason != "" {
			return "pod " + found.Items[i].GetName() + ": " + reason
		}
	}
	return c.warning(ctx, u)
}

// podWaits says what a pod waits for, or why its containers do not run.
func podWaits(pod *unstructured.Unstructured) string {
	for _, kind := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, container := range object.Parts(pod.Object, "status", kind) {
			for _, state := range []string{"waiting", "terminated"} {
				reason, _, _ := unstructured.NestedString(container, "state", state, "reason")
				message, _, _ := unstructured.NestedString(container, "state", state, "message")
				if reason != "" && reason != "Completed" && reason != "ContainerCreating" && reason != "PodInitializing" {
					return strings.TrimSuffix(fmt.Sprintf("%s of container %v: %s", reason, container["name"], message), ": ")
				}
			}
		}
	}
	for _, condition := range object.Parts(pod.Object, "status", "conditions") {
		message, _ := condition["message"].(string)
		if condition["status"] == "False" && message != "" && (condition["type"] == "PodScheduled" || condition["type"] == "Ready") {
			return message
		}
	}
	return ""
}

// warning is the last one that an event tells about an object.
func (c *Cluster) warning(ctx context.Context, u *unstructured.Unstructured) string {
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	namespace := u.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	found, err := c.Dynamic.Resource(events).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(u.GetUID()), Limit: page})
	if err != nil {
		return ""
	}
	last, message := "", ""
	for _, e := range found.Items {
		if e.Object["type"] != "Warning" && e.Object["reason"] != "FailedBinding" { // which is what a claim without a class says
			continue
		}
		at, _, _ := unstructured.NestedString(e.Object, "lastTimestamp")
		if at = cmp.Or(at, e.GetCreationTimestamp().UTC().Format(time.RFC3339)); at >= last {
			last = at
			message, _, _ = unstructured.NestedString(e.Object, "message")
		}
	}
	return message
}

// asking adds to what is reported of a wait why it takes so long, and to the
// error that it ends with.
type asking struct {
	*Cluster
	report func(object.Key, string)

	mu    sync.Mutex
	waits map[object.Key]string
}

// noteReason hears what an object waits for; "" is that it is ready.
func (a *asking) noteReason(k object.Key, reason string) {
	a.mu.Lock()
	if a.waits[k] = reason; reason == "" {
		delete(a.waits, k)
	}
	a.mu.Unlock()
	if a.report != nil {
		a.report(k, reason)
	}
}

// ask looks now and then why the first of the objects is not ready, until ctx is
// done.
func (a *asking) ask(ctx context.Context) {
	ticker := time.NewTicker(whyAfter)
	defer ticker.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		a.mu.Lock()
		var keys []object.Key
		for k := range a.waits {
			keys = append(keys, k)
		}
		a.mu.Unlock()
		if len(keys) == 0 || a.report == nil {
			continue
		}
		k := slices.MinFunc(keys, object.Key.Compare)
		reason := a.unreadyReason(ctx, k)
		a.mu.Lock()
		_, still := a.waits[k]
		a.mu.Unlock()
		if still && reason != "" && reason != said {
			said = reason
			a.report(k, reason)
		}
	}
}

// explainError adds to an error of a wait why the object is not ready.
func (a *asking) explainError(ctx context.Context, err error) error {
	var not *NotReadyError
	if !errors.As(err, &not) {
		return err
	}
	if reason := a.unreadyReason(context.WithoutCancel(ctx), not.Key); reason != "" {
		not.Reason = strings.TrimSuffix(not.Reason, ".") + " (" + strings.TrimSuffix(reason, ".") + ")"
	}
	return err
}
