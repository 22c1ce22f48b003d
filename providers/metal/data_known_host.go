package metal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"golang.org/x/crypto/ssh"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/host"
)

type knownHost struct{ configured }

type knownHostModel struct {
	Address        types.String   `tfsdk:"address"`
	Port           types.Int64    `tfsdk:"port"`
	KnownHostsFile types.String   `tfsdk:"known_hosts_file"`
	Hops           []knownHostHop `tfsdk:"hops"`
	HostKey        types.String   `tfsdk:"host_key"`
	Fingerprint    types.String   `tfsdk:"fingerprint"`
	Source         types.String   `tfsdk:"source"`
}

type knownHostHop struct {
	Address    types.String `tfsdk:"address"`
	Port       types.Int64  `tfsdk:"port"`
	User       types.String `tfsdk:"user"`
	HostKey    types.String `tfsdk:"host_key"`
	Credential types.String `tfsdk:"credential"`
}

func (d *knownHost) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_known_host"
}

func (d *knownHost) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "The host key of a machine: from a known_hosts file, or, without one, whatever the machine shows now. " +
			"A key that was only shown is not verified: it is a convenience for a network that you trust, or for a key " +
			"that you compare (fingerprint) before it gets into a configuration. " +
			"A machine that an attacker put in its place shows its own key, and the plan follows it.",
		Attributes: map[string]schema.Attribute{
			"address": schema.StringAttribute{Required: true, Description: "Host name or IP address, as in the file."},
			"port":    schema.Int64Attribute{Optional: true, Description: "Port of the SSH server; 22 when left out."},
			"known_hosts_file": schema.StringAttribute{
				Optional: true, Description: "File in OpenSSH's format, such as ~/.ssh/known_hosts; hashed names are found, revoked keys and authorities are not taken. The machine is not asked then.",
			},
			"hops":        connect.ForDataSource(connect.MachineArgument("")).Attributes["hops"],
			"host_key":    schema.StringAttribute{Computed: true, Description: "Public host key, such as \"ssh-ed25519 AAAA…\": Ed25519 before ECDSA before RSA where there are several."},
			"fingerprint": schema.StringAttribute{Computed: true, Description: "The key's SHA-256 fingerprint, as ssh-keygen -lf shows it."},
			"source": schema.StringAttribute{Computed: true, Description: "FILE:LINE, or \"connection\" for a key " +
				"that the machine showed and that was not compared."},
		},
	}
}

func (d *knownHost) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m knownHostModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	address, port := m.Address.ValueString(), 22
	if !m.Port.IsNull() {
		port = int(m.Port.ValueInt64())
	}
	if address == "" || strings.ContainsAny(address, " \t\n/@") || port < 1 || port > 65535 {
		resp.Diagnostics.AddAttributeError(path.Root("address"), "Invalid address", fmt.Sprintf("%q with port %d is no way to a machine. Give a host name or an IP address, and the port as port.", address, port))
		return
	}
	var found knownKey
	var err error
	if file := m.KnownHostsFile.ValueString(); !m.KnownHostsFile.IsNull() {
		if file, err = connect.ExpandHome(file); err == nil {
			found, err = fromKnownHosts(file, address, port)
		}
		if err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("known_hosts_file"), "Host key is not in the file", err.Error()+".")
			return
		}
	} else if found, err = d.ask(ctx, m.Hops, address, port); err != nil {
		if errors.Is(err, connect.ErrUnknown) {
			resp.Diagnostics.AddError("Way to the machine is unknown", err.Error()+".")
			return
		}
		summary, detail := unreachable(address, err)
		resp.Diagnostics.AddAttributeError(path.Root("address"), summary, detail)
		return
	}
	m.HostKey = types.StringValue(strings.TrimSpace(string(ssh.MarshalAuthorizedKey(found.key))))
	m.Fingerprint = types.StringValue(ssh.FingerprintSHA256(found.key))
	m.Source = types.StringValue(found.source)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// ask lets the machine show its key. The machines on the way have to be known.
func (d *knownHost) ask(ctx context.Context, hops []knownHostHop, address string, port int) (knownKey, error) {
	const limit = 20 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer for %s", limit))
	defer cancel()
	host.Step(ctx, "asking %s for its host key", address)
	to := net.JoinHostPort(strings.Trim(address, "[]"), strconv.Itoa(port))
	dial := func(ctx context.Context) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", to)
	}
	through, err := d.bastions(hops, connect.Hop{Address: address, Port: port})
	if err != nil {
		return knownKey{}, err
	}
	if n := len(through); n > 0 {
		way := connect.SSH{Hop: through[n-1], Hops: through[:n-1]}
		if diags := way.Validate(path.Root("hops")); diags.HasError() {
			return knownKey{}, fmt.Errorf("%s: %s", diags[0].Summary(), strings.TrimSuffix(diags[0].Detail(), "."))
		}
		bastion, err := d.settings.reach(way, nil)
		if err != nil {
			return knownKey{}, err
		}
		dial = func(ctx context.Context) (net.Conn, error) { return host.Dial(ctx, bastion, "tcp", to) }
	}
	return fromMachine(ctx, dial, to)
}

// bastions returns the machines on the way: the given ones, or the bastions of
// the provider block.
func (d *knownHost) bastions(given []knownHostHop, to connect.Hop) ([]connect.Hop, error) {
	if len(given) == 0 && d.settings != nil {
		return d.settings.ssh.Hops(to)
	}
	hops := make([]connect.Hop, len(given))
	for i, h := range given {
		hops[i] = connect.Hop{Address: h.Address.ValueString(), Port: int(h.Port.ValueInt64()), User: h.User.ValueString(), HostKey: h.HostKey.ValueString(), Credential: h.Credential.ValueString()}
	}
	return hops, nil
}
