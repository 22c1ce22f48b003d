package kubeadm

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stokehq/stoke/runtime/pattern"
)

// Problem is a value that cannot be.
type Problem struct {
	Field string // of Cluster, Node or Join, and the key in it: Labels["a b"]
	Value string // as it is declared; nothing that is secret
	Why   string // what is wrong with it, and what to write
}

func (p Problem) Error() string { return fmt.Sprintf("%s: %q %s", p.Field, p.Value, p.Why) }

// problems collects what is wrong.
type problems []Problem

func (p *problems) add(field, value, why string, args ...any) {
	*p = append(*p, Problem{field, value, fmt.Sprintf(why, args...)})
}

// addAll takes what Kubernetes' own checks of a value say.
func (p *problems) addAll(field, value string, why []string) {
	if len(why) > 0 {
		p.add(field, value, "cannot be: %s", strings.Join(why, "; "))
	}
}

func entry(field, key string) string { return fmt.Sprintf("%s[%q]", field, key) }

// Check returns the faults of a declared cluster.
func (c Cluster) Check() []Problem {
	var p problems
	if _, err := ParseRelease(c.Version); err != nil {
		p.add("Version", c.Version, "cannot be installed: write a release of %s to %s, such as %s.3", OldestMinor, NewestMinor, DefaultMinor)
	}
	if c.Name != "" {
		p.addAll("Name", c.Name, validation.IsDNS1123Subdomain(c.Name))
	}
	p.endpoint("Endpoint", c.Endpoint)
	if a, err := netip.ParseAddr(c.Advertise); c.Advertise != "" && (err != nil || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast()) {
		p.add("Advertise", c.Advertise, "is not an address that other machines can reach: write an address of the control plane's machine")
	}
	if c.Port < 0 || c.Port > 65535 {
		p.add("Port", strconv.Itoa(c.Port), "is not a port: write one from 1 to 65535")
	}
	p.networks(c.Pods, c.Services)
	if c.Domain != "" {
		p.addAll("Domain", c.Domain, validation.IsDNS1123Subdomain(c.Domain))
	}
	p.arguments("APIServer", c.APIServer, apiServerOwned)
	for _, name := range c.CertNames {
		if _, err := netip.ParseAddr(name); err == nil {
			continue
		}
		if strings.HasPrefix(name, "*.") {
			p.addAll("CertNames", name, validation.IsWildcardDNS1123Subdomain(name))
		} else {
			p.addAll("CertNames", name, validation.IsDNS1123Subdomain(name))
		}
	}
	p.lives(c.CertificateLife, c.CALife)
	p.document("Kubelet", c.Kubelet, map[string]string{
		"clusterDomain": "the cluster's domain says it", "staticPodPath": "kubeadm puts the control plane there",
	})
	p.document("Proxy", c.Proxy, map[string]string{"clusterCIDR": "the cluster's network of pods says it", "hostnameOverride": "it holds for all nodes"})
	return p
}

// apiServerOwned are arguments that follow from other fields.
var apiServerOwned = map[string]string{
	"advertise-address":        "the address of the control plane says it",
	"secure-port":              "the port of the endpoint says it",
	"service-cluster-ip-range": "the network of Services says it",
	"etcd-servers":             "kubeadm runs etcd on the control plane",
}

func (p *problems) endpoint(field, value string) {
	name, port, err := net.SplitHostPort(value)
	n, badPort := strconv.Atoi(port)
	switch {
	case err != nil || badPort != nil || n < 1 || n > 65535:
		p.add(field, value, "is not HOST:PORT: write an address or a name and a port, such as 192.0.2.10:6443")
	case validIP(name):
	default:
		p.addAll(field, value, validation.IsDNS1123Subdomain(name))
	}
}

func validIP(text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && !a.IsUnspecified() && a.Zone() == ""
}

// networks looks at those of pods and Services, by kubeadm's limits.
func (p *problems) networks(pods, services []string) {
	if len(pods) == 0 {
		p.add("Pods", "", "is not a network: write one of your own that nothing else uses, such as 10.244.0.0/16")
	}
	if len(services) == 0 {
		services = []string{defaultServices}
	}
	var seen []netip.Prefix
	for _, of := range []struct {
		field string
		list  []string
	}{{"Services", services}, {"Pods", pods}} { // what overlaps is said of the pods'
		field, families := of.field, map[bool]string{}
		for _, text := range of.list {
			n, err := netip.ParsePrefix(text)
			if err != nil || n.Masked() != n {
				p.add(field, text, "is not a network: write its first address and its length, such as 10.244.0.0/16")
				continue
			}
			if other := families[n.Addr().Is4()]; other != "" {
				p.add(field, text, "is a second network of the same kind as %s: one of IPv4 and one of IPv6 are possible", other)
			}
			families[n.Addr().Is4()] = text
			p.size(field, text, n)
			for _, other := range seen {
				if n.Overlaps(other) {
					p.add(field, text, "overlaps %s: networks of pods and Services have no address in common", other)
				}
			}
			seen = append(seen, n)
		}
	}
	slices.SortFunc(*p, func(a, b Problem) int { return strings.Compare(a.Field+a.Value, b.Field+b.Value) })
}

// size: each node has a /24 (IPv4) or /64 of the pods' network, of which there
// may be 65536, and Services can have 20 bits.
func (p *problems) size(field, text string, n netip.Prefix) {
	node, all := 24, 32
	if n.Addr().Is6() {
		node, all = 64, 128
	}
	switch {
	case field == "Services" && (all-n.Bits() > 20 || all-n.Bits() < 4):
		p.add(field, text, "has not the size of a network of Services: its length is from /%d to /%d", all-20, all-4)
	case field == "Pods" && (n.Bits() > node || node-n.Bits() > 16):
		p.add(field, text, "has not the size of a network of pods: every node takes a /%d of it, and its length is from /%d to /%[1]d", node, node-16)
	}
}

func (p *problems) lives(certificate, authority time.Duration) {
	for field, life := range map[string]time.Duration{"CertificateLife": certificate, "CALife": authority} {
		if life != 0 && (life < time.Hour || life%time.Second != 0) {
			p.add(field, life.String(), "is not a life for certificates: take whole seconds, an hour or more")
		}
	}
	const year = 365 * 24 * time.Hour
	c, a := certificate, authority
	if c == 0 {
		c = year
	}
	if a == 0 {
		a = 10 * year
	}
	if c > a {
		p.add("CertificateLife", c.String(), "is longer than the validity of the authority which signs them, %s", a)
	}
}

var argumentName = pattern.New(`^[a-z][a-z0-9-]*$`)

func (p *problems) arguments(field string, args, owned map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if why := owned[name]; why != "" {
			p.add(entry(field, name), args[name], "cannot be declared here: %s", why)
		}
		if !argumentName.MatchString(name) {
			p.add(entry(field, name), args[name], "is of no argument: write names without dashes before them, such as audit-log-path")
		}
		if strings.ContainsAny(args[name], "\n\r\x00") {
			p.add(entry(field, name), args[name], "has several lines: arguments have one")
		}
	}
}

func (p *problems) document(field string, document map[string]any, owned map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(document)) {
		why := owned[key]
		if key == "apiVersion" || key == "kind" {
			why = "it is always the same"
		}
		if why != "" {
			p.add(entry(field, key), fmt.Sprint(document[key]), "cannot be declared here: %s", why)
		}
	}
}
