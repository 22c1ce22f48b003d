package metal

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/member"
)

// nodeRecord is the kind of metal_node's record on the machine, and the owner of
// its packages.
const nodeRecord = "node"

// nodeResource is metal_node: a machine as a member of a cluster.
type nodeResource struct {
	life[nodeModel, *nodeModel]
}

// nodeModel is metal_node's value.
type nodeModel struct {
	onMachine
	Cluster        types.Object        `tfsdk:"cluster"`
	NodeName       types.String        `tfsdk:"node_name"`
	PrivateAddress types.String        `tfsdk:"private_address"`
	Labels         types.Map           `tfsdk:"labels"`
	Taints         types.List          `tfsdk:"taints"`
	GPUTaint       types.Bool          `tfsdk:"gpu_taint"`
	GPUs           types.Int64         `tfsdk:"gpus"`
	GPUResources   types.Map           `tfsdk:"gpu_resources"`
	MaxPods        types.Int64         `tfsdk:"max_pods"`
	ResolvConf     types.String        `tfsdk:"resolv_conf"`
	Ignore         types.List          `tfsdk:"ignore_preflight_errors"`
	Verify         types.Bool          `tfsdk:"verify"`
	VerifyImage    types.String        `tfsdk:"verify_image"`
	OutOfService   types.Bool          `tfsdk:"out_of_service"`
	Repository     *gpuRepositoryModel `tfsdk:"repository"`
	Drift          types.Map           `tfsdk:"drift"`
	Name           types.String        `tfsdk:"name"`
	Capacity       types.Object        `tfsdk:"capacity"`
	Timeouts       timeouts.Value      `tfsdk:"timeouts"`
	disruptionModel
}

// nodeTaintModel is a taint.
type nodeTaintModel struct {
	Key    types.String `tfsdk:"key"`
	Value  types.String `tfsdk:"value"`
	Effect types.String `tfsdk:"effect"`
}

func nodeSchema() schema.Schema {
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	described := schema.Schema{
		Description: "A machine as a node of a cluster: it joins, and is ready when pods can be given its GPUs. On the control plane's own machine, labels, taints and GPUs of the node that is there.",
		Attributes: map[string]schema.Attribute{
			"id":   schema.StringAttribute{Computed: true, PlanModifiers: keep, Description: "Identifies this owner in the record on the machine and in the mark on the node."},
			"host": connect.MachineArgument("The machine: the ssh of a metal_host."),
			"cluster": schema.SingleNestedAttribute{
				Required: true, Description: "The cluster: the join of a metal_cluster.", Attributes: joinArgument(),
			},
			"node_name": schema.StringAttribute{
				Optional: true, Description: "Name of the node. Default: the machine's host name at the time of its join. Another name makes it leave the cluster and join again.",
			},
			"private_address": schema.StringAttribute{
				Optional: true, Description: "Address that the kubelet gives for the node: the node_address of the metal_host. " +
					"By default the address of ssh.",
			},
			"labels": schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: "Labels of the node, those too that a kubelet may not give itself, such as node-role.kubernetes.io/gpu."},
			"taints": schema.ListNestedAttribute{
				Optional: true, Description: "Taints of the node.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"key":    schema.StringAttribute{Required: true, Description: "Key."},
					"value":  schema.StringAttribute{Optional: true, Description: "Value."},
					"effect": schema.StringAttribute{Required: true, Validators: []validator.String{oneOf{"NoSchedule", "PreferNoSchedule", "NoExecute"}}, Description: "NoSchedule, PreferNoSchedule or NoExecute."},
				}},
			},
			"gpu_taint": schema.BoolAttribute{
				Optional: true, Description: `Whether pods that ask for no GPU are kept away, by a taint called as the GPUs are, such as nvidia.com/gpu=present:NoSchedule. When left out, where GPUs are declared, but not on the control plane's own machine.`,
			},
			"gpus":          schema.Int64Attribute{Optional: true, Description: "How many whole GPUs (nvidia.com/gpu) pods can be given: the gpu_count of a metal_gpu_driver, say. The node is ready when it is exactly that many."},
			"gpu_resources": schema.MapAttribute{Optional: true, ElementType: types.Int64Type, Description: `The same for GPUs that are divided, by resource: { "nvidia.com/mig-1g.10gb" = 7 }.`},
			"max_pods":      schema.Int64Attribute{Optional: true, Validators: []validator.Int64{atLeastOne{}}, Description: "How many pods may run there; as the cluster's kubelet configuration says when left out."},
			"resolv_conf":   schema.StringAttribute{Optional: true, Description: "The file with the name servers that pods get; kubeadm finds it when left out."},
			"ignore_preflight_errors": schema.ListAttribute{
				Optional: true, ElementType: types.StringType, Description: "Checks of kubeadm join that may fail, by name, such as SystemVerification. There is no all.",
			},
			"verify": schema.BoolAttribute{Optional: true, Description: "Check that one pod can open every GPU, and that a pod that " +
				"requested none sees none. Where no other pod has a GPU there, systemd is reloaded, too: running containers " +
				"may lose their GPUs by that."},
			"verify_image": schema.StringAttribute{Optional: true, Description: "Image of those pods, in place of " + member.ProbeImage + ". It has to have sh and sleep."},
			"out_of_service": schema.BoolAttribute{Optional: true, Description: "Confirms that the machine is off: its " +
				"node gets a taint that makes Kubernetes start its pods elsewhere. It is refused while the machine answers."},
			"repository": kubernetesRepositoryAttribute(),
			"drift": schema.MapAttribute{
				Computed: true, ElementType: types.StringType,
				Description: "Facts that are not as declared and have no attribute of their own, such as a kubelet that was stopped: what they are. Applying empties it.",
			},
			"name":     schema.StringAttribute{Computed: true, PlanModifiers: keep, Description: "Name of the node."},
			"capacity": connect.CapacityAttribute("Resources of the node for pods."),
		},
		Blocks: map[string]schema.Block{
			"timeouts": timeouts.Block(context.Background(), timeouts.Opts{Create: true, Update: true, Delete: true}),
		},
	}
	maps.Copy(described.Attributes, disruptionAttributes())
	return described
}

// joinArgument is the value of joinTypes as an argument.
func joinArgument() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"endpoint":      schema.StringAttribute{Required: true, Description: "Where the API server is, as HOST:PORT."},
		"ca_hash":       schema.StringAttribute{Required: true, Description: "Hash of the cluster's authority: the machine joins no other."},
		"version":       schema.StringAttribute{Required: true, Description: "Version of Kubernetes in full."},
		"control_plane": connect.MachineArgument("The control plane's machine."),
		"max_unavailable": schema.Int64Attribute{Optional: true, Description: "How many nodes may be unavailable at once. " +
			"It overrides the argument of the node."},
		"kubelet_hash": schema.StringAttribute{Optional: true, Description: "Hash of the configuration for all kubelets."},
	}
}

func (r *nodeResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config nodeModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if n := config.GPUs; !n.IsNull() && !n.IsUnknown() && n.ValueInt64() < 0 {
		resp.Diagnostics.AddAttributeError(path.Root("gpus"), "Invalid value", "A node has no fewer than 0 GPUs.")
	}
	config.validate(ctx, &resp.Diagnostics)
}
