package kube

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers/connect"
)

// kind is one resource type: its own attributes, and the objects that they
// describe.
type kind struct {
	name        string // without "kube_"
	description string
	attributes  func() map[string]schema.Attribute
	// render makes the objects of a configuration. known is false while it
	// depends on something that is not known yet.
	render func(ctx context.Context, config tfsdk.Config) (objects []*unstructured.Unstructured, known bool, diags diag.Diagnostics)
	// at is the attribute that diagnostics about objects are shown at; or is an
	// alternative attribute.
	at, or path.Path
	// waits is set for a resource with the arguments wait, wait_for_jobs, prune_data
	// and assume_nodes.
	waits bool
	// retains: the resource has the argument delete_data, without which the
	// volumes of its claims outlive them.
	retains bool
	// of is the kind of the one object that the resource has; empty for a set of
	// any kinds.
	of gvk.GroupVersionKind
	// fields are the attributes that fields of the objects come from, by what the
	// fields' paths begin with; the longest counts.
	fields map[string]string
	// adopt, when not nil, tells the attributes of an imported object that are
	// replaced and not changed, by name. name and namespace need no telling.
	adopt func(u *unstructured.Unstructured) map[string]any
}

// kinds are all of them.
var kinds = []kind{manifest, namespace, configMap, secret, priorityClass, rbac, volumeClaim}

const defaultTimeout = 10 * time.Minute

// common is what every resource of the provider has.
type common struct {
	Cluster   types.Object   `tfsdk:"cluster"`
	ID        types.String   `tfsdk:"id"`
	ClusterID types.String   `tfsdk:"cluster_id"`
	Objects   types.Map      `tfsdk:"objects"`
	Force     types.Bool     `tfsdk:"force_conflicts"`
	Timeouts  timeouts.Value `tfsdk:"timeouts"`
	Wait      bool
	Jobs      bool
	Prune     bool
	Assume    bool // nodes that take the pods
	Lose      bool // volumes go with their claims
}

func (k kind) schema(ctx context.Context) schema.Schema {
	attributes := k.attributes()
	for name, a := range map[string]schema.Attribute{
		"cluster": connect.Argument(`Connection to the cluster. Left out: the one of the block provider "kube".`),
		"id": schema.StringAttribute{
			Computed: true, Description: "The value of the label stoke.dev/managed of all its objects.",
			PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
		"cluster_id": schema.StringAttribute{
			Computed: true, Description: "UID of the cluster's namespace kube-system. Objects are never looked for in another cluster.",
			PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
		"objects": schema.MapAttribute{
			Computed: true, ElementType: types.StringType,
			Description: `The objects by name, such as "apps/Deployment/default/web": what is declared of each, as the cluster has it, in YAML. The content of a Secret is shown as a hash.`,
		},
		"force_conflicts": schema.BoolAttribute{
			Optional: true, Description: "Whether fields are taken from other field managers that set them. Default: false; the plan names them.",
		},
	} {
		attributes[name] = a
	}
	if k.waits {
		attributes["wait"] = schema.BoolAttribute{Optional: true, Description: "Whether apply waits until all objects are ready. Default: true."}
		attributes["wait_for_jobs"] = schema.BoolAttribute{Optional: true, Description: "Whether a Job is ready when it has ended well, and not when it has started. Default: false."}
		attributes["prune_data"] = schema.BoolAttribute{
			Optional: true,
			Description: "Whether claims, volumes, CRDs and namespaces that are no longer declared are deleted, with " +
				"their content. Default: false; the plan refuses to.",
		}
		attributes["assume_nodes"] = schema.BoolAttribute{
			Optional: true,
			Description: "Whether nodes that take the pods are assumed, such as nodes of an autoscaler that stoke does not find. " +
				"Default: false; the plan rejects pods that no node could take.",
		}
	}
	return schema.Schema{
		Version:     1,
		Description: k.description,
		Attributes:  attributes,
		Blocks: map[string]schema.Block{"timeouts": timeouts.Block(ctx, timeouts.Opts{
			Create: true, Update: true, Delete: true,
			CreateDescription: `How long making the objects may take, until they are ready, such as "30m". Default: 10m.`,
			UpdateDescription: "The same for changes. Default: 10m.",
			DeleteDescription: "How long it may take until they are gone. Default: 10m.",
		})},
	}
}

// getter is a plan, a state or a configuration.
type getter interface {
	GetAttribute(ctx context.Context, at path.Path, target any) diag.Diagnostics
}

// common reads what every resource has.
func (k kind) common(ctx context.Context, from getter) (c common, diags diag.Diagnostics) {
	for name, to := range map[string]any{"cluster": &c.Cluster, "id": &c.ID, "cluster_id": &c.ClusterID, "objects": &c.Objects, "force_conflicts": &c.Force, "timeouts": &c.Timeouts} {
		diags.Append(from.GetAttribute(ctx, path.Root(name), to)...)
	}
	c.Wait = true
	if k.waits {
		var wait, jobs, prune, assume types.Bool
		diags.Append(from.GetAttribute(ctx, path.Root("wait"), &wait)...)
		diags.Append(from.GetAttribute(ctx, path.Root("wait_for_jobs"), &jobs)...)
		diags.Append(from.GetAttribute(ctx, path.Root("prune_data"), &prune)...)
		diags.Append(from.GetAttribute(ctx, path.Root("assume_nodes"), &assume)...)
		c.Wait = wait.IsNull() || wait.ValueBool()
		c.Jobs, c.Prune, c.Assume = jobs.ValueBool(), prune.ValueBool(), assume.ValueBool()
	}
	if c.Lose = true; k.retains {
		var lose types.Bool
		diags.Append(from.GetAttribute(ctx, path.Root("delete_data"), &lose)...)
		c.Lose = lose.ValueBool()
	}
	return c, diags
}

// texts are the objects of a plan or state; unknown ones are "".
func (c common) texts() map[string]string {
	out := make(map[string]string, len(c.Objects.Elements()))
	for name, v := range c.Objects.Elements() {
		if s, ok := v.(types.String); ok {
			out[name] = s.ValueString()
		}
	}
	return out
}
