package firewall

import (
	"cmp"
	"net/netip"
	"slices"
)

// opening lets somebody reach something. It is what nftables and ufw have in
// common.
type opening struct {
	from     Source // the zero value is everybody
	ports    Ports
	comment  string
	nodePort bool // may be one, so that it has to be open before destination NAT, too
}

// openings are all that a Spec opens, in the order in which rules stand.
func (s Spec) openings() []opening {
	var open []opening
	allow := func(comment string, ports Ports, from ...Group) {
		for _, g := range from {
			open = append(open, opening{from: Source{Group: g}, ports: ports, comment: comment})
		}
	}
	port := cmp.Or(s.SSHPort, defaultSSHPort)
	allow("SSH", Ports{TCP, port, port}, sshClients)
	if s.Role == ControlPlane {
		allow("API server", Ports{TCP, 6443, 6443}, Nodes, Pods, APIClients)
		allow("etcd", Ports{TCP, 2379, 2380}, ControlPlanes)
	}
	if s.Role != NoRole {
		allow("kubelet", Ports{TCP, 10250, 10250}, Nodes, Pods)
		for _, ports := range s.CNI {
			allow("pod network", ports, Nodes)
		}
		for _, r := range s.NodePorts {
			r.Comment = cmp.Or(r.Comment, "node port")
			open = append(open, r.openings()...)
		}
	}
	for _, r := range s.Rules {
		open = append(open, r.openings()...)
	}
	return slices.DeleteFunc(open, func(o opening) bool { return o.from.Group != "" && len(s.members(o.from.Group)) == 0 })
}

func (r Rule) openings() []opening {
	var open []opening
	for _, ports := range r.Ports {
		_, nodePort := ports.overlap(NodePortRange.First, NodePortRange.Last)
		nodePort = nodePort && slices.Contains([]Protocol{AnyProtocol, TCP, UDP, SCTP}, ports.Protocol)
		o := opening{ports: ports, comment: r.Comment, nodePort: nodePort}
		if len(r.From) == 0 {
			open = append(open, o)
		}
		for _, o.from = range r.From {
			o.from.Range = o.from.Range.Masked()
			open = append(open, o)
		}
	}
	return open
}

// members are the addresses of a group, as few ranges as they need, sorted.
func (s Spec) members(g Group) []netip.Prefix {
	switch g {
	case Nodes:
		return merge(hosts(slices.Concat(s.Nodes, s.ControlPlanes)))
	case ControlPlanes:
		return merge(hosts(s.ControlPlanes))
	case Pods:
		return merge(s.Pods)
	case APIClients:
		return merge(s.APIClients)
	case sshClients:
		return merge(s.SSH)
	}
	return nil
}

func hosts(addrs []netip.Addr) []netip.Prefix {
	out := make([]netip.Prefix, len(addrs))
	for i, a := range addrs {
		out[i] = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
	}
	return out
}

// merge sorts ranges and leaves out those within another: a set of nftables
// takes no two that overlap.
func merge(ranges []netip.Prefix) []netip.Prefix {
	sorted := make([]netip.Prefix, 0, len(ranges))
	for _, r := range ranges {
		if a := r.Addr(); a.Is4In6() && r.Bits() >= 96 {
			r = netip.PrefixFrom(a.Unmap(), r.Bits()-96)
		}
		sorted = append(sorted, r.Masked())
	}
	slices.SortFunc(sorted, netip.Prefix.Compare)
	out := sorted[:0]
	for _, r := range sorted {
		if n := len(out); n == 0 || !out[n-1].Overlaps(r) {
			out = append(out, r)
		}
	}
	return out
}

// Allows reports whether an address may open a connection to a port.
func (s Spec) Allows(protocol Protocol, port uint16, from netip.Addr) bool {
	return newJudge(s).allows(protocol, port, from)
}

// judge answers Allows many times.
type judge struct {
	open   []opening
	groups map[Group][]netip.Prefix
}

func newJudge(s Spec) judge {
	j := judge{s.openings(), map[Group][]netip.Prefix{}}
	for _, o := range j.open {
		if g := o.from.Group; g != "" && j.groups[g] == nil {
			j.groups[g] = s.members(g)
		}
	}
	return j
}

func (j judge) allows(protocol Protocol, port uint16, from netip.Addr) bool {
	return slices.ContainsFunc(j.open, func(o opening) bool {
		return o.ports.contains(protocol, port) && j.includes(o.from, from.Unmap())
	})
}

func (j judge) includes(s Source, a netip.Addr) bool {
	switch {
	case s == Source{}:
		return true
	case s.Group == "":
		return s.Range.Contains(a)
	}
	ranges := j.groups[s.Group]
	at, found := slices.BinarySearchFunc(ranges, a, func(r netip.Prefix, a netip.Addr) int {
		return r.Addr().Compare(a)
	})
	return found || at > 0 && ranges[at-1].Contains(a)
}
