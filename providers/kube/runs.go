package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/providers/kube/pods"
)

// runs finds the pods behind a resource's objects.
type runs struct{}

// Types lists the one whose objects may have pods: all others have fixed kinds
// without.
func (runs) Types() []string { return []string{"kube_" + manifest.name} }

// Is reports whether one of the objects is of a kind with pods.
func (runs) Is(o providers.RunObject) bool { return len(havingPods(o.Value)) > 0 }

// Run finds the pods. The cluster is the stored connection, or the provider
// block's where only that has the way to it.
func (runs) Run(ctx context.Context, o providers.RunObject) (providers.Run, error) {
	objects := havingPods(o.Value)
	if len(objects) == 0 {
		return nil, providers.ErrNoRun
	}
	c, known, err := connectionOf(o.Value)
	if err != nil {
		return nil, err
	}
	own := new(settings)
	if !known || c.Credential.SSH != nil {
		if own, err = configured(ctx, o); err != nil {
			return nil, err
		}
	}
	if !known {
		if c, err = own.standard(ctx); err != nil {
			return nil, err
		}
	}
	if c.ID == "" {
		c.ID = stringAt(o.Value, "cluster_id")
	}
	client, err := own.pool.Get(ctx, c)
	if err != nil {
		summary, detail := kubernetes.Describe(err)
		return nil, &providers.RunError{Summary: summary, Detail: detail, Err: err}
	}
	set := pods.New(client, objects)
	if _, err := set.Status(ctx); errors.Is(err, providers.ErrNoRun) {
		return nil, err
	}
	return set, nil // later calls report its faults
}

// standard is the connection that the provider block says.
func (s *settings) standard(ctx context.Context) (connect.Connection, error) {
	c, known, diags := s.connection(ctx, types.ObjectNull(connect.AttributeTypes()))
	switch {
	case diags.HasError():
		return c, &providers.RunError{Summary: diags[0].Summary(), Detail: diags[0].Detail()}
	case !known:
		return c, &providers.RunError{Summary: "Cluster not known", Detail: "The block provider \"kube\" depends on " +
			"variables without a value, or on results of an apply. Give variables as for a plan."}
	}
	return c, nil
}

// havingPods are the objects of a stored value that have pods.
func havingPods(v cty.Value) (all []pods.Object) {
	objects := attributeOf(v, "objects")
	if objects == cty.NilVal || !objects.CanIterateElements() {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(objects.AsValueMap())) {
		k, err := object.ParseKey(name)
		if err == nil && pods.HasPods(k.GroupKind()) {
			all = append(all, pods.Object{GroupKind: k.GroupKind(), Namespace: k.Namespace, Name: k.Name})
		}
	}
	return all
}

// connectionOf is the stored argument cluster; known is false without one.
func connectionOf(v cty.Value) (c connect.Connection, known bool, err error) {
	cluster := attributeOf(v, "cluster")
	if cluster == cty.NilVal {
		return c, false, nil
	}
	if !cluster.IsWhollyKnown() {
		return c, false, errors.New("the connection to the cluster is not known yet")
	}
	c, err = connect.FromValue(cluster)
	return c, err == nil, err
}

// attributeOf is an attribute of a stored value without marks; NilVal if it is
// missing, null, or unknown.
func attributeOf(v cty.Value, name string) cty.Value {
	v, _ = v.UnmarkDeep()
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	if a := v.GetAttr(name); !a.IsNull() && a.IsKnown() {
		return a
	}
	return cty.NilVal
}

func stringAt(v cty.Value, name string) string {
	if a := attributeOf(v, name); a != cty.NilVal && a.Type() == cty.String {
		return a.AsString()
	}
	return ""
}

// configured are the settings of the provider block.
func configured(ctx context.Context, o providers.RunObject) (*settings, error) {
	if o.Configured == nil {
		return nil, errors.New("the block provider \"kube\" names the cluster, and this folder has no configuration")
	}
	p, err := o.Configured(ctx)
	if err != nil {
		return nil, err
	}
	served, ok := providers.ServerAs[closing](p)
	if !ok {
		return nil, fmt.Errorf("%T is not this provider", p)
	}
	return &served.provider.settings, nil
}
