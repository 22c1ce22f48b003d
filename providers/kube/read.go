package kube

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// Read looks what has become of the objects. A cluster that cannot be reached
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
	was, diags := readMemory(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	texts, strayed := map[string]string{}, false
	for name, before := range state.texts() {
		u, text, err := r.look(ctx, cluster, name, before, id, was.objects[name])
		if live.WebhookDown(err) && !call.Settling {
			resp.Diagnostics.AddAttributeWarning(objectsAt.AtMapKey(name), "Object cannot be read",
				sentence(err)+" The object is taken to be as the state has it.")
			texts[name] = before
			continue
		}
		if err != nil {
			resp.Diagnostics.AddAttributeError(objectsAt.AtMapKey(name), "Object cannot be read", sentence(err))
			return
		}
		if u == nil {
			continue
		}
		texts[name] = text
		if a := was.objects[name]; a.Declared != "" && (u.GetLabels()[live.Mark] != id || u.GetDeletionTimestamp() != nil) {
			a.Declared, strayed = "", true // the text does not tell, and the next apply has to see to it
			was.objects[name] = a
		}
	}
	if strayed {
		resp.Diagnostics.Append(was.write(ctx, resp.Private)...)
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

// look reads an object and its text; nil without an object of ours.
func (r *set) look(ctx context.Context, cluster *live.Cluster, name, before, id string, was applied) (*unstructured.Unstructured, string, error) {
	k, err := object.ParseKey(name)
	if err != nil {
		return nil, "", err
	}
	want, err := object.FromText(before)
	if err == nil && before != "" {
		k.Version = want.GroupVersionKind().Version
	}
	u, lookErr := cluster.Marked(ctx, k, id)
	if lookErr == nil && u == nil {
		u, lookErr = cluster.Get(ctx, k) // the mark may have been removed
	}
	if u != nil && id == "" && was.UID == "" {
		was.UID = u.GetUID() // imported by a version that kept no record
	}
	if lookErr != nil || u == nil || !was.ours(u, id) {
		return nil, "", lookErr
	}
	if err != nil || before == "" {
		want = headOf(u)
	}
	if _, _, err := leaveToScaler(ctx, cluster, want, u); err != nil {
		return nil, "", err
	}
	text, err := r.text(live.WithForeign(want, u), u, id)
	return u, text, err
}

// headOf is of an object what every manifest of it says.
func headOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": map[string]any{"name": u.GetName()},
	}}
}
