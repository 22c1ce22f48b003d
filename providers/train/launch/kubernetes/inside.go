package kubernetes

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	podsof "github.com/stokehq/stoke/providers/kube/pods"
	"github.com/stokehq/stoke/providers/train/launch"
)

var _ launch.Reachable = (*Launcher)(nil)

// OpenAccess gives the run's pods, which are called by their roles.
func (l *Launcher) OpenAccess(ctx context.Context, id string) (launch.RunAccess, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return nil, err
	}
	s, err := c.look(ctx, id)
	if err != nil {
		return nil, err
	}
	var all []podsof.Object
	for _, j := range s.jobs {
		all = append(all, podsof.Object{GroupKind: schema.GroupKind{Group: "batch", Kind: "Job"}, Namespace: j.Namespace, Name: j.Name})
	}
	set := podsof.New(c.Client, all)
	set.Role = roleName
	return set, nil
}
