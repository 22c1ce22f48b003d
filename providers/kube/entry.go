package kube

import (
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/stokehq/stoke/providers"
)

// Source is the provider's address in full.
const Source = "registry.terraform.io/stokehq/kube"

// Entry is the provider for stoke's catalogue.
func Entry(version string) providers.Entry {
	left := new(doubts)
	e := providers.Linked(func() (tfprotov6.ProviderServer, error) {
		p := &kubeProvider{version: version, doubts: left}
		return closing{providerserver.NewProtocol6(p)(), p}, nil
	}, version, providers.ServerOptions{Name: "stokehq/kube", Marks: true})
	e.Review = left.review
	return e
}

// closing ends the provider's connections with it.
type closing struct {
	tfprotov6.ProviderServer
	provider *kubeProvider
}

func (c closing) Close() error {
	c.provider.settings.pool.Close()
	return nil
}
