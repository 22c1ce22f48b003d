package kube

import (
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
)

// Source is the provider's address in full.
const Source = "registry.terraform.io/stokehq/kube"

// Entry is the provider for stoke's catalogue.
func Entry(version string) providers.Entry {
	left := new(doubts)
	e := providers.Linked(func() (tfprotov6.ProviderServer, error) {
		p := &kubeProvider{version: version, doubts: left}
		return closing{providerserver.NewProtocol6(p)(), p}, nil
	}, version, providers.ServerOptions{Name: "stokehq/kube", Marks: true, Echoes: echoes()})
	e.Review, e.Begin, e.Runs = left.review, left.begin, runs{}
	return e
}

// echoes names the attributes that the attribute objects repeats, for each
// resource: all that are not write-only (for these objects has a hash).
func echoes() map[string]map[string][]string {
	all := make(map[string]map[string][]string, len(kinds))
	for _, k := range kinds {
		var names []string
		for name, a := range k.attributes() {
			if !a.IsWriteOnly() {
				names = append(names, name)
			}
		}
		all["kube_"+k.name] = map[string][]string{"objects": sorted(names)}
	}
	return all
}

// closing closes the provider's connections with it, and returns their
// settings.
type closing struct {
	tfprotov6.ProviderServer
	provider *kubeProvider
}

// SSH is that of connect.Configured.
func (c closing) SSH() connect.SSHSettings { return c.provider.settings.pool.SSH }

// Cluster is that of connect.Configured.
func (c closing) Cluster() *connect.Connection {
	s := &c.provider.settings
	if s.config.IsNull() || s.config.IsUnknown() || s.context.IsUnknown() {
		return nil
	}
	return s.byDefault()
}

func (c closing) Close() error {
	c.provider.settings.pool.Close()
	return nil
}
