package kube

import (
	"context"
	"encoding/base64"
	"maps"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
)

// namespace, configMap, secret and priorityClass are single objects whose
// fields are attributes.
var (
	namespace = kind{
		name: "namespace", of: gvk.GroupVersionKind{Version: "v1", Kind: "Namespace"}, description: "A namespace. Destroying it deletes everything in it.", at: path.Root("name"),
		attributes: func() map[string]schema.Attribute { return metadata(false) },
		render: func(ctx context.Context, config tfsdk.Config) ([]*unstructured.Unstructured, bool, diag.Diagnostics) {
			u, known, diags := head(ctx, config, "v1", "Namespace", false)
			return one(u), known, diags
		},
	}
	configMap = kind{
		name: "config_map", fields: map[string]string{"data": "data", "binaryData": "binary_data"}, of: gvk.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, description: "A ConfigMap.", at: path.Root("name"),
		attributes: func() map[string]schema.Attribute {
			a := metadata(true)
			a["data"] = schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: "Texts by key."}
			a["binary_data"] = schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: "Bytes by key, in base64, such as filebase64(…) gives."}
			a["immutable"] = immutable()
			return a
		},
		render: renderConfigMap,
	}
	secret = kind{
		name: "secret", fields: map[string]string{"data": "data", "type": "type"}, of: gvk.GroupVersionKind{Version: "v1", Kind: "Secret"}, description: "A Secret. " +
			"Its content is write-only: it is neither in the plan nor in the state, which have a hash of it.", at: path.Root("name"),
		attributes: func() map[string]schema.Attribute {
			a := metadata(true)
			a["type"] = schema.StringAttribute{Optional: true, Description: "Its type. Default: Opaque.", PlanModifiers: replacedFrom("Opaque")}
			a["data"] = schema.MapAttribute{Optional: true, WriteOnly: true, ElementType: types.StringType, Description: "Values by key, as they are. Never stored."}
			a["immutable"] = immutable()
			return a
		},
		render: renderSecret,
		adopt: func(u *unstructured.Unstructured) map[string]any {
			return map[string]any{"type": u.Object["type"], "immutable": u.Object["immutable"]}
		},
	}
	priorityClass = kind{
		name: "priority_class", fields: map[string]string{"value": "value", "preemptionPolicy": "preemption_policy"}, of: gvk.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}, description: "A priority of pods.", at: path.Root("name"),
		attributes: func() map[string]schema.Attribute {
			a := metadata(false)
			a["value"] = schema.Int64Attribute{Required: true, Description: "The priority: pods of a higher one come first. At most 1000000000.", PlanModifiers: []planmodifier.Int64{int64planmodifier.RequiresReplace()}}
			a["preemption_policy"] = schema.StringAttribute{Optional: true, Description: "Never, or PreemptLowerPriority, which is the default.", PlanModifiers: replacedFrom("PreemptLowerPriority")}
			a["global_default"] = schema.BoolAttribute{Optional: true, Description: "Whether pods that name no class have it. Default: false."}
			a["description"] = schema.StringAttribute{Optional: true, Description: "Its purpose, for readers."}
			return a
		},
		render: renderPriorityClass,
		adopt: func(u *unstructured.Unstructured) map[string]any {
			return map[string]any{"value": u.Object["value"], "preemption_policy": u.Object["preemptionPolicy"]}
		},
	}
)

func immutable() schema.Attribute {
	return schema.BoolAttribute{
		Optional: true, Description: "Whether it can only be replaced, and not be changed. Default: false.",
	}
}

// metadata are the attributes of an object's metadata.
func metadata(namespaced bool) map[string]schema.Attribute {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	a := map[string]schema.Attribute{
		"name":        schema.StringAttribute{Required: true, Description: "Its name.", PlanModifiers: replace},
		"labels":      schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: "Labels. Others' are left alone."},
		"annotations": schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: "Annotations. Others' are left alone."},
	}
	if namespaced {
		a["namespace"] = schema.StringAttribute{Optional: true, Description: "Its namespace. Default: default.", PlanModifiers: replacedFrom("default")}
	}
	return a
}

// replacedFrom makes a change of an attribute, whose default is left to the API
// server, a replacement.
func replacedFrom(standard string) []planmodifier.String {
	text := func(v types.String) string {
		if v.IsNull() {
			return standard
		}
		return v.ValueString()
	}
	return []planmodifier.String{stringplanmodifier.RequiresReplaceIf(func(_ context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
		resp.RequiresReplace = req.PlanValue.IsUnknown() || text(req.PlanValue) != text(req.StateValue)
	}, "Another value makes another object.", "Another value makes another object.")}
}

func one(u *unstructured.Unstructured) []*unstructured.Unstructured {
	if u == nil {
		return nil
	}
	return []*unstructured.Unstructured{u}
}

// head makes an object with its metadata; nil while something of that is not
// known.
func head(ctx context.Context, config tfsdk.Config, version, kind string, namespaced bool) (*unstructured.Unstructured, bool, diag.Diagnostics) {
	r := reader{ctx: ctx, config: config, known: true}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetName(r.text("name"))
	if namespaced {
		u.SetNamespace(r.text("namespace"))
	}
	if m := r.texts("labels"); len(m) > 0 {
		u.SetLabels(m)
	}
	if m := r.texts("annotations"); len(m) > 0 {
		u.SetAnnotations(m)
	}
	if !r.known || r.diags.HasError() {
		return nil, r.known, r.diags
	}
	return u, true, r.diags
}

