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
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/providers/kube/schema"
)

// doubts gathers what only the whole plan can answer: what the cluster did not
// know while resources were planned, and what of it the plan makes; what leaves
// one resource, and whether another takes it over.
type doubts struct {
	mu     sync.Mutex
	of     map[string]doubt           // by the resource's address
	sights map[string]sight           // by the resource's address
	made   map[string]bool            // namespaces that planned resources make
	scopes map[string]bool            // kinds that planned resources make, and whether they have namespaces
	claims map[string]string          // addresses by cluster and object, since the last review
	crds   map[string][]string        // kinds whose CRDs change, by the resource's address
	warns  map[string]*providers.Call // that have shown a warning of an API server

	library schema.Library
}

// doubt has the open questions of one resource.
type doubt struct {
	kinds      map[string][]string // objects of kinds that the cluster lacks, by "Kind of group/version"
	namespaces map[string][]string // objects by namespace that it lacks
	gone       []leavingObject     // objects that are no longer declared
	takes      map[string]string   // marks of others, by the objects that carry them
}

// leavingObject is an object that leaves a resource; keep forbids to delete it.
type leavingObject struct {
	object.Key
	keep bool
}

func newDoubt() doubt {
	return doubt{kinds: map[string][]string{}, namespaces: map[string][]string{}, takes: map[string]string{}}
}

// forget makes way for another plan of a resource.
func (d *doubts) forget(address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, address)
	delete(d.sights, address)
	delete(d.crds, address)
}

// change notes an object that is new, or declared otherwise than before: of a CRD the
// kinds that it brings.
func (d *doubts) change(address string, u *unstructured.Unstructured) {
	kinds := live.KindsOf(u)
	if len(kinds) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crds == nil {
		d.crds = map[string][]string{}
	}
	for _, k := range kinds {
		d.crds[address] = append(d.crds[address], k.Kind+" of "+k.GroupVersion().String())
	}
}

// changing reports a kind whose CRD another planned resource, or the same one, changes.
func (d *doubts) changing(kind string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, kinds := range d.crds {
		if slices.Contains(kinds, kind) {
			return true
		}
	}
	return false
}

func (d *doubts) add(address string, of doubt, objects []*unstructured.Unstructured) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of, d.made, d.scopes = map[string]doubt{}, map[string]bool{}, map[string]bool{}
	}
	d.of[address] = of
	for _, u := range objects {
		if u.GetKind() == "Namespace" {
			d.made[u.GetName()] = true
		}
		define(u, d.scopes)
	}
}

// scope reports whether a kind that a planned resource makes has namespaces.
func (d *doubts) scope(kind string) (namespaced, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	namespaced, known = d.scopes[kind]
	return namespaced, known
}

// moved reports that another resource than the one at an address declares an
// object.
func (d *doubts) moved(cluster, name, address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	by := d.claims[cluster+" "+name]
	return by != "" && by != address
}

// kindName is how a kind is called in doubts.
func kindName(u *unstructured.Unstructured) string { return u.GetKind() + " of " + u.GetAPIVersion() }

// define adds the kinds that a CRD brings, and whether they have namespaces.
// Other objects bring none.
func define(crd *unstructured.Unstructured, scopes map[string]bool) {
	if crd.GetKind() != "CustomResourceDefinition" {
		return
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if m, ok := v.(map[string]any); ok && m["served"] == true {
			scopes[fmt.Sprintf("%s of %s/%v", kind, group, m["name"])] = scope != "Cluster"
		}
	}
}

// reviewing is one look at a whole plan.
type reviewing struct {
	*doubts
	all   providers.Review
	notes []providers.Note
	diags providers.Diagnostics
}

// review rejects objects of kinds and in namespaces that neither the cluster has nor
// the plan makes, objects that two resources declare, objects of other resources that
// these do not give up, objects that do not fit their schemas if they could not be
// sent to a server, declared objects that would be deleted with their namespace or
// CRD, and pods that fit no node.
func (d *doubts) review(ctx context.Context, all providers.Review) ([]providers.Note, providers.Diagnostics) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := &reviewing{doubts: d, all: all}
	r.claim()
	unsure := false
	for _, p := range all.Planned {
		if _, looked := d.of[p.Address]; p.Source == Source && !looked && declares(p.Planned) && !p.Planned.GetAttr("objects").IsKnown() {
			unsure = true // a set of objects that is not known yet may make anything
		}
	}
	for _, p := range all.Planned {
		of, ok := d.of[p.Address]
		if !ok || !declares(p.Planned) {
			continue
		}
		if !unsure {
			r.missing(p, of)
		}
		r.checkTakeovers(p, of)
		r.noteLeftovers(p, of)
	}
	r.strand()
	r.checkUnreadable(ctx)
	r.checkRoom(ctx)
	return r.notes, r.diags
}

// begin remembers who declares each object, for an apply of what another process
// planned.
func (d *doubts) begin(_ context.Context, planned []providers.PlannedInstance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	(&reviewing{doubts: d, all: providers.Review{Planned: planned}}).claim()
}

