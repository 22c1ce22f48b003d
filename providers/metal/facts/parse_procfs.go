package facts

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// This file reads the network from procfs, for machines without iproute2.

// procRoutes reads /proc/net/route: IPv4, the main table.
func (a *answer) procRoutes() []Route {
	list := []Route{}
	for _, r := range a.procNetworks() {
		if madeForContainers(r.dev) || r.dev == "lo" {
			continue
		}
		route := Route{To: r.to.String(), Dev: clean(strings.TrimPrefix(r.dev, "*")), Table: "main"} // * is a blackhole's
		if !r.via.IsUnspecified() {
			route.Via = r.via.String()
		}
		list = append(list, route)
	}
	return list
}

type procRoute struct {
	dev string
	to  netip.Prefix
	via netip.Addr
}

func (a *answer) procNetworks() []procRoute {
	var list []procRoute
	for _, line := range a.sections["proc_routes"] {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "Iface" {
			continue
		}
		if len(fields) < 8 {
			a.odd("proc_routes", line)
			continue
		}
		to, ok1 := hexIP(fields[1])
		via, ok2 := hexIP(fields[2])
		mask, ok3 := hexIP(fields[7])
		if !ok1 || !ok2 || !ok3 || !to.Is4() || !mask.Is4() {
			a.odd("proc_routes", line)
			continue
		}
		bits := 0
		for m := binary.BigEndian.Uint32(mask.AsSlice()); m&(1<<31) != 0; m <<= 1 {
			bits++
		}
		list = append(list, procRoute{dev: fields[0], to: netip.PrefixFrom(to, bits).Masked(), via: via})
	}
	return list
}

// hexIP reads an address as procfs writes it: groups of four bytes, each
// backwards on the machines that stoke knows.
func hexIP(s string) (netip.Addr, bool) {
	b, err := hex.DecodeString(s)
	if err != nil || (len(b) != 4 && len(b) != 16) {
		return netip.Addr{}, false
	}
	for i := 0; i < len(b); i += 4 {
		b[i], b[i+1], b[i+2], b[i+3] = b[i+3], b[i+2], b[i+1], b[i]
	}
	ip, ok := netip.AddrFromSlice(b)
	return ip, ok
}

// procAddresses reads the local addresses of the routing trie, which does not
// say whose they are: the narrowest network of an interface that holds one
// tells. IPv6 has a file that says it.
func (a *answer) procAddresses() map[string][]string {
	m := map[string][]string{}
	networks := a.procNetworks()
	seen := map[netip.Addr]bool{}
	var last netip.Addr
	for _, line := range a.sections["fib_trie"] {
		text := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(text, "|-- "); ok {
			last, _ = netip.ParseAddr(rest)
			continue
		}
		if text != "/32 host LOCAL" || !last.IsValid() || last.IsLoopback() || seen[last] {
			continue
		}
		seen[last] = true
		dev, bits := "", -1
		for _, r := range networks {
			if r.via.IsUnspecified() && r.to.Contains(last) && r.to.Bits() > bits {
				dev, bits = r.dev, r.to.Bits()
			}
		}
		if dev != "" && bits > 0 {
			m[dev] = append(m[dev], netip.PrefixFrom(last, bits).String())
		}
	}
	for _, line := range a.sections["if_inet6"] {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		var b []byte
		var bits uint64
		err := strconv.ErrSyntax
		if len(fields) == 6 {
			if b, err = hex.DecodeString(fields[0]); err == nil {
				bits, err = strconv.ParseUint(fields[2], 16, 8)
			}
		}
		ip, ok := netip.AddrFromSlice(b)
		if err != nil || !ok || !ip.Is6() || bits > 128 {
			a.odd("if_inet6", line)
			continue
		}
		if !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
			m[fields[5]] = append(m[fields[5]], netip.PrefixFrom(ip, int(bits)).String())
		}
	}
	return m
}

// procListeners reads lines of /proc/net/tcp and its kin, each with the file's
// name in front.
func (a *answer) procListeners() []Listener {
	list := []Listener{}
	for _, line := range a.sections["proc_sockets"] {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		ok := len(fields) > 3
		var ip netip.Addr
		var port uint64
		if ok {
			address, number, _ := strings.Cut(fields[2], ":")
			var err error
			ip, ok = hexIP(address)
			if port, err = strconv.ParseUint(number, 16, 16); err != nil {
				ok = false
			}
		}
		if !ok {
			a.odd("proc_sockets", line)
			continue
		}
		list = append(list, Listener{Protocol: strings.TrimSuffix(clean(fields[0]), "6"), Address: ip.String(), Port: int(port)})
	}
	return list
}
