package filetest

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/stokehq/stoke/providers"
)

// Source is the provider's address.
const Source = "registry.terraform.io/stokehq/test"

// Entry is the provider as the catalogue lists it.
func Entry() providers.Entry {
	return providers.Linked(
		func() (tfprotov6.ProviderServer, error) { return providerserver.NewProtocol6(New())(), nil },
		"", // it is as old as stoke: commands say the same of it on pages as without it
		providers.ServerOptions{Name: "stokehq/test", Marks: true},
	)
}

// New returns the provider as terraform-plugin-framework serves it.
func New() provider.Provider { return testProvider{} }

type testProvider struct{}

func (testProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "test"
}

func (testProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{Description: "For tests, and for trying out stoke's behaviour."}
}

func (testProvider) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {
}

func (testProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return fileResource{} },
		func() resource.Resource { return secretResource{} },
	}
}

func (testProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{func() datasource.DataSource { return fileData{} }}
}
