package firewall

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// protocolNames are the names that Debian's /etc/protocols, and so nft, has for
// protocols. Rules are written with numbers: a machine may lack that file. Note
// that "ipip" there is not what Calico calls so, which is 4.
var protocolNames = map[Protocol]string{
	1: "icmp", 2: "igmp", 3: "ggp", 4: "ipencap", 5: "st", TCP: "tcp", 8: "egp", 9: "igp", 12: "pup", UDP: "udp", 20: "hmp", 22: "xns-idp",
	27: "rdp", 29: "iso-tp4", 33: "dccp", 36: "xtp", 37: "ddp", 38: "idpr-cmtp", 41: "ipv6", 43: "ipv6-route", 44: "ipv6-frag", 45: "idrp",
	46: "rsvp", 47: "gre", 50: "esp", 51: "ah", 57: "skip", 58: "ipv6-icmp", 59: "ipv6-nonxt", 60: "ipv6-opts", 73: "rspf", 81: "vmtp",
	88: "eigrp", 89: "ospf", 93: "ax.25", 94: "ipip", 97: "etherip", 98: "encap", 103: "pim", 108: "ipcomp", 112: "vrrp", 115: "l2tp",
	124: "isis", SCTP: "sctp", 133: "fc", 135: "mobility-header", 136: "udplite", 137: "mpls-in-ip", 138: "manet", 139: "hip", 140: "shim6",
	141: "wesp", 142: "rohc", 143: "ethernet",
}

func (p Protocol) String() string {
	if p == AnyProtocol {
		return "any"
	}
	if name := protocolNames[p]; name != "" {
		return name
	}
	return strconv.Itoa(int(p))
}

// ParseProtocol reads a protocol's name or number; "any" is all of them.
func ParseProtocol(s string) (Protocol, error) {
	if s == "any" {
		return AnyProtocol, nil
	}
	if s == "ipip" {
		return 0, fmt.Errorf("%q is 4 to some and 94 to others: write ip:4 or ip:94", s)
	}
	if p, ok := protocolNumber(s); ok {
		return p, nil
	}
	return 0, fmt.Errorf("%q is not a protocol: use tcp, udp, sctp, another's name or number, or any", s)
}

func protocolNumber(s string) (Protocol, bool) {
	s = strings.ToLower(s)
	for p, name := range protocolNames {
		if name == s || s == "icmpv6" && p == 58 {
			return p, true
		}
	}
	n, err := strconv.ParseUint(s, 10, 8)
	return Protocol(n), err == nil && n > 0
}

func (p Ports) String() string {
	switch {
	case p.First == 0 && p.Last == 0:
		return p.Protocol.String()
	case p.First == p.Last:
		return fmt.Sprintf("%s %d", p.Protocol, p.First)
	}
	return fmt.Sprintf("%s %d-%d", p.Protocol, p.First, p.Last)
}

// ParsePorts reads one port or a range of a protocol, such as "80" or
// "9000-9100".
func ParsePorts(protocol Protocol, s string) (Ports, error) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	a, errA := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
	b, errB := strconv.ParseUint(strings.TrimSpace(last), 10, 16)
	if errA != nil || errB != nil || a == 0 || a > b {
		return Ports{}, fmt.Errorf("%q is neither a port (1 to 65535) nor a range such as 9000-9100", s)
	}
	return Ports{protocol, uint16(a), uint16(b)}, nil
}

func (p Ports) overlap(first, last uint16) (Ports, bool) {
	if p.First == 0 && p.Last == 0 {
		p.First, p.Last = 1, 65535
	}
	p.First, p.Last = max(p.First, first), min(p.Last, last)
	return p, p.First <= p.Last
}

func (p Ports) contains(protocol Protocol, port uint16) bool {
	return (p.Protocol == AnyProtocol || p.Protocol == protocol) && (p.First == 0 || p.First <= port && port <= p.Last)
}

// cniPorts is what network plugins need between nodes, from their documents and
// from Kubespray's docs/operations/port-requirements.md.
var cniPorts = map[string][]Ports{
	"none": nil,
	// VXLAN; WireGuard for IPv4 and IPv6.
	"flannel": {{UDP, 8472, 8472}, {UDP, 51820, 51821}},
	// BGP; VXLAN; IP in IP; Typha; WireGuard.
	"calico": {{TCP, 179, 179}, {UDP, 4789, 4789}, {4, 0, 0}, {TCP, 5473, 5473}, {UDP, 51820, 51821}},
	// VXLAN; Geneve; health; Hubble and its relay; metrics of agent, operator and Envoy; WireGuard.
	"cilium": {{UDP, 8472, 8472}, {UDP, 6081, 6081}, {TCP, 4240, 4240}, {TCP, 4244, 4245}, {TCP, 9962, 9964}, {UDP, 51871, 51871}},
}

// CNIs are the names of the network plugins that CNIPorts knows.
func CNIs() []string { return slices.Sorted(maps.Keys(cniPorts)) }

// CNIPorts is what a network plugin needs between nodes.
func CNIPorts(name string) ([]Ports, error) {
	ports, ok := cniPorts[name]
	if !ok {
		return nil, fmt.Errorf("%q is not a network plugin that stoke knows (%s): declare its ports between nodes as "+
			"cni_ports",
			name, strings.Join(CNIs(), ", "))
	}
	return ports, nil
}

// ParseOpening reads what a rule opens: "80/tcp", "9000-9100/udp", a whole
// protocol such as "vrrp" or "ip:112", or "any".
func ParseOpening(s string) (Ports, error) {
	if ports, name, ok := strings.Cut(s, "/"); ok {
		p, err := ParseProtocol(name)
		if err != nil {
			return Ports{}, err
		}
		return ParsePorts(p, ports)
	}
	number, isNumber := strings.CutPrefix(s, "ip:")
	p, err := ParseProtocol(number)
	switch {
	case err != nil:
		return Ports{}, fmt.Errorf("%w; ports have theirs behind them, such as 80/tcp or 9000-9100/udp", err)
	case p == TCP || p == UDP || p == SCTP:
		return Ports{}, fmt.Errorf("%q has no ports: write 1-65535/%[1]s for all", s)
	case !isNumber && s[0] >= '0' && s[0] <= '9':
		return Ports{}, fmt.Errorf("%q is not clear: write %[1]s/tcp for a port, ip:%[1]s for a protocol", s)
	}
	return Ports{Protocol: p}, nil
}

// ParseSource reads whom a rule lets in: the name of a group, an address or a
// range of addresses.
func ParseSource(s string) (Source, error) {
	if slices.Contains(Groups, Group(s)) {
		return Source{Group: Group(s)}, nil
	}
	r, err := ParseRange(s)
	if err != nil {
		return Source{}, fmt.Errorf("%w, nor one of %s, %s, %s and %s", err, Nodes, ControlPlanes, Pods, APIClients)
	}
	return Source{Range: r}, nil
}
