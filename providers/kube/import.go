package kube

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// ImportState takes objects over by their names, parted by commas; a resource
// of one kind may leave the kind out. Until the first apply the resource has no
// id, and the objects are known by their UIDs.
func (r *set) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	keys, err := r.importKeys(req.ID)
	if err != nil {
		resp.Diagnostics.AddError("Invalid import id", sentence(err))
		return
	}
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
	texts, was := map[string]string{}, memory{objects: map[string]applied{}}
	for _, k := range keys {
		u, text, summary, detail := importOne(ctx, cluster, k)
		if summary != "" {
			resp.Diagnostics.AddError(summary, detail)
			return
		}
		name := object.KeyOf(u).String()
		texts[name] = text
		was.objects[name] = applied{UID: u.GetUID(), Mark: u.GetLabels()[live.Mark]}
		if !r.kind.of.Empty() {
			r.adopt(ctx, u, resp)
		}
	}
	value, diags := objectsValue(texts)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, objectsAt, value)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("cluster_id"), cluster.ID)...)
	resp.Diagnostics.Append(was.write(ctx, resp.Private)...)
}

// importKeys reads the id of an import.
func (r *set) importKeys(id string) (keys []object.Key, err error) {
	of := r.kind.of
	for _, name := range strings.Split(id, ",") {
		name = strings.TrimSpace(name)
		k, err := object.ParseKey(name)
		if !of.Empty() && (err != nil || k.GroupKind() != of.GroupKind()) {
			switch parts := strings.Split(name, "/"); {
			case len(parts) == 1 && name != "":
				k, err = object.Key{GroupVersionKind: of, Name: name}, nil
			case len(parts) == 2 && parts[0] != "" && parts[1] != "" && k.Group == "" && !isKind(parts[0]):
				k, err = object.Key{GroupVersionKind: of, Namespace: parts[0], Name: parts[1]}, nil
			default:
				return nil, fmt.Errorf("%q is not a %s: want NAME or NAMESPACE/NAME", name, of.Kind)
			}
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	if !of.Empty() && len(keys) != 1 {
		return nil, fmt.Errorf("%q names %d objects, and the resource has one", id, len(keys))
	}
	return keys, nil
}

// isKind reports whether s is the name of a kind, not of a namespace.
func isKind(s string) bool { return s[0] >= 'A' && s[0] <= 'Z' }

// importOne reads an object; summary and detail describe the error.
func importOne(ctx context.Context, cluster *live.Cluster, k object.Key) (u *unstructured.Unstructured, text, summary, detail string) {
	_, namespaced, err := cluster.Mapping(k.GroupVersionKind)
	switch {
	case isNoKind(err):
		return nil, "", "Unknown kind", fmt.Sprintf("%s.%s", err, cluster.SuggestKinds(k.Kind))
	case err != nil:
		return nil, "", "Kinds of the cluster cannot be read", sentence(err)
	case namespaced && k.Namespace == "":
		k.Namespace = "default"
	case !namespaced && k.Namespace != "":
		return nil, "", "Invalid import id", fmt.Sprintf("A %s is not in a namespace: leave %s/ out.", k.Kind, k.Namespace)
	}
	u, err = cluster.Get(ctx, k)
	if err != nil {
		return nil, "", "Object cannot be read", sentence(err)
	}
	if u == nil {
		return nil, "", "No such object", fmt.Sprintf("%s does not exist in the cluster %s.", k.Title(), cluster.Name)
	}
	if text, err = object.Text(headOf(u).Object, ""); err != nil {
		return nil, "", "Object cannot be written", sentence(err)
	}
	return u, text, "", ""
}

// adopt sets the attributes that are replaced and not changed, so that the first
// plan does not take the object for another one.
func (r *set) adopt(ctx context.Context, u *unstructured.Unstructured, resp *resource.ImportStateResponse) {
	values := map[string]any{"name": u.GetName()}
	if u.GetNamespace() != "" {
		values["namespace"] = u.GetNamespace()
	}
	if r.kind.adopt != nil {
		for name, v := range r.kind.adopt(u) {
			values[name] = v
		}
	}
	for name, v := range values {
		if v != nil {
			resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), v)...)
		}
	}
}
