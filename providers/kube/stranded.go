package kube

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// strand refuses a plan that deletes a namespace, or a CRD, with objects that stay
// declared: the API server would delete these as well, though the plan shows no change
// of them.
func (r *reviewing) strand() {
	for _, p := range r.all.Planned {
		if p.Source != Source || !declares(p.Prior) || p.Planned == cty.NilVal {
			continue
		}
		unplanned := declares(p.Planned) && p.Planned.GetAttr("objects").IsNull()
		if _, _, known := objectsOf(p.Planned); !known || unplanned {
			continue
		}
		cluster, before, _ := objectsOf(p.Prior)
		for _, name := range before {
			if r.claims[cluster+" "+name] == "" {
				r.strandIn(p, name, cluster)
			}
		}
	}
}

// strandIn refuses the deletion of one object with the declared objects in it.
func (r *reviewing) strandIn(p providers.PlannedInstance, name, cluster string) {
	gone, err := object.ParseKey(name)
	if err != nil || !object.HoldsData(gone.GroupKind()) {
		return
	}
	var kinds []gvk.GroupVersionKind
	if text := p.Prior.GetAttr("objects").AsValueMap()[name]; text.IsKnown() && !text.IsNull() {
		if u, err := object.FromText(text.AsString()); err == nil {
			kinds = live.KindsOf(u)
		}
	}
	for _, other := range r.all.Planned {
		of, names, _ := objectsOf(other.Planned)
		if other.Source != Source || of != cluster {
			continue
		}
		within := slices.DeleteFunc(names, func(name string) bool {
			k, err := object.ParseKey(name)
			inside := gone.Kind == "Namespace" && k.Namespace == gone.Name ||
				slices.ContainsFunc(kinds, func(kind gvk.GroupVersionKind) bool { return kind.GroupKind() == k.GroupKind() })
			return err != nil || !inside
		})
		if len(within) > 0 {
			all := shorten(strings.Split(titles(within), ", "))
			r.refuse(other, "Declared objects would be deleted", fmt.Sprintf("%s would be deleted with %s, which %s declares no longer. "+
				"Declare %[2]s again, or take these objects out of the configuration as well.", all, gone.Title(), p.Address))
		}
	}
}
