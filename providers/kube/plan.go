package kube

import (
	"context"
	"crypto/rand"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
)

// ModifyPlan plans each object: as it was if neither it nor its declaration has
// changed, else as the result of the server's dry run.
func (r *set) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || r.settings == nil {
		return
	}
	call := providers.CallFrom(ctx)
	r.settings.doubts.forget(call.Address)
	r = r.showing(ctx, req.Config)
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
	clusterKnown := known
	objects, known, diags := r.rendered(ctx, req.Config)
	resp.Diagnostics.Append(diags...)
	if !clusterKnown || !known || diags.HasError() {
		later()
		if known && !diags.HasError() {
			r.blind(ctx, req, resp, objects)
		}
		return
	}
	was, diags := readMemory(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	salt := prior.ID.ValueString()
	if salt == "" {
		salt = rand.Text()
	}
	f := &forecast{
		set: r, plan: plan, prior: prior.texts(), was: was, id: prior.ID.ValueString(), owner: prior.ID.ValueString(),
		texts: map[string]string{}, reviewed: call.Note != nil, address: call.Address, doubt: newDoubt(), promise: newPromise(objects, salt),
	}
	f.sight.from = r.kind.readSource(ctx, req.Config)
	f.sight.assume = f.plan.Assume
	f.sight.declares(objects)
	if !req.State.Raw.IsNull() && plan.Cluster.Equal(prior.Cluster) && f.asBefore(objects) {
		r.settings.doubts.add(call.Address, f.doubt, objects)
		r.settings.doubts.see(call.Address, f.sight)
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, objectsAt, prior.Objects)...)
		return // nobody is asked
	}
	cluster, err := r.settings.cluster(ctx, connection, prior.ClusterID.ValueString())
	if err != nil {
		summary, detail := kubernetes.Describe(err)
		resp.Diagnostics.AddAttributeError(clusterAt, summary, detail)
		return
	}
	f.cluster, f.sight.cluster = cluster, cluster
	f.replaces(call.Replaces, cluster)
	w, diags := r.want(objects, cluster)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	f.run(ctx, w)
	resp.Diagnostics.Append(f.diags...)
	if f.diags.HasError() {
		return
	}
	r.settings.doubts.add(call.Address, f.doubt, objects)
	r.handOver(ctx, resp, f.sight)
	f.writePlan(ctx, w, resp)
	if w.unsure {
		later()
	}
}

// replaces takes over the record of the replaced resource's objects: by then
// they are deleted.
func (f *forecast) replaces(before cty.Value, cluster *live.Cluster) {
	if before == cty.NilVal || before.IsNull() || !before.IsKnown() {
		return
	}
	attribute := func(name string) string {
		v := before.GetAttr(name)
		if v.IsNull() || !v.IsKnown() {
			return ""
		}
		return v.AsString()
	}
	if id := attribute("cluster_id"); id != cluster.ID {
		return
	}
	f.replacing, f.owner = true, attribute("id")
	f.prior = map[string]string{}
	if all := before.GetAttr("objects"); all.IsKnown() && !all.IsNull() {
		for name, text := range all.AsValueMap() {
			if f.prior[current(name)] = ""; text.IsKnown() && !text.IsNull() {
				f.prior[current(name)] = text.AsString()
			}
		}
	}
}

// asBefore reports that all is as it was applied: what is declared, and the
// objects as the state has them.
func (f *forecast) asBefore(objects []*unstructured.Unstructured) bool {
	if len(f.prior) != len(f.was.objects) || f.was.rendered == "" || f.was.rendered != rendering(objects, f.id) {
		return false
	}
	for name, text := range f.prior {
		if a := f.was.objects[name]; a.Left || a.Declared == "" || !a.holds(text, a.Declared, f.plan.Wait) {
			return false
		}
	}
	return true
}

// writePlan writes the plan, reports notes, and makes the whole resource be replaced
// where its only object is.
func (f *forecast) writePlan(ctx context.Context, w desiredSet, resp *resource.ModifyPlanResponse) {
	whole := !f.replacing && len(f.replaced) > 0 && len(f.texts) == 1 && len(f.prior) == 1
	if whole {
		resp.RequiresReplace = append(resp.RequiresReplace, objectsAt)
	}
	for _, d := range f.deletions {
		if whole { // the resource's own replacement is in the totals
			f.notes = append(f.notes, d.text)
			continue
		}
		note(ctx, resp, f.kind.at, d.note())
	}
	for _, text := range sorted(f.notes) {
		note(ctx, resp, f.kind.at, providers.Note{Kind: providers.NoteChange, Text: text})
	}
	value, diags := objectsValue(f.texts)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, objectsAt, value)...)
	resp.Diagnostics.Append(writeKey(ctx, resp.Private, keepPlanned, f.promise)...)
	if f.id == "" {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("id"), types.StringUnknown())...)
	}
	if f.cluster.ID != "" {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("cluster_id"), f.cluster.ID)...)
	} else if f.plan.ClusterID.IsUnknown() {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("cluster_id"), types.StringValue(""))...)
	}
}
