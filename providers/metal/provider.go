package metal

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
)

// New returns an unconfigured provider "metal".
func New(version string) provider.Provider { return &metalProvider{version: version} }

type metalProvider struct {
	version  string
	settings *settings
}

func (p *metalProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "metal"
	resp.Version = p.version
}

// providerModel is the provider block.
type providerModel struct {
	SSH types.Object `tfsdk:"ssh"`
}

func (p *metalProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Machines that are reached over SSH: operating system, firewall, NVIDIA driver.",
		Blocks: map[string]schema.Block{
			"ssh": connect.SSHBlock(),
		},
	}
}

func (p *metalProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ssh, diags := connect.ReadSSH(ctx, config.SSH)
	resp.Diagnostics.Append(diags...)
	if diags.HasError() {
		return
	}
	p.settings = newSettings(ssh)
	resp.ResourceData = p.settings
	resp.DataSourceData = p.settings
}

func (p *metalProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return new(hostResource) },
	}
}

func (p *metalProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }
