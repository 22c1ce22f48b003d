package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/runtime/pattern"
)

const (
	// freshness is for how long after an apply of a CRD a refusal of its objects may
	// come from the schema before: an API server takes the new one up by itself, and
	// there may be several.
	freshness = time.Minute
	// firstPause and lastPause are how long a repetition waits; it doubles each time.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// KindsOf are the kinds that a CRD has the API server serve.
func KindsOf(crd *unstructured.Unstructured) (all []schema.GroupVersionKind) {
	if crd.GroupVersionKind().GroupKind() != crdKind {
		return nil
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	for _, v := range object.Parts(crd.Object, "spec", "versions") {
		if name, ok := v["name"].(string); ok && v["served"] == true {
			all = append(all, schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
		}
	}
	return all
}

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Defined notes CRDs that were applied, and waits until the API server serves their
// kinds, which is after the condition Established. It calls report with the missing kind.
func (c *Cluster) Defined(ctx context.Context, crds []*unstructured.Unstructured, report func(string)) error {
	var kinds []schema.GroupVersionKind
	for _, crd := range crds {
		kinds = append(kinds, KindsOf(crd)...)
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		c.Rediscover()
		missing := slices.IndexFunc(kinds, func(k schema.GroupVersionKind) bool {
			_, _, err := c.Mapping(k)
			return err != nil
		})
		if missing < 0 {
			break
		}
		_, _, err := c.Mapping(kinds[missing])
		report(fmt.Sprintf("%s is not served yet: %v", kinds[missing].Kind, err))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("the API server does not serve %s of %s, though its CRD is established: %w",
				kinds[missing].Kind, kinds[missing].GroupVersion(), context.Cause(ctx))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range kinds {
		c.defined[k.GroupKind()] = time.Now()
	}
	return nil
}

// fresh reports a kind whose CRD was applied a moment ago.
func (c *Cluster) fresh(k schema.GroupKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.defined[k]
	return ok && time.Since(at) < freshness
}

// momentary returns the cause of a refusal of an object that may be over soon; ""
// for another refusal.
func (c *Cluster) momentary(u *unstructured.Unstructured, err error) string {
	fresh := c.fresh(u.GroupVersionKind().GroupKind())
	switch {
	case err == nil:
		return ""
	case WebhookDown(err):
		return "a webhook does not answer"
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err):
		return "the API server is not ready for it"
	case fresh && errors.As(err, new(*NoKindError)), fresh && apierrors.IsNotFound(err) && MissingNamespace(err) == "":
		c.Rediscover()
		return "its kind is not served yet"
	case fresh && Misfit(err):
		return "its CRD's new schema is not in force yet"
	}
	return ""
}

// ApplyWithRetry applies an object as Apply does, again and again where it is refused
// for a moment. It calls report with the cause.
func (c *Cluster) ApplyWithRetry(
	ctx context.Context, u *unstructured.Unstructured, force bool, report func(string),
) (*unstructured.Unstructured, error) {
	return retryRequest(ctx, c, u, report, func() (*unstructured.Unstructured, error) { return c.Apply(ctx, u, false, force) })
}

// GetWithRetry reads the object that u declares as Get does, again and again where its
// conversion webhook does not answer. It calls report with the cause.
func GetWithRetry(ctx context.Context, c *Cluster, u *unstructured.Unstructured, report func(string)) (*unstructured.Unstructured, error) {
	return retryRequest(ctx, c, u, report, func() (*unstructured.Unstructured, error) { return c.Get(ctx, object.KeyOf(u)) })
}

// retryRequest calls ask until its error is not momentary, or until ctx ends.
func retryRequest(
	ctx context.Context, c *Cluster, u *unstructured.Unstructured, report func(string), ask func() (*unstructured.Unstructured, error),
) (*unstructured.Unstructured, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		result, err := ask()
		why := c.momentary(u, err)
		if why == "" || ctx.Err() != nil {
			return result, err
		}
		report(fmt.Sprintf("%s (%v); trying again", why, err))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// WebhookDown reports that an API server could not ask a webhook, for admission or for
// the conversion between versions: it may not run yet, or not be reachable yet.
func WebhookDown(err error) bool {
	return apierrors.IsInternalError(err) && failedWebhook.MatchString(err.Error())
}

var failedWebhook = pattern.New(`failed calling webhook|conversion webhook for .* failed: Post "`)

// Misfit reports that an object does not fit the schema that the API server has of
// its kind, whatever the schema in force a moment later says.
func Misfit(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsInternalError(err) || untyped.MatchString(text(err))
}

// untyped is how an API server refuses fields that a schema does not have.
var untyped = pattern.New(`field not declared in schema|failed to (create typed|create manager|prune fields|convert)`)

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
