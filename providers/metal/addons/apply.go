package addons

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/providers/metal/host"
)

// Diff names the objects that a cluster lacks, or that say something else there:
// what the API server would make of them is compared with what it has, so that
// neither its defaults nor what others added count.
func Diff(ctx context.Context, c *live.Cluster, want []*unstructured.Unstructured) ([]object.Key, error) {
	var differ []object.Key
	for _, u := range want {
		k := object.KeyOf(u)
		have, err := c.Get(ctx, k)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Title(), err)
		}
		if have == nil {
			differ = append(differ, k)
			continue
		}
		would, err := c.Apply(ctx, u, true, true)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Title(), err)
		}
		same, err := equal(would, have, u)
		if err != nil {
			return nil, err
		}
		if !same {
			differ = append(differ, k)
		}
	}
	return differ, nil
}

// equal compares two objects where want says something.
func equal(a, b, want *unstructured.Unstructured) (bool, error) {
	x, err := object.Text(object.Project(a, want), "")
	if err != nil {
		return false, err
	}
	y, err := object.Text(object.Project(b, want), "")
	return x == y, err
}

// Apply makes a cluster have objects, and removes those of before that are not
// among them. It returns the keys of what there is now, for the next Apply: also
// where it fails, so that nothing is forgotten.
func Apply(ctx context.Context, c *live.Cluster, want []*unstructured.Unstructured, before []string) (now []string, err error) {
	now = slices.Clone(before)
	for _, u := range want {
		k := object.KeyOf(u)
		host.Step(ctx, "applying %s", k.Title())
		if _, err := applied(ctx, c, u); err != nil {
			return now, fmt.Errorf("apply %s: %w", k.Title(), err)
		}
		if !slices.Contains(now, k.String()) {
			now = append(now, k.String())
		}
	}
	for _, text := range slices.Backward(slices.Clone(now)) {
		if slices.ContainsFunc(want, func(u *unstructured.Unstructured) bool { return object.KeyOf(u).String() == text }) {
			continue
		}
		k, err := object.ParseKey(text)
		if err != nil {
			return now, err
		}
		host.Step(ctx, "removing %s", k.Title())
		if err := c.Delete(ctx, k, ""); err != nil {
			return now, fmt.Errorf("remove %s: %w", k.Title(), err)
		}
		now = slices.DeleteFunc(now, func(s string) bool { return s == text })
	}
	return now, nil
}

const (
	pause = 2 * time.Second
	// kindTime is how long a kind may take to be served once its definition is
	// there.
	kindTime = 30 * time.Second
)

// applied waits for kinds that the manifest itself defines.
func applied(ctx context.Context, c *live.Cluster, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for end := time.Now().Add(kindTime); ; {
		is, err := c.Apply(ctx, u, false, true)
		if !errors.As(err, new(*live.NoKindError)) || time.Now().After(end) {
			return is, err
		}
		c.Rediscover()
		if err := host.Pause(ctx, pause); err != nil {
			return nil, err
		}
	}
}
