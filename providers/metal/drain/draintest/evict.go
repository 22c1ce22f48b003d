package draintest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// evict is pkg/registry/core/pod/storage/eviction.go of Kubernetes.
func (c *Cluster) evict(r *request) (any, error) {
	try, err := dry(r)
	if err != nil {
		return nil, err
	}
	var e policy.Eviction
	switch err := json.NewDecoder(r.Body).Decode(&e); {
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	case e.APIVersion != "policy/v1" || e.Kind != "Eviction":
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Eviction object: %s %s", e.APIVersion, e.Kind))
	case e.Name != r.name:
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	if o := e.DeleteOptions; o != nil && len(o.DryRun) > 0 {
		if try && !reflect.DeepEqual(o.DryRun, []string{metav1.DryRunAll}) {
			return nil, apierrors.NewBadRequest("Non-matching dry-run options in request and content")
		}
		try = true
	}
	key := r.namespace + "/" + r.name
	p := c.pods[key]
	pods := schema.GroupResource{Resource: "pods"}
	switch {
	case p == nil:
		return nil, apierrors.NewNotFound(pods, r.name)
	case p.Spec.NodeName != r.node: // NodeRestriction
		return nil, apierrors.NewForbidden(pods, r.name, fmt.Errorf("node %s can only evict pods with spec.nodeName set to itself", r.node))
	}
	if o := e.DeleteOptions; o != nil && o.Preconditions != nil && o.Preconditions.UID != nil && *o.Preconditions.UID != p.UID {
		return nil, apierrors.NewConflict(pods, r.name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *o.Preconditions.UID, p.UID))
	}
	if !try && c.OnEvict != nil {
		c.mu.Unlock()
		c.OnEvict(key)
		c.mu.Lock()
	}
	if err := c.budget(p, try); err != nil {
		return nil, err
	}
	if !try && p.DeletionTimestamp == nil {
		now := metav1.NewTime(time.Now())
		p.DeletionTimestamp = &now
		c.touch(&p.ObjectMeta)
	}
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, nil
}

// budget asks the PodDisruptionBudgets of a pod.
func (c *Cluster) budget(p *core.Pod, try bool) error {
	switch p.Status.Phase {
	case core.PodSucceeded, core.PodFailed, core.PodPending:
		return nil
	}
	if p.DeletionTimestamp != nil {
		return nil
	}
	var budgets []*policy.PodDisruptionBudget
	for _, b := range c.budgets {
		if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && b.Namespace == p.Namespace && selector.Matches(labels.Set(p.Labels)) {
			budgets = append(budgets, b)
		}
	}
	switch {
	case len(budgets) == 0:
		return nil
	case len(budgets) > 1:
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}}
	}
	b := budgets[0]
	if b.Status.DisruptionsAllowed == 0 {
		err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policy.DisruptionBudgetCause,
			Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy)})
		return err
	}
	if !try {
		b.Status.DisruptionsAllowed--
		b.Status.CurrentHealthy--
	}
	return nil
}