// declares reports an object of this provider that is a set of objects.
func declares(v cty.Value) bool {
	return v != cty.NilVal && !v.IsNull() && v.IsKnown() && v.Type().IsObjectType() && v.Type().HasAttribute("objects") && v.Type().HasAttribute("cluster_id")
}

// objectsOf names the objects of a resource and their cluster; known is false
// where these are not known.
func objectsOf(v cty.Value) (cluster string, names []string, known bool) {
	if !declares(v) {
		return "", nil, true
	}
	id, objects := v.GetAttr("cluster_id"), v.GetAttr("objects")
	if !objects.IsKnown() || !id.IsKnown() {
		return "", nil, false
	}
	if !id.IsNull() {
		cluster = id.AsString()
	}
	if !objects.IsNull() {
		for name := range objects.AsValueMap() {
			names = append(names, name)
		}
	}
	return cluster, sorted(names), true
}

// claim finds who declares each object.
func (r *reviewing) claim() {
	r.claims = map[string]string{}
	for _, p := range r.all.Planned {
		if p.Source != Source {
			continue
		}
		cluster, names, _ := objectsOf(p.Planned)
		for _, name := range names {
			of := cluster + " " + name
			if by := r.claims[of]; by != "" && by != p.Address {
				r.refuse(p, "Object declared twice", fmt.Sprintf("%s is declared by %s and by %s. Leave it out of one of them.", titles([]string{name}), by, p.Address))
				continue
			}
			r.claims[of] = p.Address
		}
	}
}

// missing refuses what neither the cluster has nor the plan makes.
func (r *reviewing) missing(p providers.PlannedInstance, of doubt) {
	for _, name := range slices.Sorted(maps.Keys(of.kinds)) {
		if _, made := r.scopes[name]; !made {
			r.refuse(p, "Unknown kind", fmt.Sprintf("Neither the cluster nor this plan has the kind %s of %s. Declare its CRD, or correct apiVersion and kind.%s",
				name, titles(of.kinds[name]), r.suggestKinds(p, name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of.namespaces)) {
		if !r.made[name] {
			r.refuse(p, "Namespace is missing", fmt.Sprintf("Neither the cluster nor this plan has the namespace %s of "+
				"%s, or it is being deleted. Declare it as a kube_namespace that this resource depends on.", name, titles(of.namespaces[name])))
		}
	}
}

// checkTakeovers looks whether the resources whose objects a plan takes over give them
// up.
func (r *reviewing) checkTakeovers(p providers.PlannedInstance, of doubt) {
	for _, name := range slices.Sorted(maps.Keys(of.takes)) {
		k, err := object.ParseKey(name)
		if err != nil {
			continue
		}
		from := ""
		for _, other := range r.all.Planned {
			if other.Source != Source || other.Address == p.Address || !declares(other.Prior) {
				continue
			}
			id := other.Prior.GetAttr("id")
			if _, names, known := objectsOf(other.Planned); id.IsKnown() && !id.IsNull() && id.AsString() == of.takes[name] && known && !slices.Contains(names, name) {
				from = other.Address
			}
		}
		if from == "" {
			r.refuse(p, "Object exists already", existsDetail(k))
			continue
		}
		r.notes = append(r.notes, providers.Note{Address: p.Address, Kind: providers.NoteChange, Text: fmt.Sprintf(""+
			"%s is taken over from %s as it is", k.Title(), from)})
	}
}

// noteLeftovers adds notes about objects that a resource no longer declares.
func (r *reviewing) noteLeftovers(p providers.PlannedInstance, of doubt) {
	cluster, _, _ := objectsOf(p.Planned)
	for _, g := range of.gone {
		switch by := r.claims[cluster+" "+g.String()]; {
		case by != "":
			r.notes = append(r.notes, providers.Note{Address: p.Address, Kind: providers.NoteChange, Text: fmt.Sprintf(""+
				"%s is handed over to %s as it is", g.Title(), by)})
		case g.keep:
			r.refuse(p, "Data would be deleted", dataDetail(&dataError{g.Key, "is no longer declared and would be deleted"}))
		default:
			r.notes = append(r.notes, providers.Note{Address: p.Address, Kind: providers.NoteDeletion, Text: g.Title() + " is deleted: it is no longer declared"})
		}
	}
}

// suggestKinds returns a sentence with similar kinds of the cluster; "" for none.
func (r *reviewing) suggestKinds(p providers.PlannedInstance, name string) string {
	kind, _, _ := strings.Cut(name, " of ")
	if c := r.sights[p.Address].cluster; c != nil {
		return c.SuggestKinds(kind)
	}
	return ""
}

func (r *reviewing) refuse(p providers.PlannedInstance, summary, detail string) {
	d := providers.Diagnostic{Address: p.Address, Severity: providers.Error, Summary: summary, Detail: detail}
	for _, name := range []string{"yaml", "path", "namespace", "name"} {
		if p.Planned.Type().HasAttribute(name) && !p.Planned.GetAttr(name).IsNull() {
			d.Path = cty.GetAttrPath(name)
			break
		}
	}
	r.diags = append(r.diags, d)
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
