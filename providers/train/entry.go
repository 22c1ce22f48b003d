package train

import (
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
)

// Source is the provider's address in full.
const Source = "registry.terraform.io/stokehq/train"

// Entry is the provider for stoke's catalogue.
func Entry(version string) providers.Entry {
	pods := new(asking)
	entry := providers.Linked(func() (tfprotov6.ProviderServer, error) {
		p := &trainProvider{version: version, asking: pods}
		return served{providerserver.NewProtocol6(p)(), p}, nil
	}, version, providers.ServerOptions{Name: "stokehq/train", Marks: true})
	entry.Review, entry.Runs = pods.review, runs{}
	return entry
}

// served ends the provider's connections with it, and tells how it logs in.
type served struct {
	tfprotov6.ProviderServer
	provider *trainProvider
}

// SSH is that of connect.Configured.
func (s served) SSH() connect.SSHSettings {
	if s.provider.settings == nil {
		return connect.SSHSettings{}
	}
	return s.provider.settings.clusters.SSH
}

// Cluster is that of connect.Configured: experiments name theirs.
func (s served) Cluster() *connect.Connection { return nil }

func (s served) Close() error {
	if s.provider.settings != nil {
		s.provider.settings.clusters.Close()
	}
	return nil
}
