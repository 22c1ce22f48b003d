package gke

import (
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/stokehq/stoke/providers"
)

// Source is the provider's address in full.
const Source = "registry.terraform.io/stokehq/gke"

// Entry is the provider for stoke's catalogue.
func Entry(version string) providers.Entry {
	return entry(func() *gkeProvider { return &gkeProvider{version: version} }, version)
}

func entry(make func() *gkeProvider, version string) providers.Entry {
	e := providers.Linked(func() (tfprotov6.ProviderServer, error) {
		p := make()
		return closing{providerserver.NewProtocol6(p)(), p}, nil
	}, version, providers.ServerOptions{Name: "stokehq/gke", Marks: true})
	e.Review = review
	return e
}

// closing ends the provider's connections with it.
type closing struct {
	tfprotov6.ProviderServer
	provider *gkeProvider
}

func (c closing) Close() error {
	c.provider.clusters.Close()
	if c.provider.settings == nil {
		return nil
	}
	return c.provider.settings.cloud.Close()
}
