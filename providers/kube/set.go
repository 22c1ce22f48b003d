package kube

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// set is a resource of some kind: a set of objects.
type set struct {
	kind     kind
	settings *settings
}

var (
	_ resource.ResourceWithConfigure      = &set{}
	_ resource.ResourceWithModifyPlan     = &set{}
	_ resource.ResourceWithImportState    = &set{}
	_ resource.ResourceWithValidateConfig = &set{}
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

// ValidateConfig checks what needs no cluster.
func (r *set) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	objects, known, diags := r.kind.render(ctx, req.Config)
	resp.Diagnostics.Append(diags...)
	if known && !diags.HasError() {
		resp.Diagnostics.Append(r.twice(objects)...)
	}
}

// twice looks for objects that are declared twice.
func (r *set) twice(objects []*unstructured.Unstructured) (diags diag.Diagnostics) {
	seen := make(map[object.Key]bool, len(objects))
	for _, u := range objects {
		k := object.KeyOf(u)
		if seen[k] {
			diags.AddAttributeError(r.kind.at, "Object declared twice", k.Title()+" is there twice.")
		}
		seen[k] = true
	}
	return diags
}

// wanted are the objects of a configuration, by the text of their keys.
type wanted struct {
	objects []*unstructured.Unstructured
	keys    []string // in the same order
}

// want renders the objects for a cluster: kinds without namespaces lose theirs,
// the others get one. unknown are kinds that the cluster does not know: the
// namespace of these is as it is declared.
func (r *set) want(ctx context.Context, config tfsdk.Config, c *live.Cluster) (w wanted, known bool, diags diag.Diagnostics) {
	objects, known, diags := r.kind.render(ctx, config)
	if !known || diags.HasError() {
		return w, known, diags
	}
	for _, u := range objects {
		object.Clean(u)
		_, namespaced, err := c.Mapping(u.GroupVersionKind())
		switch {
		case err != nil && !isNoKind(err):
			diags.AddAttributeError(clusterAt, "Kinds of the cluster cannot be read", sentence(err))
			return w, true, diags
		case err != nil: // a kind that is still to come
		case !namespaced:
			u.SetNamespace("")
		case u.GetNamespace() == "":
			u.SetNamespace("default")
		}
		w.objects = append(w.objects, u)
		w.keys = append(w.keys, object.KeyOf(u).String())
	}
	diags.Append(r.twice(objects)...)
	return w, true, diags
}

// mark labels the objects as the resource's.
func (w wanted) mark(id string) {
	for _, u := range w.objects {
		labels := u.GetLabels()
		if labels == nil {
			labels = make(map[string]string, 1)
		}
		labels[live.Mark] = id
		u.SetLabels(labels)
	}
}

// applied is what private data say of an object: the hash of what was declared
// when it was last applied, and of the text that came of it. While both are as
// they were there is nothing to ask the cluster.
type applied struct {
	Declared string `json:"declared"`
	Result   string `json:"result"`
}

// privates reads and writes private data.
type privates interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

func readApplied(ctx context.Context, from privates) (map[string]applied, diag.Diagnostics) {
	all := map[string]applied{}
	text, diags := from.GetKey(ctx, keep)
	if len(text) > 0 && json.Unmarshal(text, &all) != nil {
		all = map[string]applied{} // the objects are asked about, then
	}
	return all, diags
}

type keyed interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func writeApplied(ctx context.Context, to keyed, all map[string]applied) diag.Diagnostics {
	text, err := json.Marshal(all)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Private data cannot be written", sentence(err))}
	}
	return to.SetKey(ctx, keep, text)
}

// declared is the hash of what is declared of an object. The mark is not a part
// of it.
func declared(u *unstructured.Unstructured, salt string) string {
	text, err := object.Text(u.Object, salt)
	if err != nil {
		return ""
	}
	return object.Hash(text)
}

// objectsValue is the attribute objects. A text "" is not known.
func objectsValue(texts map[string]string) (types.Map, diag.Diagnostics) {
	return types.MapValueFrom(context.Background(), types.StringType, textValues(texts))
}

func textValues(texts map[string]string) map[string]types.String {
	out := make(map[string]types.String, len(texts))
	for k, v := range texts {
		if out[k] = types.StringValue(v); v == "" {
			out[k] = types.StringUnknown()
		}
	}
	return out
}

// ImportState takes objects over by their names, parted by commas.
func (r *set) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	r.importState(ctx, req, resp)
}

var objectsAt = path.Root("objects")
