package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// atOnce is how many objects of one resource are asked about at a time.
const atOnce = 8

// ModifyPlan says what each object will be: as it was where neither it nor what
// is declared has changed, else what the server's dry run makes of it.
func (r *set) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || r.settings == nil {
		return
	}
	later := func() {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, objectsAt, types.MapUnknown(types.StringType))...)
	}
	plan, diags := r.kind.common(ctx, req.Plan)
	resp.Diagnostics.Append(diags...)
	prior := common{}
	if !req.State.Raw.IsNull() {
		prior, diags = r.kind.common(ctx, req.State)
		resp.Diagnostics.Append(diags...)
	}
	connection, known, diags := r.settings.connection(ctx, plan.Cluster)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if !known {
		later()
		return
	}
	if _, known, diags := r.kind.render(ctx, req.Config); !known || diags.HasError() {
		resp.Diagnostics.Append(diags...)
		later()
		return
	}
	cluster, err := r.settings.cluster(ctx, connection, prior.ClusterID.ValueString())
	if err != nil {
		summary, detail := kubernetes.Describe(err)
		resp.Diagnostics.AddAttributeError(clusterAt, summary, detail)
		return
	}
	w, _, diags := r.want(ctx, req.Config, cluster)
	resp.Diagnostics.Append(diags...)
	was, diags := readApplied(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	f := &forecast{set: r, cluster: cluster, plan: plan, prior: prior.texts(), was: was, id: prior.ID.ValueString(), texts: map[string]string{}}
	f.run(ctx, w)
	resp.Diagnostics.Append(f.diags...)
	if f.diags.HasError() {
		return
	}
	f.tell(ctx, resp)
	r.settings.doubts.add(providers.CallFrom(ctx).Address, f.doubt, w)
	value, diags := objectsValue(f.texts)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, objectsAt, value)...)
	if cluster.ID != "" {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("cluster_id"), cluster.ID)...)
	} else if plan.ClusterID.IsUnknown() {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("cluster_id"), types.StringValue(""))...)
	}
}

// forecast finds out what an apply would do.
type forecast struct {
	*set
	cluster *live.Cluster
	plan    common
	prior   map[string]string // texts as they are now
	was     map[string]applied
	id      string // "" while the resource has none

	mu       sync.Mutex
	texts    map[string]string // as they will be; "" is not known
	diags    diag.Diagnostics
	notes    []string
	replaced []string // keys of objects that are made anew
	doubt    doubt
}

// doubt is what the cluster did not know, and something in the plan may make.
type doubt struct {
	kinds      map[string][]string // objects by "Kind of group/version"
	namespaces map[string][]string // objects by namespace
}

