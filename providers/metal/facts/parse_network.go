package facts

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

const resolvedFile = "/run/systemd/resolve/resolv.conf"

func (a *answer) network(f *Facts) {
	f.NICs, f.Routes = a.nics(a.addresses()), a.routes()
	f.Listeners = a.listeners()
	a.dns(&f.DNS)
	f.Proxy = a.proxy()
}

// madeForContainers tells the interfaces that container networks make, which
// come and go with pods, by their names.
func madeForContainers(name string) bool {
	return begins(name, "cali", "cilium_", "cni", "flannel", "kube-bridge", "kube-ipvs", "lxc", "nodelocaldns", "tunl", "veth", "vxlan.calico", "vxlan-v6.calico", "weave") && !begins(name, "lxcbr")
}

func begins(name string, with ...string) bool {
	return slices.ContainsFunc(with, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Kinds of link-layer hardware that are networks (ARPHRD_ETHER, ARPHRD_INFINIBAND).
const (
	ethernet   = "1"
	infiniband = "32"
)

func (a *answer) nics(addresses map[string][]string) []NIC {
	list := []NIC{}
	for _, row := range a.rows("nics", 9) {
		name, kind := clean(row[0]), clean(row[1])
		nic := NIC{Name: name, Kind: kind, MAC: a.word("nics", row[3]), MTU: int(min(a.count("nics", row[4]), 1<<20)),
			State: clean(row[5]), Driver: clean(row[7]), Master: clean(row[8]), Addresses: append([]string{}, addresses[row[0]]...)}
		if row[6] != "-1" { // what virtio says when nobody told it
			nic.Speed = a.count("nics", row[6])
		}
		switch {
		case row[2] == "772" || madeForContainers(row[0]):
			continue
		case row[2] != ethernet && row[2] != infiniband && len(nic.Addresses) == 0:
			continue // a tunnel that nobody uses
		case kind == "" && len(nic.Addresses) == 0:
			continue // a dummy that nobody uses
		case kind == "":
			nic.Kind = "virtual"
		}
		slices.Sort(nic.Addresses)
		list = append(list, nic)
	}
	slices.SortFunc(list, func(x, y NIC) int { return strings.Compare(x.Name, y.Name) })
	return list
}

// addresses reads `ip -o addr show` by interface.
func (a *answer) addresses() map[string][]string {
	if _, ok := a.sections["addresses"]; !ok {
		a.addUnreadable("network", "ip and ss are missing: install the package iproute2")
	}
	m := map[string][]string{}
	for _, line := range a.sections["addresses"] {
		fields := strings.Fields(line)
		if len(fields) < 4 || (fields[2] != "inet" && fields[2] != "inet6") {
			if len(fields) > 0 {
				a.addUnreadable("addresses", line)
			}
			continue
		}
		text := fields[3]
		if !strings.Contains(text, "/") { // a point-to-point one
			if ip, err := netip.ParseAddr(text); err == nil {
				text = netip.PrefixFrom(ip, ip.BitLen()).String()
			}
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			a.addUnreadable("addresses", line)
			continue
		}
		if ip := p.Addr(); !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && !slices.Contains(fields, "temporary") {
			m[fields[1]] = append(m[fields[1]], p.String())
		}
	}
	return m
}

// routes reads `ip -o route show table all`.
func (a *answer) routes() []Route {
	list := []Route{}
	for _, line := range a.sections["routes"] {
		if r, ok := a.route(line); ok {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(x, y Route) int {
		return cmp.Or(strings.Compare(x.Table, y.Table), strings.Compare(x.To, y.To), strings.Compare(x.Dev, y.Dev), strings.Compare(x.Via, y.Via))
	})
	return slices.Compact(list)
}

var routeKinds = []string{"unicast", "unreachable", "blackhole", "prohibit", "throw", "nat"}

func (a *answer) route(line string) (Route, bool) {
	fields := strings.Fields(line)
	if len(fields) > 0 && slices.Contains(routeKinds, fields[0]) {
		fields = fields[1:]
	}
	if len(fields) == 0 {
		return Route{}, false
	}
	r := Route{Table: "main"}
	// An IPv4 route may lead over an IPv6 neighbour, which ip marks.
	proto, six := "", strings.Contains(line, ":") && !strings.Contains(line, " via inet6 ")
	for i := 1; i+1 < len(fields); i++ { // of several next hops the first counts
		switch fields[i] {
		case "via":
			if fields[i+1] == "inet6" && i+2 < len(fields) {
				i++
			}
			r.Via = cmp.Or(r.Via, clean(fields[i+1]))
		case "dev":
			r.Dev = cmp.Or(r.Dev, clean(fields[i+1]))
		case "table":
			r.Table = clean(fields[i+1])
		case "proto":
			proto = fields[i+1]
		}
	}
	to, ok := network(fields[0], six)
	switch {
	case !ok:
		a.addUnreadable("routes", line)
		return Route{}, false
	case madeForContainers(r.Dev) || r.Dev == "lo" || proto == "bird" || to.Addr().IsLinkLocalUnicast() || to.Addr().IsMulticast():
		return Route{}, false // bird is Calico's
	}
	r.To = to.String()
	return r, true
}

func network(text string, six bool) (netip.Prefix, bool) {
	switch {
	case text == "default" && six:
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0), true
	case text == "default":
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0), true
	}
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		return netip.PrefixFrom(ip, ip.BitLen()), true
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err == nil
}

// listeners reads `ss -Hlntup`.
func (a *answer) listeners() []Listener {
	list := []Listener{}
	for _, line := range a.sections["sockets"] {
		if l, _, ok := ReadListener(line); ok {
			list = append(list, l)
		} else if strings.TrimSpace(line) != "" {
			a.addUnreadable("sockets", line)
		}
	}
	slices.SortFunc(list, func(x, y Listener) int {
		return cmp.Or(strings.Compare(x.Protocol, y.Protocol), x.Port-y.Port, strings.Compare(x.Address, y.Address), strings.Compare(x.Process, y.Process))
	})
	return slices.Compact(list)
}

// ReadListener reads a line of ss about a listener, such as
//
//	tcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:(("sshd",pid=1,fd=3))
func ReadListener(line string) (l Listener, address netip.Addr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[0] != "tcp" && fields[0] != "udp" {
		return l, address, false
	}
	address, l.Port, ok = Endpoint(fields[4])
	l.Protocol, l.Address = fields[0], address.String()
	// The name of a process may have anything in it.
	if _, rest, named := strings.Cut(line, `users:(("`); named {
		name, _, _ := strings.Cut(rest, `",pid=`)
		l.Process = clean(name)
	}
	return l, address, ok
}

// Endpoint reads an address as ss shows it: 127.0.0.1%lo:53, [::1]:22, *:22.
func Endpoint(text string) (address netip.Addr, port int, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return address, 0, false
	}
	port, err := strconv.Atoi(text[i+1:])
	host, _, _ := strings.Cut(strings.Trim(text[:i], "[]"), "%")
	if host = strings.Trim(host, "[]"); host == "*" {
		host = "::"
	}
	address, err2 := netip.ParseAddr(host)
	return address, port, err == nil && err2 == nil && port >= 0 && port <= 65535
}

