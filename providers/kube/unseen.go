package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/providers/kube/schema"
)

// blind looks at objects whose cluster is not known yet.
func (r *set) blind(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, objects []*unstructured.Unstructured) {
	if !req.State.Raw.IsNull() {
		was, diags := readMemory(ctx, req.Private)
		prior, more := r.kind.common(ctx, req.State)
		if diags.HasError() || more.HasError() || was.rendered != "" && was.rendered == rendering(objects, prior.ID.ValueString()) {
			return // they are in a cluster, as they are declared
		}
	}
	plan, diags := r.kind.common(ctx, req.Plan)
	if resp.Diagnostics.Append(diags...); diags.HasError() {
		return
	}
	s := sight{unseen: objects, assume: plan.Assume, from: r.kind.readSource(ctx, req.Config)}
	s.declares(objects)
	for _, u := range objects {
		s.changes(u)
	}
	r.handOver(ctx, resp, s)
}

// handOver leaves to the review what it has to look at. Without one, checks that
// need no other resource are done here.
func (r *set) handOver(ctx context.Context, resp *resource.ModifyPlanResponse, s sight) {
	call := providers.CallFrom(ctx)
	if call.Note != nil {
		r.settings.doubts.see(call.Address, s)
		return
	}
	j := &judge{library: &r.settings.doubts.library, customs: map[gvk.GroupVersionKind][]schema.Custom{}}
	j.add(s.crds)
	for _, u := range s.unseen {
		if v := j.judgeObject(u, s.minors(ctx, nil), s.cluster != nil); v.wrong != "" {
			resp.Diagnostics.AddAttributeError(r.kind.at, badObject, detailOf(u, s.from, v.wrong))
		}
	}
}

const badObject = "Object does not fit its kind"

// minors returns the possible versions of Kubernetes of a cluster: its own, else the
// planned ones, else none.
func (s sight) minors(ctx context.Context, planned []string) []string {
	if s.cluster == nil {
		return planned
	}
	if v, err := s.cluster.Version(ctx); err == nil {
		return []string{v.GitVersion}
	}
	return nil
}

// checkUnreadable refuses objects that no server of their cluster's version would take.
func (r *reviewing) checkUnreadable(ctx context.Context) {
	if !slices.ContainsFunc(r.all.Planned, func(p providers.PlannedInstance) bool { return len(r.sights[p.Address].unseen) > 0 }) {
		return
	}
	j := &judge{library: &r.library, customs: map[gvk.GroupVersionKind][]schema.Custom{}}
	for _, p := range r.all.Planned {
		j.add(r.sights[p.Address].crds)
	}
	planned := plannedMinors(r.all.Planned)
	for _, p := range r.all.Planned {
		s, ok := r.sights[p.Address]
		if !ok || p.Source != Source || !declares(p.Planned) || len(s.unseen) == 0 {
			continue
		}
		later := map[string][]string{}
		minors := s.minors(ctx, planned)
		for _, u := range s.unseen {
			v := j.judgeObject(u, minors, s.cluster != nil)
			if v.wrong != "" {
				r.refuse(p, badObject, detailOf(u, s.from, v.wrong))
			}
			later[v.later] = append(later[v.later], object.KeyOf(u).Title())
		}
		if s.cluster != nil {
			continue // the forecast has reported this for each object
		}
		for _, why := range slices.Sorted(maps.Keys(later)) {
			if why != "" {
				r.notes = append(r.notes, providers.Note{Address: p.Address, Kind: providers.NoteChange, Text: strings.Join(sorted(later[why]), ", ") + " is checked at apply: " + why})
			}
		}
	}
}

// plannedMinors are the versions of the clusters that a plan makes: of instances
// whose access is not known yet.
func plannedMinors(all []providers.PlannedInstance) (minors []string) {
	for _, p := range all {
		if p.Source == Source || p.Planned == cty.NilVal || p.Planned.IsNull() || !p.Planned.Type().IsObjectType() || !p.Planned.IsKnown() || !p.Planned.Type().HasAttribute("access") || !p.Planned.Type().HasAttribute("version") {
			continue
		}
		version := p.Planned.GetAttr("version")
		if p.Planned.GetAttr("access").IsWhollyKnown() || version.Type() != cty.String || version.IsNull() {
			continue
		}
		if !version.IsKnown() {
			return nil
		}
		if v := version.AsString(); !slices.Contains(minors, v) {
			minors = append(minors, v)
		}
	}
	return minors
}

// judge knows schemas.
type judge struct {
	library *schema.Library
	customs map[gvk.GroupVersionKind][]schema.Custom // of CRDs in the configuration
}

