package metal

import (
	"net"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
)

// Source is the provider's address in full.
const Source = "registry.terraform.io/stokehq/metal"

// Entry is the provider for stoke's catalogue.
func Entry(version string) providers.Entry {
	common, facts := newShared(), &factsCache{}
	common.roll.Agent = "stoke/" + version
	e := providers.Linked(func() (tfprotov6.ProviderServer, error) {
		p := &metalProvider{version: version, shared: common, seen: facts}
		return closing{parallel{providerserver.NewProtocol6(p)(), p}, p}, nil
	}, version, providers.ServerOptions{Name: "stokehq/metal", Marks: true})
	e.Review = facts.review
	e.Limits = providers.Limits{PerHost: 4, Host: address, AtOnce: 64}
	return e
}

type closing struct {
	tfprotov6.ProviderServer
	provider *metalProvider
}

// SSH is that of connect.Configured.
func (c closing) SSH() connect.SSHSettings {
	if c.provider.settings == nil { // it is not configured
		return connect.SSHSettings{}
	}
	return c.provider.settings.ssh
}

// Cluster is that of connect.Configured.
func (c closing) Cluster() *connect.Connection { return nil }

func (c closing) Close() error {
	c.provider.settings.close()
	return nil
}

// address names the machine of an object.
func address(typeName string, object cty.Value) string {
	switch typeName {
	case "metal_host":
	case "metal_cluster":
		object = first(part(object, "control_plane"))
	default:
		object = part(object, "host")
	}
	a := textOf(object, "address")
	// Behind one address there may be several machines.
	if port := part(object, "port"); a != "" && port != cty.NilVal && port.Type() == cty.Number {
		a = net.JoinHostPort(strings.Trim(a, "[]"), port.AsBigFloat().Text('f', 0))
	}
	return a
}

// first is the first element of a list; cty.NilVal where there is none.
func first(list cty.Value) cty.Value {
	if list == cty.NilVal || !list.CanIterateElements() || list.LengthInt() == 0 {
		return cty.NilVal
	}
	return list.AsValueSlice()[0]
}
