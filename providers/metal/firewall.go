package metal

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/firewall"
)

type firewallResource struct {
	life[firewallModel, *firewallModel]
}

type firewallModel struct {
	onMachine
	Role          types.String `tfsdk:"role"`
	Peers         types.Set    `tfsdk:"peers"`
	ControlPlanes types.Set    `tfsdk:"control_planes"`
	PodNetwork    types.Set    `tfsdk:"pod_network"`
	CNI           types.String `tfsdk:"cni"`
	CNIPorts      types.Set    `tfsdk:"cni_ports"`
	APIClients    types.Set    `tfsdk:"api_clients"`
	SSHFrom       types.Set    `tfsdk:"ssh_from"`
	SSHPort       types.Int64  `tfsdk:"ssh_port"`
	ConfirmWithin types.String `tfsdk:"confirm_within"`
	NodePorts     types.List   `tfsdk:"node_port"`
	Rules         types.List   `tfsdk:"rule"`

	Backend    types.String `tfsdk:"backend"`
	Lines      types.List   `tfsdk:"rules"`
	Persistent types.Bool   `tfsdk:"persistent"`
}

type firewallRuleModel struct {
	Ports   types.Set    `tfsdk:"ports"`
	From    types.Set    `tfsdk:"from"`
	Comment types.String `tfsdk:"comment"`
}

func firewallSchema() schema.Schema {
	texts := func(required bool, description string) schema.Attribute {
		return schema.SetAttribute{ElementType: types.StringType, Required: required, Optional: !required, Description: description}
	}
	rule := func(description, comment string) schema.Block {
		return schema.ListNestedBlock{Description: description, NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
			"ports":   texts(true, `The opened port or protocol, such as "80/tcp", "9000-9100/udp", "vrrp", "ip:4" or "any".`),
			"from":    texts(false, "The allowed sources: addresses, ranges, or nodes, control_planes, pods, api_clients. All addresses when left out."),
			"comment": schema.StringAttribute{Optional: true, Description: comment},
		}}}
	}
	return schema.Schema{
		Description: "The firewall of a machine. It opens the ports that the machine's role needs and the declared " +
			"ports, and no others. " +
			"New rules are taken back by the machine itself unless a new SSH connection confirms them.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				Description: "Identifies this owner in the record on the machine.",
			},
			"host": connect.MachineArgument("The machine: ssh of its metal_host."),
			"role": schema.StringAttribute{
				Required: true, Validators: []validator.String{oneOf{string(firewall.ControlPlane), string(firewall.Worker), string(firewall.NoRole)}},
				Description: "The machine's role in its cluster: control-plane, worker or none.",
			},
			"peers":          texts(false, "Addresses of all nodes of the cluster, control planes and itself among them or not."),
			"control_planes": texts(false, "Addresses of the control planes: etcd is only open between them."),
			"pod_network":    texts(false, "Networks of the pods, which use the API server and the kubelet."),
			"cni":            schema.StringAttribute{Optional: true, Validators: []validator.String{oneOf(firewall.CNIs())}, Description: "The network plugin, which needs ports between nodes: calico, cilium, flannel or none."},
			"cni_ports":      texts(false, `Other ports that the network plugin needs between nodes, such as "6783/tcp".`),
			"api_clients":    texts(false, "Addresses that use the API server on port 6443, in addition to nodes and pods."),
			"ssh_from":       texts(false, "The sources of logins: addresses and ranges; all addresses when left out. Rules that lock stoke out are rolled back."),
			"ssh_port": schema.Int64Attribute{Optional: true, Description: "Port of the SSH server on the machine; " +
				"by default the port of host."},
			"confirm_within": schema.StringAttribute{Optional: true, Description: `How long the machine waits for new rules to be confirmed before it takes them back, such as "30s"; a minute when left out.`},
			"backend": schema.StringAttribute{Computed: true, Description: "The program that keeps the rules: " +
				"nftables, or ufw where the machine uses it, ufw-ipv4 where that leaves IPv6 out."},
			"rules":      schema.ListAttribute{ElementType: types.StringType, Computed: true, Description: "The rules, line by line, as they are on the machine."},
			"persistent": schema.BoolAttribute{Computed: true, Description: "Whether the machine has the same rules after a reboot."},
		},
		Blocks: map[string]schema.Block{
			"node_port": rule("Node ports (30000-32767) that are open. All others are closed.", "A description, for the "+
				"rule's comment."),
			"rule": rule("Anything else that is open.", "A description, for the rule's comment."),
		},
	}
}

func (r *firewallResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config firewallModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if !resp.Diagnostics.HasError() {
		config.spec(ctx, &resp.Diagnostics)
	}
}
