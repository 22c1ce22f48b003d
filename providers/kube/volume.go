package kube

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// volumeClaim is a claim of a volume: of a storage class, of an existing
// volume, or of one that is made for it from a disk, a share or a folder.
var volumeClaim = kind{
	name: "volume_claim", at: path.Root("name"), retains: true, of: gvk.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"},
	fields:      map[string]string{"spec.resources": "size", "spec.capacity": "size", "spec.accessModes": "access_modes", "spec.storageClassName": "storage_class", "spec.volumeName": "volume_name", "spec.": "volume"},
	description: "A claim of a volume, and the volume where it is a given disk, share or folder. Destroying it leaves the data, unless delete_data says otherwise.",
	attributes: func() map[string]schema.Attribute {
		// An argument that an import does not know and the first plan adds replaces
		// nothing.
		const why = "Another one replaces the claim."
		replace := []planmodifier.String{stringplanmodifier.RequiresReplaceIf(func(_ context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
			resp.RequiresReplace = !req.StateValue.IsNull()
		}, why, why)}
		text := func(description string) schema.StringAttribute {
			return schema.StringAttribute{Required: true, Description: description}
		}
		a := metadata(true)
		a["size"] = schema.StringAttribute{Required: true, Description: `How much it holds, such as "100Gi". It can grow where the class allows that.`}
		a["access_modes"] = schema.ListAttribute{
			Optional: true, ElementType: types.StringType, PlanModifiers: []planmodifier.List{listplanmodifier.RequiresReplaceIf(func(_ context.Context, req planmodifier.ListRequest, resp *listplanmodifier.RequiresReplaceIfFuncResponse) {
				resp.RequiresReplace = !req.StateValue.IsNull()
			}, why, why)},
			Description: "Its users at a time: ReadWriteOnce (the pods of one node), ReadWriteOncePod, ReadWriteMany, " +
				"ReadOnlyMany. Default: ReadWriteOnce, of NFS ReadWriteMany.",
		}
		a["storage_class"] = schema.StringAttribute{Optional: true, Description: "Class that makes the volume. Default: the cluster's default class.", PlanModifiers: replace}
		a["volume_name"] = schema.StringAttribute{
			Optional: true, PlanModifiers: replace,
			Description: "An existing volume, such as a leftover of an earlier claim. Its data stay.",
		}
		a["delete_data"] = schema.BoolAttribute{Optional: true, Description: "Whether destroying the claim lets its class delete the volume with all data. Default: false: the volume is set to Retain first."}
		a["volume"] = schema.SingleNestedAttribute{
			Optional: true, PlanModifiers: []planmodifier.Object{objectplanmodifier.RequiresReplaceIf(func(_ context.Context, req planmodifier.ObjectRequest, resp *objectplanmodifier.RequiresReplaceIfFuncResponse) {
				resp.RequiresReplace = !req.StateValue.IsNull()
			}, why, why)},
			Description: "The kind of the volume, if no class makes it: exactly one of these. A PersistentVolume is made for it, called NAMESPACE-NAME; its data are never deleted.",
			Attributes: map[string]schema.Attribute{
				"nfs": schema.SingleNestedAttribute{Optional: true, Description: "A share of an NFS server, such as Filestore.", Attributes: map[string]schema.Attribute{
					"server": text("Address of the server, as the nodes reach it."), "path": text("The exported path, such as /data."),
				}},
				"host_path": schema.SingleNestedAttribute{Optional: true, Description: "A folder on a node.", Attributes: map[string]schema.Attribute{
					"path": text("The folder; it is made where it is missing."),
					"node": text("Name of the node. Pods with this claim run there."),
				}},
				"gce_disk": schema.SingleNestedAttribute{Optional: true, Description: "A Compute Engine persistent disk.", Attributes: map[string]schema.Attribute{
					"disk":    text("The disk: projects/PROJECT/zones/ZONE/disks/NAME, or projects/PROJECT/regions/REGION/disks/NAME."),
					"fs_type": schema.StringAttribute{Optional: true, Description: "Its file system. Default: ext4."},
				}},
			},
		}
		return a
	},
	render: renderVolumeClaim,
}

func renderVolumeClaim(ctx context.Context, config tfsdk.Config) ([]*unstructured.Unstructured, bool, diag.Diagnostics) {
	claim, known, diags := head(ctx, config, "v1", "PersistentVolumeClaim", true)
	r := &reader{ctx: ctx, config: config, known: known}
	size, class, name := r.text("size"), r.text("storage_class"), r.text("volume_name")
	modes, lose := r.list("access_modes"), r.flag("delete_data", false)
	var noClass types.String
	r.diags.Append(config.GetAttribute(ctx, path.Root("storage_class"), &noClass)...)
	source, ofClass, affinity, defaultMode := volumeSource(r)
	diags.Append(r.diags...)
	if claim == nil || !r.known || diags.HasError() {
		return nil, r.known, diags
	}
	if q, err := resource.ParseQuantity(size); err != nil || q.Sign() <= 0 {
		diags.AddAttributeError(path.Root("size"), "Invalid size", fmt.Sprintf(`%q is none. Write a number with a unit, such as "100Gi".`, size))
	}
	if source != nil && (name != "" || !noClass.IsNull()) {
		diags.AddAttributeError(path.Root("volume"), "More than one source of the volume", "Give one of volume, volume_name and storage_class.")
	}
	if len(modes) == 0 {
		modes = []string{defaultMode}
	}
	if diags.HasError() {
		return nil, true, diags
	}
	if !lose {
		annotations := claim.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[live.Keep] = "true"
		claim.SetAnnotations(annotations)
	}
	all := one(claim)
	spec := map[string]any{
		"accessModes": anyList(modes),
		"resources":   map[string]any{"requests": map[string]any{"storage": size}},
	}
	claim.Object["spec"] = spec
	switch {
	case source != nil:
		v := staticVolume(claim, size, modes, map[string]any{ofClass: source}, affinity)
		spec["volumeName"], spec["storageClassName"] = v.GetName(), ""
		all = append(one(v), claim)
	case name != "":
		spec["volumeName"] = name
		if spec["storageClassName"] = class; noClass.IsNull() {
			delete(spec, "storageClassName")
		}
	case !noClass.IsNull():
		spec["storageClassName"] = class
	}
	return all, true, diags
}