func (f *forecast) run(ctx context.Context, w wanted) {
	f.doubt = doubt{kinds: map[string][]string{}, namespaces: map[string][]string{}}
	salt := f.id
	var ask []int
	for i, u := range w.objects {
		k := w.keys[i]
		before, ok := f.was[k]
		now, there := f.prior[k]
		if ok && there && before.Result == object.Hash(now) && before.Declared == declared(u, salt) {
			f.texts[k] = now
			continue
		}
		ask = append(ask, i)
	}
	if f.id != "" {
		w.mark(f.id)
	} else {
		w.mark("new")
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, i := range ask {
		group.Go(func() error {
			text, err := f.one(ctx, w.objects[i])
			f.mu.Lock()
			defer f.mu.Unlock()
			if err != nil {
				f.diags.Append(f.explain(object.KeyOf(w.objects[i]), err))
			}
			f.texts[w.keys[i]] = text
			return nil
		})
	}
	group.Wait()
	f.prune(w)
}

// one asks what an apply would make of an object.
func (f *forecast) one(ctx context.Context, u *unstructured.Unstructured) (string, error) {
	k := object.KeyOf(u)
	_, existed := f.prior[k.String()]
	current, err := f.cluster.Marked(ctx, k)
	if err == nil && current == nil && existed {
		current, err = f.cluster.Get(ctx, k) // somebody took the mark away
	}
	if err != nil {
		return "", err
	}
	if current != nil && f.leaveToScaler(u, current) {
		f.note(fmt.Sprintf("%s: spec.replicas is left to what scales it", k.Title()))
	}
	result, err := f.cluster.Apply(ctx, u, true, f.plan.Force.ValueBool())
	if conflicts := live.Conflicts(err); len(conflicts) > 0 && f.ours(k, conflicts) {
		f.note(fmt.Sprintf("%s: %s", k.Title(), taken(conflicts)))
		result, err = f.cluster.Apply(ctx, u, true, true)
	}
	switch {
	case isNoKind(err):
		f.mu.Lock()
		name := u.GetKind() + " of " + u.GetAPIVersion()
		f.doubt.kinds[name] = append(f.doubt.kinds[name], k.String())
		f.mu.Unlock()
		return f.unchecked(u, "the cluster does not know its kind yet")
	case live.MissingNamespace(err) != "":
		f.mu.Lock()
		name := live.MissingNamespace(err)
		f.doubt.namespaces[name] = append(f.doubt.namespaces[name], k.String())
		f.mu.Unlock()
		return f.unchecked(u, "its namespace "+name+" is not there yet")
	case live.NoDryRun(err):
		return f.unchecked(u, "a webhook of the cluster allows no dry run")
	case existed && len(live.Immutable(err)) > 0:
		return f.anew(ctx, u, live.Immutable(err))
	case err != nil:
		return "", err
	}
	if !existed && result.GetResourceVersion() != "" && !f.mine(result) {
		return "", &existsError{k}
	}
	return f.text(u, result)
}

// text is what the state will say of an object.
func (f *forecast) text(want, result *unstructured.Unstructured) (string, error) {
	if f.id == "" && object.IsSecret(want) {
		return "", nil // the salt of its hash is the resource's id
	}
	return f.set.text(want, result, f.id)
}

// text is the part of a live object that is declared.
func (r *set) text(want, result *unstructured.Unstructured, id string) (string, error) {
	return object.Text(withoutMark(object.Project(result, want)), id)
}

// withoutMark leaves stoke's label out, which says nothing new.
func withoutMark(content map[string]any) map[string]any {
	meta, ok := content["metadata"].(map[string]any)
	if !ok {
		return content
	}
	labels, ok := meta["labels"].(map[string]any)
	if !ok || labels[live.Mark] == nil {
		return content
	}
	content, meta, labels = maps.Clone(content), maps.Clone(meta), maps.Clone(labels)
	if delete(labels, live.Mark); len(labels) == 0 {
		delete(meta, "labels")
	} else {
		meta["labels"] = labels
	}
	content["metadata"] = meta
	return content
}

// mine reports an object that a create of this resource left, which was cut
// off.
func (f *forecast) mine(u *unstructured.Unstructured) bool {
	return f.id != "" && u.GetLabels()[live.Mark] == f.id
}

// unchecked is the text of what only the apply can check.
func (f *forecast) unchecked(u *unstructured.Unstructured, why string) (string, error) {
	f.note(fmt.Sprintf("%s is checked at apply: %s", object.KeyOf(u).Title(), why))
	if f.id == "" && object.IsSecret(u) {
		return "", nil
	}
	return object.Text(withoutMark(u.Object), f.id)
}

// anew plans an object that cannot be changed: it is made as if it were not
// there.
func (f *forecast) anew(ctx context.Context, u *unstructured.Unstructured, fields []string) (string, error) {
	slices.Sort(fields)
	f.mu.Lock()
	f.replaced = append(f.replaced, object.KeyOf(u).String())
	f.mu.Unlock()
	f.note(fmt.Sprintf("%s is deleted and made anew: %s cannot be changed", object.KeyOf(u).Title(), strings.Join(slices.Compact(fields), ", ")))
	other := u.DeepCopy()
	other.SetName(object.Trial(u.GetName()))
	result, err := f.cluster.Apply(ctx, other, true, false)
	if err != nil {
		return "", err
	}
	result = result.DeepCopy()
	result.SetName(u.GetName())
	return f.text(u, result)
}

// leaveToScaler takes the number of replicas out of u where an autoscaler sets
// it.
func (f *forecast) leaveToScaler(u, current *unstructured.Unstructured) bool {
	return leaveToScaler(u, current)
}

func leaveToScaler(u, current *unstructured.Unstructured) bool {
	by := object.TakenBy(current, "scale", "spec", "replicas")
	spec, ok := u.Object["spec"].(map[string]any)
	if !ok || by == "" || strings.HasPrefix(by, "kubectl") || by == live.Manager {
		return false
	}
	if _, ok := spec["replicas"]; !ok {
		return false
	}
	delete(spec, "replicas")
	return true
}

// ours reports whether all fields in conflict are ones that we applied before:
// somebody changed them since, and they are taken back.
func (f *forecast) ours(k object.Key, conflicts []live.Conflict) bool {
	before, ok := f.was[k.String()]
	return ok && before.Result != "" && f.plan.owned(k, conflicts, f.prior[k.String()])
}

// owned holds the fields in conflict against the text of the object.
func (c common) owned(k object.Key, conflicts []live.Conflict, text string) bool {
	u, err := object.FromText(text)
	if err != nil {
		return false
	}
	for _, conflict := range conflicts {
		if !object.Has(u, conflict.Field) {
			return false
		}
	}
	return true
}

func taken(conflicts []live.Conflict) string {
	var parts []string
	for _, c := range conflicts {
		parts = append(parts, fmt.Sprintf("%s is taken back from %s", c.Field, c.Manager))
	}
	return strings.Join(parts, "; ")
}

func (f *forecast) note(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, text)
}

// prune looks at what is no longer declared.
func (f *forecast) prune(w wanted) {
	gone := map[string]bool{}
	for name := range f.prior {
		gone[name] = true
	}
	for _, name := range w.keys {
		delete(gone, name)
	}
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		k, err := object.ParseKey(name)
		if err != nil {
			continue
		}
		f.notes = append(f.notes, k.Title()+" is deleted: it is no longer declared")
		if object.HoldsData(k.Kind) && !f.plan.Prune {
			f.diags.AddAttributeError(f.kind.at, "Data would be deleted",
				fmt.Sprintf("%s is no longer declared, and what it holds would go with it. Set prune_data = true to delete it, or declare it again.", k.Title()))
		}
	}
}

// tell reports notes, and makes the whole resource be replaced where its only
// object is.
func (f *forecast) tell(ctx context.Context, resp *resource.ModifyPlanResponse) {
	if len(f.replaced) > 0 && len(f.texts) == 1 && len(f.prior) == 1 {
		resp.RequiresReplace = append(resp.RequiresReplace, objectsAt)
	}
	slices.Sort(f.notes)
	for _, text := range f.notes {
		note(ctx, resp, f.kind.at, text)
	}
}

func isNoKind(err error) bool { return errors.As(err, new(*live.NoKindError)) }