// verdict is the fault of an object, and the reason to check it only at apply; ""
// for nothing.
type verdict struct{ wrong, later string }

// add makes the kinds of CRDs known. Faults of a CRD itself are reported by the
// server.
func (j *judge) add(crds []*unstructured.Unstructured) {
	for _, u := range crds {
		customs, err := schema.Customs(u.Object)
		if err != nil {
			continue
		}
		for _, c := range customs {
			j.customs[c.GroupVersionKind] = append(j.customs[c.GroupVersionKind], c)
		}
	}
}

// judgeObject looks at an object. minors are the versions that its cluster may have, none
// where that is not known. It is wrong where it is so for all of them. Which kinds a
// cluster has that is there, it has said itself.
func (j *judge) judgeObject(u *unstructured.Unstructured, minors []string, there bool) verdict {
	given := len(minors) > 0 && !there
	if len(minors) == 0 {
		all, err := schema.Minors()
		if err != nil || len(all) == 0 {
			return verdict{later: "no schemas are known here"}
		}
		minors = all[len(all)-1:]
	}
	var first *verdict
	for _, name := range minors {
		m, err := j.library.Minor(name)
		if err != nil {
			return verdict{later: err.Error()}
		}
		v := j.judgeMinor(u, m, given)
		if v.wrong == "" {
			return v
		}
		if first == nil {
			first = &v
		}
	}
	return *first
}

// judgeMinor looks at an object as a server of a minor would.
func (j *judge) judgeMinor(u *unstructured.Unstructured, m *schema.Minor, given bool) verdict {
	of := u.GroupVersionKind()
	const rest = "its cluster is not known yet; its fields and their types are right for "
	if customs := j.customs[of]; len(customs) > 0 {
		var first []schema.Finding
		for i, c := range customs {
			found, err := c.Check(u.Object, m)
			if err != nil || len(found) == 0 {
				return verdict{later: rest + "its CRD"}
			}
			if i == 0 {
				first = found
			}
		}
		return verdict{wrong: listed(first) + " (by its CRD)"}
	}
	if _, ok := m.Kind(of); !ok {
		if others := m.Serves(of.GroupKind()); given && len(others) > 0 {
			return verdict{wrong: fmt.Sprintf("Kubernetes %s does not serve %s in %s: use %s", m.Version, of.Kind, of.GroupVersion(), strings.Join(others, " or "))}
		}
		return verdict{later: fmt.Sprintf("its cluster is not known yet, and %s is not a kind of Kubernetes %s, or of "+
			"a CRD in this configuration", kindName(u), m.Version)}
	}
	found, err := m.Check(u.Object, of)
	switch {
	case err != nil:
		return verdict{later: err.Error()}
	case len(found) > 0:
		return verdict{wrong: listed(found) + " (by Kubernetes " + m.Version + ")"}
	}
	return verdict{later: rest + "Kubernetes " + m.Version}
}

// listed are findings as a sentence.
func listed(found []schema.Finding) string {
	var parts []string
	for _, f := range found {
		parts = append(parts, f.String())
	}
	return strings.Join(parts, "; ")
}

// detailOf is the whole of what people read about an object that is wrong.
func detailOf(u *unstructured.Unstructured, from sourcePlace, wrong string) string {
	title := object.KeyOf(u).Title()
	if at := from.placeOf(u); at != "" {
		title += " (" + at + ")"
	}
	return title + ": " + wrong + "."
}

// misfitError is for an object that the API server refuses for its fields or types. It
// has the findings of our own check, with similar names of fields.
type misfitError struct {
	error
	findings string
}

func (e *misfitError) Unwrap() error { return e.error }

var definition = gvk.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// misfit adds findings to the refusal of an object, by the schema of Kubernetes or of a
// CRD in the cluster.
func (s *settings) misfit(ctx context.Context, c *live.Cluster, u *unstructured.Unstructured, err error) error {
	j := &judge{library: &s.doubts.library, customs: map[gvk.GroupVersionKind][]schema.Custom{}}
	if gvr, _, unknown := c.Mapping(u.GroupVersionKind()); unknown == nil && strings.Contains(gvr.Group, ".") {
		crd := object.Key{GroupVersionKind: definition, Name: gvr.Resource + "." + gvr.Group}
		if found, unread := c.Get(ctx, crd); unread == nil && found != nil {
			j.add([]*unstructured.Unstructured{found})
		}
	}
	if v := j.judgeObject(u, sight{cluster: c}.minors(ctx, nil), true); v.wrong != "" {
		return &misfitError{err, v.wrong}
	}
	return err
}