// staticVolume is the volume of a claim that no class makes.
func staticVolume(claim *unstructured.Unstructured, size string, modes []string, source, affinity map[string]any) *unstructured.Unstructured {
	ns := claim.GetNamespace()
	if ns == "" {
		ns = "default"
	}
	spec := map[string]any{
		"capacity":                      map[string]any{"storage": size},
		"accessModes":                   anyList(modes),
		"persistentVolumeReclaimPolicy": "Retain",
		"claimRef":                      map[string]any{"namespace": ns, "name": claim.GetName()},
	}
	maps.Copy(spec, source)
	if affinity != nil {
		spec["nodeAffinity"] = affinity
	}
	v := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	v.SetAPIVersion("v1")
	v.SetKind("PersistentVolume")
	v.SetName(ns + "-" + claim.GetName())
	return v
}

// volumeSource reads what the volume is: nil where it is not said.
func volumeSource(r *reader) (source map[string]any, of string, affinity map[string]any, mode string) {
	mode = "ReadWriteOnce"
	at := path.Root("volume")
	var v types.Object
	if r.diags.Append(r.config.GetAttribute(r.ctx, at, &v)...); v.IsNull() || v.IsUnknown() {
		r.known = r.known && !v.IsUnknown()
		return nil, "", nil, mode
	}
	var given []string
	for _, name := range []string{"nfs", "host_path", "gce_disk"} {
		var o types.Object
		r.diags.Append(r.config.GetAttribute(r.ctx, at.AtName(name), &o)...)
		if r.known = r.known && !o.IsUnknown(); !o.IsNull() {
			given = append(given, name)
		}
	}
	if len(given) != 1 {
		if r.known {
			r.diags.AddAttributeError(at, "Not one source of the volume", "Give exactly one of nfs, host_path and gce_disk.")
		}
		return nil, "", nil, mode
	}
	at = at.AtName(given[0])
	switch given[0] {
	case "nfs":
		return map[string]any{"server": r.textAt(at.AtName("server")), "path": r.textAt(at.AtName("path"))}, "nfs", nil, "ReadWriteMany"
	case "host_path":
		return map[string]any{"path": r.textAt(at.AtName("path")), "type": "DirectoryOrCreate"}, "hostPath",
			onNodes("kubernetes.io/hostname", r.textAt(at.AtName("node"))), mode
	}
	disk, fs := strings.TrimPrefix(r.textAt(at.AtName("disk")), "https://www.googleapis.com/compute/v1/"), r.textAt(at.AtName("fs_type"))
	parts := strings.Split(disk, "/")
	if r.known && (len(parts) != 6 || parts[0] != "projects" || parts[2] != "zones" && parts[2] != "regions" || parts[4] != "disks") {
		r.diags.AddAttributeError(at.AtName("disk"), "Invalid disk", fmt.Sprintf("%q is none. Write projects/PROJECT/zones/ZONE/disks/NAME, or regions/REGION in place of zones/ZONE.", disk))
		return nil, "", nil, mode
	}
	if fs == "" {
		fs = "ext4"
	}
	if r.known && parts[2] == "zones" {
		affinity = onNodes("topology.gke.io/zone", parts[3])
	}
	return map[string]any{"driver": "pd.csi.storage.gke.io", "volumeHandle": disk, "fsType": fs}, "csi", affinity, mode
}

// onNodes is a volume's affinity to nodes with a label.
func onNodes(label, value string) map[string]any {
	return map[string]any{"required": map[string]any{"nodeSelectorTerms": []any{map[string]any{
		"matchExpressions": []any{map[string]any{"key": label, "operator": "In", "values": []any{value}}},
	}}}}
}

func (r *reader) textAt(at path.Path) string {
	var v types.String
	r.diags.Append(r.config.GetAttribute(r.ctx, at, &v)...)
	r.known = r.known && !v.IsUnknown()
	return v.ValueString()
}

func anyList(all []string) []any {
	out := make([]any, len(all))
	for i, s := range all {
		out[i] = s
	}
	return out
}

// wantsVolume is the volume that a claim names which the resource does not make
// itself; "" where there is none.
func (r *set) wantsVolume(claim *unstructured.Unstructured, makes func(name string) bool) string {
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName")
	if own := (object.Key{GroupVersionKind: live.Volume, Name: name}).String(); !r.kind.retains || claim.GetKind() != "PersistentVolumeClaim" || makes(own) {
		return ""
	}
	return name
}
