package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/kube/object"
)

// doubts gathers what the cluster did not know while resources were planned,
// and what the plan makes, so that the review can tell one from the other.
type doubts struct {
	mu   sync.Mutex
	of   map[string]doubt // by the resource's address
	made map[string]bool  // kinds and namespaces that planned resources make
}

func (d *doubts) add(address string, of doubt, w wanted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of, d.made = map[string]doubt{}, map[string]bool{}
	}
	d.of[address] = of
	for _, u := range w.objects {
		switch u.GetKind() {
		case "Namespace":
			d.made["namespace "+u.GetName()] = true
		case "CustomResourceDefinition":
			for _, name := range defines(u) {
				d.made["kind "+name] = true
			}
		}
	}
}

// defines lists the kinds that a CRD brings, as "Kind of group/version".
func defines(crd *unstructured.Unstructured) (kinds []string) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if m, ok := v.(map[string]any); ok && m["served"] == true {
			kinds = append(kinds, fmt.Sprintf("%s of %s/%v", kind, group, m["name"]))
		}
	}
	return kinds
}

// review refuses objects of kinds and in namespaces that neither the cluster
// has nor the plan makes. A set of objects that is not known yet may make
// anything.
func (d *doubts) review(_ context.Context, all providers.Review) ([]providers.Note, providers.Diagnostics) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range all.Planned {
		if p.Source != Source || p.Planned.IsNull() || !p.Planned.Type().IsObjectType() || !p.Planned.Type().HasAttribute("objects") {
			continue
		}
		if !p.Planned.GetAttr("objects").IsKnown() {
			return nil, nil
		}
	}
	var diags providers.Diagnostics
	for _, p := range all.Planned {
		of, ok := d.of[p.Address]
		if !ok || p.Planned.IsNull() {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(of.kinds)) {
			if !d.made["kind "+name] {
				diags = append(diags, refusal(p, "Unknown kind", fmt.Sprintf("Neither the cluster nor this plan has the kind %s, which is that of %s. Declare its CRD, or correct apiVersion and kind.", name, titles(of.kinds[name]))))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(of.namespaces)) {
			if !d.made["namespace "+name] {
				diags = append(diags, refusal(p, "Namespace is missing", fmt.Sprintf("Neither the cluster nor this plan has the namespace %s, which %s lies in. Declare it as a kube_namespace that this resource depends on.", name, titles(of.namespaces[name]))))
			}
		}
	}
	return nil, diags
}

func refusal(p providers.PlannedInstance, summary, detail string) providers.Diagnostic {
	d := providers.Diagnostic{Address: p.Address, Severity: providers.Error, Summary: summary, Detail: detail}
	for _, name := range []string{"yaml", "path", "namespace", "name"} {
		if p.Planned.Type().HasAttribute(name) && !p.Planned.GetAttr(name).IsNull() {
			d.Path = cty.GetAttrPath(name)
			break
		}
	}
	return d
}

func titles(names []string) string {
	var out []string
	for _, name := range names {
		if k, err := object.ParseKey(name); err == nil {
			out = append(out, k.Title())
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
