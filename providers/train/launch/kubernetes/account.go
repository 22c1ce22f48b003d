package kubernetes

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/train/launch"
)

// accountTime bounds the look at what is left once time is up.
const accountTime = 15 * time.Second

// accounted removes objects of a run; where that fails, the error says which are
// left and which are not: launch.LeftError.
func (c *cluster) accounted(ctx context.Context, id string, remove func() error) error {
	before, err := c.objects(ctx, id)
	if err != nil {
		return err
	}
	err = remove()
	if err == nil || errors.Is(err, launch.ErrForeign) {
		return err
	}
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), accountTime)
	defer cancel()
	left := &launch.LeftError{Err: err, Place: c.namespace}
	if left.Left, left.Unseen = c.objects(looking, id); left.Unseen == nil {
		left.Removed = slices.DeleteFunc(before, func(name string) bool { return slices.Contains(left.Left, name) })
	}
	return left
}

// objects names all that there is of a run, pods among them.
func (c *cluster) objects(ctx context.Context, id string) (names []string, err error) {
	for _, kind := range append(slices.Clone(kinds), pods, configMaps) {
		page, err := c.client(kind).List(ctx, metav1.ListOptions{LabelSelector: runLabel + "=" + id})
		if err != nil {
			return nil, err
		}
		for _, u := range page.Items {
			names = append(names, u.GetKind()+" "+u.GetName())
		}
	}
	return names, nil
}