// dns reads resolv.conf. Where it names nothing but systemd-resolved's stub, a
// pod has to use the file that resolved keeps beside it.
func (a *answer) dns(d *DNS) {
	d.Servers, d.Search = []string{}, []string{}
	stub := true
	for _, line := range a.sections["resolv"] {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.HasPrefix(fields[0], "#") || strings.HasPrefix(fields[0], ";") {
			continue
		}
		switch fields[0] {
		case "nameserver":
			stub = stub && fields[1] == "127.0.0.53"
			d.Servers = append(d.Servers, clean(fields[1]))
		case "search", "domain":
			d.Search = d.Search[:0] // the last one counts
			for _, s := range fields[1:min(len(fields), 33)] {
				d.Search = append(d.Search, clean(s))
			}
		}
	}
	if d.File == "" || !stub {
		d.File = "/etc/resolv.conf"
	}
	if len(d.Servers) > 16 {
		d.Servers = d.Servers[:16]
	}
}

// proxy reads the variables and apt's settings, without who logs in there.
func (a *answer) proxy() map[string]string {
	m := map[string]string{}
	for _, line := range a.sections["environment"] {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		key, value, ok := strings.Cut(line, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if ok && strings.HasSuffix(key, "_proxy") && len(key) <= len("https_proxy") && m[key] == "" && value != "" {
			m[key] = withoutUser(unquote(value))
		}
	}
	for _, line := range a.sections["apt"] {
		name, value, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), ";"), " ")
		parts := strings.Split(strings.ToLower(name), "::")
		if ok && len(parts) == 3 && parts[0] == "acquire" && parts[2] == "proxy" && unquote(value) != "" {
			m["apt "+clean(parts[1])] = withoutUser(unquote(value))
		}
	}
	return m
}

// withoutUser leaves out what stands before the last @ of an address.
func withoutUser(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		scheme, rest = "", s
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	if ok {
		rest = scheme + "://" + rest
	}
	return clean(rest)
}
