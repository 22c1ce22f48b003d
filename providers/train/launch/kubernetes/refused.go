package kubernetes

import (
	"context"
	"strings"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// refused says why a Job of the run has no pod: the API server may refuse the
// pod, by a quota, a Pod Security level or a webhook, long after it took the
// Job, and only an event tells. "" is nothing of the kind; events that cannot be
// read are none.
func (c *cluster) refused(ctx context.Context, s *sight) string {
	bare := make(map[string]string) // roles by their Jobs' names
	for _, j := range s.jobs {
		bare[j.Name] = j.Labels[roleLabel]
	}
	for _, p := range s.pods {
		delete(bare, job(s.config.Name, p.Labels[roleLabel]))
	}
	if len(bare) == 0 {
		return ""
	}
	page, err := c.in(events).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,reason=FailedCreate", Limit: 500})
	if err != nil {
		return ""
	}
	for _, u := range page.Items {
		var e core.Event
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &e) != nil {
			continue
		}
		if role, ok := bare[e.InvolvedObject.Name]; ok {
			return role + ": " + strings.TrimPrefix(e.Message, "Error creating: ")
		}
	}
	return ""
}
