package kube

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	framework "github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// set is a resource of some kind: a set of objects.
type set struct {
	kind     kind
	settings *settings
	from     sourcePlace // where the objects are declared, for diagnostics
}

var (
	_ resource.ResourceWithConfigure      = &set{}
	_ resource.ResourceWithModifyPlan     = &set{}
	_ resource.ResourceWithImportState    = &set{}
	_ resource.ResourceWithValidateConfig = &set{}
	_ resource.ResourceWithUpgradeState   = &set{}
)

func (r *set) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "kube_" + r.kind.name
}

func (r *set) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = r.kind.schema(ctx)
}

func (r *set) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if s, ok := req.ProviderData.(*settings); ok {
		r.settings = s
	}
}

// UpgradeState reads states whose keys of objects had the version in them.
func (r *set) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	return map[int64]resource.StateUpgrader{0: {StateUpgrader: func(_ context.Context, req resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse) {
		var state map[string]any
		err := json.Unmarshal(req.RawState.JSON, &state)
		if objects, ok := state["objects"].(map[string]any); ok {
			now := make(map[string]any, len(objects))
			for name, text := range objects {
				now[current(name)] = text
			}
			state["objects"] = now
		}
		var text []byte
		if err == nil {
			text, err = json.Marshal(state)
		}
		if err != nil {
			resp.Diagnostics.AddError("State cannot be read", sentence(err))
			return
		}
		resp.DynamicValue = &tfprotov6.DynamicValue{JSON: text}
	}}}
}

// showing is the resource as diagnostics about one of its configurations are
// shown: at the attribute that the objects come from.
func (r *set) showing(ctx context.Context, config tfsdk.Config) *set {
	out := *r
	out.from = r.kind.readSource(ctx, config)
	var v framework.String
	if len(r.kind.or.Steps()) > 0 && !config.GetAttribute(ctx, r.kind.or, &v).HasError() && !v.IsNull() {
		out.kind.at = r.kind.or
	}
	return &out
}

// ValidateConfig checks what needs no cluster.
func (r *set) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	objects, known, diags := r.kind.render(ctx, req.Config)
	resp.Diagnostics.Append(diags...)
	if known && !diags.HasError() {
		resp.Diagnostics.Append(r.showing(ctx, req.Config).checkDuplicates(objects)...)
	}
}

// checkDuplicates looks for objects that are declared twice.
func (r *set) checkDuplicates(objects []*unstructured.Unstructured) (diags diag.Diagnostics) {
	seen := make(map[string]bool, len(objects))
	for _, u := range objects {
		k := object.KeyOf(u)
		if seen[k.String()] {
			diags.AddAttributeError(r.kind.at, "Object declared twice", k.Title()+" is there twice.")
		}
		seen[k.String()] = true
	}
	return diags
}

// rendered are the objects of a configuration without what only an API server
// writes. known is false while they depend on something that is not known yet.
func (r *set) rendered(ctx context.Context, config tfsdk.Config) (objects []*unstructured.Unstructured, known bool, diags diag.Diagnostics) {
	objects, known, diags = r.kind.render(ctx, config)
	if !known || diags.HasError() {
		return nil, known, diags
	}
	for _, u := range objects {
		object.Clean(u)
	}
	return objects, true, diags
}

// desiredSet are the objects of a configuration, by the text of their keys.
type desiredSet struct {
	objects []*unstructured.Unstructured
	keys    []string // in the same order
	unsure  bool     // whether some kind has namespaces is not known yet, and so what some keys are
}

// want puts rendered objects, which it changes, where they belong in a cluster:
// kinds without namespaces lose theirs, the others get one. Scopes of kinds
// that the cluster does not know yet come from CRDs in the same configuration.
func (r *set) want(objects []*unstructured.Unstructured, c *live.Cluster) (w desiredSet, diags diag.Diagnostics) {
	scopes := map[string]bool{}
	for _, u := range objects {
		define(u, scopes)
	}
	for _, u := range objects {
		_, namespaced, err := c.Mapping(u.GroupVersionKind())
		known := err == nil
		if isNoKind(err) {
			namespaced, known = scopes[kindName(u)]
			if !known {
				namespaced, known = r.settings.doubts.scope(kindName(u))
			}
			err = nil
		}
		switch {
		case err != nil:
			diags.AddAttributeError(clusterAt, "Kinds of the cluster cannot be read", sentence(err))
			return w, diags
		case !known:
			w.unsure = true
		case !namespaced:
			u.SetNamespace("")
		case u.GetNamespace() == "":
			u.SetNamespace("default")
		}
		w.objects = append(w.objects, u)
		w.keys = append(w.keys, object.KeyOf(u).String())
	}
	diags.Append(r.checkDuplicates(objects)...)
	return w, diags
}

// mark labels the objects as objects of the resource.
func (w desiredSet) mark(id string) {
	for _, u := range w.objects {
		labels := u.GetLabels()
		if labels == nil {
			labels = make(map[string]string, 1)
		}
		labels[live.Mark] = id
		u.SetLabels(labels)
	}
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

// objectsValue is the attribute objects. A text "" is not known.
func objectsValue(texts map[string]string) (framework.Map, diag.Diagnostics) {
	return framework.MapValueFrom(context.Background(), framework.StringType, textValues(texts))
}

func textValues(texts map[string]string) map[string]framework.String {
	out := make(map[string]framework.String, len(texts))
	for k, v := range texts {
		if out[k] = framework.StringValue(v); v == "" {
			out[k] = framework.StringUnknown()
		}
	}
	return out
}

var objectsAt = path.Root("objects")
