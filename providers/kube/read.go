package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// Read looks what has become of the objects. A cluster that cannot be asked
// leaves the state as it is, with a warning; the wrong cluster is an error.
func (r *set) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	state, diags := r.kind.common(ctx, req.State)
	resp.Diagnostics.Append(diags...)
	connection, known, diags := r.settings.connection(ctx, state.Cluster)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() || !known {
		return
	}
	call := providers.CallFrom(ctx)
	id := state.ID.ValueString()
	if call.Settling {
		id = call.Operation
	}
	cluster, err := r.settings.cluster(ctx, connection, state.ClusterID.ValueString())
	if err != nil {
		summary, detail := kubernetes.Describe(err)
		if call.Settling || errors.As(err, new(*kubernetes.OtherClusterError)) {
			resp.Diagnostics.AddAttributeError(clusterAt, summary, detail)
			return
		}
		resp.Diagnostics.AddAttributeWarning(clusterAt, summary, detail+" The objects are taken to be as the state has them.")
		return
	}
	was, diags := readApplied(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	texts := map[string]string{}
	for name, before := range state.texts() {
		text, err := r.look(ctx, cluster, name, before, id, was[name], call.Settling)
		if err != nil {
			resp.Diagnostics.AddAttributeError(objectsAt.AtMapKey(name), "Object cannot be read", sentence(err))
			return
		}
		if text != "" {
			texts[name] = text
		}
	}
	if len(texts) == 0 {
		resp.State.RemoveResource(ctx)
		return
	}
	value, diags := objectsValue(texts)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, objectsAt, value)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), id)...)
	if cluster.ID != "" {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("cluster_id"), cluster.ID)...)
	}
}

// look is the text of an object as it is; "" where there is none that is ours.
func (r *set) look(ctx context.Context, cluster *live.Cluster, name, before, id string, was applied, settling bool) (string, error) {
	k, err := object.ParseKey(name)
	if err != nil {
		return "", err
	}
	u, err := cluster.Marked(ctx, k)
	if err == nil && u == nil {
		u, err = cluster.Get(ctx, k) // without its mark it is still the one
	}
	if err != nil || u == nil || settling && u.GetLabels()[live.Mark] != id {
		return "", err
	}
	want, err := object.FromText(before)
	if err != nil || before == "" {
		want = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": map[string]any{"name": u.GetName()},
		}}
	}
	if object.IsSecret(u) && want.Object["data"] != nil {
		want.Object["data"] = u.Object["data"] // whose names alone are in the text
	}
	text, err := r.text(want, u, id)
	if err == nil && before != "" && object.Hash(text) == was.Result {
		return before, nil // as it was applied: the text may be another one, of what was planned
	}
	return text, err
}

func (r *set) importState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	connection, known, diags := r.settings.connection(ctx, types.ObjectNull(nil))
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !known {
		return
	}
	cluster, err := r.settings.cluster(ctx, connection, "")
	if err != nil {
		summary, detail := kubernetes.Describe(err)
		resp.Diagnostics.AddError(summary, detail)
		return
	}
	texts := map[string]string{}
	for _, name := range strings.Split(req.ID, ",") {
		k, err := object.ParseKey(strings.TrimSpace(name))
		if err != nil {
			resp.Diagnostics.AddError("Invalid import id", sentence(err))
			return
		}
		u, err := cluster.Get(ctx, k)
		if err != nil {
			resp.Diagnostics.AddError("Object cannot be read", sentence(err))
			return
		}
		if u == nil {
			resp.Diagnostics.AddError("No such object", fmt.Sprintf("There is no %s in the cluster %s.", k.Title(), cluster.Name))
			return
		}
		text, err := object.Text(map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": map[string]any{"name": u.GetName()}}, "")
		if err != nil {
			resp.Diagnostics.AddError("Object cannot be written", sentence(err))
			return
		}
		texts[object.KeyOf(u).String()] = text
	}
	value, diags := objectsValue(texts)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, objectsAt, value)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("cluster_id"), cluster.ID)...)
}
