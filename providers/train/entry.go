package train

import (
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/stokehq/stoke/providers"
)

// Source is the provider's address in full.
const Source = "registry.terraform.io/stokehq/train"

// Entry is the provider for stoke's catalogue.
func Entry(version string) providers.Entry {
	entry := providers.Linked(func() (tfprotov6.ProviderServer, error) {
		return providerserver.NewProtocol6(New(version))(), nil
	}, version, providers.ServerOptions{Name: "stokehq/train", Marks: true})
	entry.Runs = runs{}
	return entry
}
