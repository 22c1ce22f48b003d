package metal

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
)

type hostResource struct{ life[hostModel, *hostModel] }

type hostModel struct {
	ID               types.String `tfsdk:"id"`
	Address          types.String `tfsdk:"address"`
	PrivateAddress   types.String `tfsdk:"private_address"`
	Port             types.Int64  `tfsdk:"port"`
	User             types.String `tfsdk:"user"`
	Credential       types.String `tfsdk:"credential"`
	HostKey          types.String `tfsdk:"host_key"`
	AcceptNewHostKey types.Bool   `tfsdk:"accept_new_host_key"`
	Bastions         types.List   `tfsdk:"bastion"`
	Role             types.String `tfsdk:"role"`
	Cluster          types.String `tfsdk:"cluster"`
	SSH              types.Object `tfsdk:"ssh"`
	NodeAddress      types.String `tfsdk:"node_address"`
	CordonedBy       types.String `tfsdk:"cordoned_by"`

	packagesModel
	softwareModel
	factsModel
	disruptionModel
	systemModel
	containerdModel

	prior  *hostModel // what is stored, nil where the resource is new or it does not matter
	config *hostModel // the configuration, if available: only it has the write-only values
}

type bastionModel struct {
	Address    types.String `tfsdk:"address"`
	Port       types.Int64  `tfsdk:"port"`
	User       types.String `tfsdk:"user"`
	Credential types.String `tfsdk:"credential"`
	HostKey    types.String `tfsdk:"host_key"`
}

func hostSchema() schema.Schema {
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	described := schema.Schema{
		Description: "One machine, reached over SSH, and the settings of its operating system. Only what is declared is managed; what it was before is restored on destroy.",
		Attributes: map[string]schema.Attribute{
			"id":      schema.StringAttribute{Computed: true, PlanModifiers: keep, Description: "Identifies this owner in the record on the machine."},
			"address": schema.StringAttribute{Required: true, Description: "Host name or IP address for SSH. A machine that moved is the same as long as its host key is."},
			"private_address": schema.StringAttribute{
				Optional: true, Description: "IP address in the cluster's network, where that is another.",
			},
			"port":       schema.Int64Attribute{Optional: true, Validators: []validator.Int64{atLeastOne{}}, Description: "Port of the SSH server; 22 when left out."},
			"user":       schema.StringAttribute{Optional: true, Description: "User to log in as; the credential's when left out."},
			"credential": schema.StringAttribute{Optional: true, Description: "Name of one of the provider's ssh.credentials; the block itself when left out."},
			"host_key": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: keep,
				Description: `Public host key, such as "ssh-ed25519 AAAA…". Required, unless accept_new_host_key is set.`,
			},
			"accept_new_host_key": schema.BoolAttribute{
				Optional: true, Description: "Take the key that the machine shows at the first plan, and no other from then on.",
			},
			"role": schema.StringAttribute{Optional: true, Validators: []validator.String{oneOf{"control-plane", "worker"}}, Description: "" +
				"The machine's role in a cluster: control-plane or worker. Preflight checks what that needs."},
			"cluster":      schema.StringAttribute{Optional: true, Description: "Name of the cluster that it is to belong to. Machines of one cluster are checked against each other."},
			"ssh":          connect.MachineResult("The SSH connection to the machine. Known while planning; nothing in it is secret."),
			"cordoned_by":  schema.StringAttribute{Computed: true, Description: "Which run of stoke has cordoned the node and was cut off before it could let pods back; null for none. Apply lets them back."},
			"node_address": schema.StringAttribute{Computed: true, Description: "The address that other nodes use: private_address, else address."},
		},
		Blocks: map[string]schema.Block{
			"bastion": schema.ListNestedBlock{
				Description: "A machine on the way, nearest first.",
				NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
					"address":    schema.StringAttribute{Required: true, Description: "Host name or IP address."},
					"port":       schema.Int64Attribute{Optional: true, Validators: []validator.Int64{atLeastOne{}}, Description: "Port of the SSH server; 22 when left out."},
					"user":       schema.StringAttribute{Optional: true, Description: "User to log in as; the credential's when left out."},
					"credential": schema.StringAttribute{Optional: true, Description: "Name of one of the provider's ssh.credentials."},
					"host_key":   schema.StringAttribute{Required: true, Description: "Public host key."},
				}},
			},
		},
	}
	maps.Copy(described.Attributes, disruptionAttributes())
	for _, s := range sections(nil) {
		maps.Copy(described.Attributes, s.attributes())
	}
	return described
}

// way is what the model says of the way to the machine; false while something
// of it is unknown. A host key that is null or unknown is "".
func (m *hostModel) way() (connect.SSH, bool) {
	known := true
	hop := func(address types.String, port types.Int64, user, credential, key types.String) connect.Hop {
		known = known && !address.IsUnknown() && !port.IsUnknown() && !user.IsUnknown() && !credential.IsUnknown()
		return connect.Hop{
			Address: address.ValueString(), Port: int(port.ValueInt64()), User: user.ValueString(),
			Credential: credential.ValueString(), HostKey: key.ValueString(),
		}
	}
	s := connect.SSH{Hop: hop(m.Address, m.Port, m.User, m.Credential, m.HostKey)}
	var bastions []bastionModel
	if m.Bastions.IsUnknown() || m.Bastions.ElementsAs(context.Background(), &bastions, false).HasError() {
		return s, false
	}
	for _, b := range bastions {
		s.Hops = append(s.Hops, hop(b.Address, b.Port, b.User, b.Credential, b.HostKey))
		known = known && !b.HostKey.IsUnknown()
	}
	return s, known
}

func (r *hostResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config hostModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if config.HostKey.IsNull() && !config.AcceptNewHostKey.IsUnknown() && !config.AcceptNewHostKey.ValueBool() {
		resp.Diagnostics.AddAttributeError(path.Root("host_key"), "Host key missing",
			"An unknown machine is never trusted silently. Give its public host key (on the machine: cat "+
				"/etc/ssh/ssh_host_ed25519_key.pub), read it with the data source metal_known_host, or set "+
				"accept_new_host_key = true to accept the key of the first plan.")
	}
	config.inCluster(&resp.Diagnostics)
	config.validateWay(&resp.Diagnostics)
	for _, s := range sections(nil) {
		s.validate(ctx, &config, &resp.Diagnostics)
	}
}

func (m *hostModel) inCluster(diags *diag.Diagnostics) {
	at, name := path.Root("private_address"), m.PrivateAddress
	if name.IsNull() {
		if at, name = path.Root("address"), m.Address; m.Role.IsNull() && m.Cluster.IsNull() {
			return // SSH alone goes there
		}
	}
	if name.IsNull() || name.IsUnknown() {
		return
	}
	ip, err := netip.ParseAddr(name.ValueString())
	switch {
	case err == nil && !ip.Unmap().Is4():
		diags.AddAttributeError(at, "IPv6 is not supported yet",
			fmt.Sprintf("%s: clusters with only IPv6, or with both, are refused for now. Give the machine's IPv4 address in the cluster's network as private_address; SSH may go to an IPv6 address.", ip))
	case !m.PrivateAddress.IsNull() && strings.ContainsAny(name.ValueString(), ", \t/"):
		diags.AddAttributeError(at, "Invalid address", fmt.Sprintf("%q: it is one IPv4 address, without a prefix length. Several, such as one for IPv4 and one for IPv6, are refused for now.", name.ValueString()))
	}
}