// reader reads attributes of a configuration.
type reader struct {
	ctx    context.Context
	config tfsdk.Config
	known  bool // all that was read
	diags  diag.Diagnostics
}

func (r *reader) text(name string) string { return r.textAt(path.Root(name)) }

// flag returns a boolean argument, or otherwise where the argument is absent.
func (r *reader) flag(name string, otherwise bool) bool {
	var v types.Bool
	r.diags.Append(r.config.GetAttribute(r.ctx, path.Root(name), &v)...)
	r.known = r.known && !v.IsUnknown()
	if v.IsNull() {
		return otherwise
	}
	return v.ValueBool()
}

func (r *reader) number(name string) int64 {
	var v types.Int64
	r.diags.Append(r.config.GetAttribute(r.ctx, path.Root(name), &v)...)
	r.known = r.known && !v.IsUnknown()
	return v.ValueInt64()
}

func (r *reader) texts(name string) map[string]string {
	var v types.Map
	r.diags.Append(r.config.GetAttribute(r.ctx, path.Root(name), &v)...)
	if v.IsNull() {
		return nil
	}
	if v.IsUnknown() {
		r.known = false
		return nil
	}
	out := make(map[string]string, len(v.Elements()))
	for key, e := range v.Elements() {
		s, ok := e.(types.String)
		switch {
		case !ok || s.IsUnknown():
			r.known = false
		case s.IsNull():
			r.diags.AddAttributeError(path.Root(name).AtMapKey(key), "Value missing", "Remove the key, or give it a value.")
		default:
			out[key] = s.ValueString()
		}
	}
	return out
}

// body makes one object: fields adds to what its metadata say.
func body(ctx context.Context, config tfsdk.Config, version, kind string, namespaced bool, fields func(*reader, map[string]any)) ([]*unstructured.Unstructured, bool, diag.Diagnostics) {
	u, known, diags := head(ctx, config, version, kind, namespaced)
	r := reader{ctx: ctx, config: config, known: known}
	content := map[string]any{}
	fields(&r, content)
	diags.Append(r.diags...)
	if u == nil || !r.known || diags.HasError() {
		return nil, r.known, diags
	}
	maps.Copy(u.Object, content)
	return one(u), true, diags
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func renderConfigMap(ctx context.Context, config tfsdk.Config) ([]*unstructured.Unstructured, bool, diag.Diagnostics) {
	return body(ctx, config, "v1", "ConfigMap", true, func(r *reader, o map[string]any) {
		if m := r.texts("data"); m != nil {
			o["data"] = anyMap(m)
			for k, v := range m {
				if !utf8.ValidString(v) {
					r.diags.AddAttributeError(path.Root("data").AtMapKey(k), "Not a text", "Give bytes in binary_data, in base64.")
				}
			}
		}
		if m := r.texts("binary_data"); m != nil {
			for k, v := range m {
				if _, err := base64.StdEncoding.DecodeString(v); err != nil {
					r.diags.AddAttributeError(path.Root("binary_data").AtMapKey(k), "Not base64", "Give the bytes in base64, such as filebase64(…) does.")
				}
			}
			o["binaryData"] = anyMap(m)
		}
		if r.flag("immutable", false) {
			o["immutable"] = true
		}
	})
}

func renderSecret(ctx context.Context, config tfsdk.Config) ([]*unstructured.Unstructured, bool, diag.Diagnostics) {
	return body(ctx, config, "v1", "Secret", true, func(r *reader, o map[string]any) {
		o["type"] = "Opaque"
		if t := r.text("type"); t != "" {
			o["type"] = t
		}
		data := map[string]any{}
		for k, v := range r.texts("data") {
			data[k] = base64.StdEncoding.EncodeToString([]byte(v))
		}
		o["data"] = data
		if r.flag("immutable", false) {
			o["immutable"] = true
		}
	})
}

func renderPriorityClass(ctx context.Context, config tfsdk.Config) ([]*unstructured.Unstructured, bool, diag.Diagnostics) {
	return body(ctx, config, "scheduling.k8s.io/v1", "PriorityClass", false, func(r *reader, o map[string]any) {
		o["value"] = r.number("value")
		if v := o["value"].(int64); v > 1_000_000_000 || v < -2_147_483_648 {
			r.diags.AddAttributeError(path.Root("value"), "Priority out of range", "Give a number from -2147483648 to 1000000000; higher numbers are reserved for the system.")
		}
		if p := r.text("preemption_policy"); p != "" {
			if p != "Never" && p != "PreemptLowerPriority" {
				r.diags.AddAttributeError(path.Root("preemption_policy"), "Unknown policy", "Give Never or PreemptLowerPriority.")
			}
			o["preemptionPolicy"] = p
		}
		if r.flag("global_default", false) {
			o["globalDefault"] = true
		}
		if d := r.text("description"); d != "" {
			o["description"] = d
		}
	})
}
