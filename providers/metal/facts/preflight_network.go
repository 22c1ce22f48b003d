package facts

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers"
)

// declaredNetworks are the networks of a cluster, as far as they are known.
func (n Needs) declaredNetworks() []declaredNetwork {
	var list []declaredNetwork
	add := func(attribute, name, text string) {
		if p, err := netip.ParsePrefix(text); err == nil { // its own validator says what is wrong with it otherwise
			list = append(list, declaredNetwork{attribute, name, p.Masked()})
		}
	}
	for _, text := range n.PodNetworks {
		add("pod_network", "The pods' network", text)
	}
	add("service_network", "The services' network", n.ServiceNetwork)
	return list
}

type declaredNetwork struct {
	attribute, name string
	prefix          netip.Prefix
}

// Networks is the part of Preflight that is about networks.
func Networks(f Facts, want Needs) []Problem {
	var p problems
	p.networks(f, want)
	return p
}

func (p *problems) networks(f Facts, want Needs) {
	if want.PrivateAddress != "" && !f.hasAddress(want.PrivateAddress) {
		p.add(providers.Error, "private_address", "The machine lacks its private address", "No interface has %s. It has %s.", want.PrivateAddress, cmp.Or(strings.Join(f.addresses(), ", "), "none that stoke could read"))
	}
	networks := want.declaredNetworks()
	for i, n := range networks {
		for _, other := range networks[:i] {
			if n.prefix.Overlaps(other.prefix) {
				p.add(providers.Error, n.attribute, "Networks of the cluster overlap", "%s and %s have addresses in common. Choose another for one of them.", other.prefix, n.prefix)
			}
		}
	}
	for _, n := range networks {
		if met := f.overlaps(n.prefix); len(met) > 0 {
			p.add(providers.Error, n.attribute, "Network overlaps with the machine's own", "%s %s has addresses in common with what the machine uses already:\n  %s\nPods would not reach those. Choose another network, or remove what is there.",
				n.name, n.prefix, strings.Join(met, "\n  "))
		}
	}
}

// overlaps lists what of a machine's network has addresses in a network. The
// routes of a node inside of it are that network's own.
func (f *Facts) overlaps(n netip.Prefix) []string {
	var met []string
	for _, nic := range f.NICs {
		for _, p := range nic.prefixes() {
			if p.Masked().Overlaps(n) {
				met = append(met, fmt.Sprintf("address %s of %s", p, nic.Name))
			}
		}
	}
	for _, r := range f.Routes {
		p, err := netip.ParsePrefix(r.To)
		if err != nil || p.Bits() == 0 || !p.Overlaps(n) || f.connected(p, r.Dev) {
			continue
		}
		if f.Node.Joined && p.Bits() >= n.Bits() {
			continue
		}
		text := "route to " + r.To
		if r.Via != "" {
			text += " via " + r.Via
		}
		if r.Dev != "" {
			text += " on " + r.Dev
		}
		met = append(met, text)
	}
	for _, s := range f.DNS.Servers {
		if ip, err := netip.ParseAddr(s); err == nil && n.Contains(ip.WithZone("")) {
			met = append(met, "name server "+s)
		}
	}
	return met
}

// connected reports whether a route belongs to an address of the same
// interface.
func (f *Facts) connected(to netip.Prefix, dev string) bool {
	return slices.ContainsFunc(f.NICs, func(nic NIC) bool {
		return nic.Name == dev && slices.ContainsFunc(nic.prefixes(), func(p netip.Prefix) bool { return p.Masked() == to })
	})
}

func (n NIC) prefixes() []netip.Prefix {
	var all []netip.Prefix
	for _, a := range n.Addresses {
		if p, err := netip.ParsePrefix(a); err == nil {
			all = append(all, p)
		}
	}
	return all
}

func (f *Facts) addresses() []string {
	var list []string
	for _, nic := range f.NICs {
		for _, p := range nic.prefixes() {
			list = append(list, p.Addr().String())
		}
	}
	return list
}

func isIPv4(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && ip.Is4()
}

func (f *Facts) hasAddress(address string) bool {
	want, err := netip.ParseAddr(address)
	if err != nil {
		return true // a name; only the machine could tell
	}
	return slices.Contains(f.addresses(), want.Unmap().String())
}

// uplink is the interface that holds an address, or else the one of the
// default route.
func (f *Facts) uplink(address string) (NIC, bool) {
	byName := map[string]NIC{}
	want, err := netip.ParseAddr(address)
	for _, nic := range f.NICs {
		byName[nic.Name] = nic
		if err == nil && slices.ContainsFunc(nic.prefixes(), func(p netip.Prefix) bool { return p.Addr() == want.Unmap() }) {
			return nic, true
		}
	}
	for _, r := range f.Routes {
		if nic, ok := byName[r.Dev]; ok && r.Table == "main" && (r.To == "0.0.0.0/0" || r.To == "::/0") {
			return nic, true
		}
	}
	return NIC{}, false
}
