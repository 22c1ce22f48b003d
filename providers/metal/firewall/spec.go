package firewall

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Role is what a machine is in its cluster.
type Role string

const (
	NoRole       Role = "none" // only SSH and the rules declared by hand
	Worker       Role = "worker"
	ControlPlane Role = "control-plane"
)

// Spec is what is declared about a machine's firewall. Addresses of nodes and
// pods are IPv4; the ranges that people connect from may be IPv6.
type Spec struct {
	Role          Role
	Nodes         []netip.Addr   // every node of the cluster; that this machine is among them does no harm
	ControlPlanes []netip.Addr   // those of them that are control planes
	Pods          []netip.Prefix // the pods' networks
	CNI           []Ports        // what the network plugin needs between nodes, see CNIPorts
	APIClients    []netip.Prefix // who uses the API server beside nodes and pods
	NodePorts     []Rule         // what pods offer on every node; who is not declared is dropped
	SSH           []netip.Prefix // who may log in
	SSHPort       uint16         // 0: 22
	Rules         []Rule         // anything else

	// Confirm is how long the machine waits for the confirmation of new rules
	// before it goes back to those it had; 0: a minute.
	Confirm time.Duration
}

// Rule opens ports to somebody.
type Rule struct {
	Ports   []Ports
	From    []Source // nobody in it means everybody
	Comment string
}

// Ports is a range of ports of a protocol, or the whole of one.
type Ports struct {
	Protocol    Protocol
	First, Last uint16 // both 0: the protocol has no ports, or all of them
}

// Protocol is an IP protocol by its number; AnyProtocol is all of them.
type Protocol uint8

const (
	AnyProtocol Protocol = 0
	TCP         Protocol = 6
	UDP         Protocol = 17
	SCTP        Protocol = 132
)

// Source is who may connect: a group of the Spec by its name, or a range of
// addresses.
type Source struct {
	Group Group
	Range netip.Prefix // for no group
}

// Group names addresses of a Spec.
type Group string

const (
	Nodes         Group = "nodes"
	ControlPlanes Group = "control_planes"
	Pods          Group = "pods"
	APIClients    Group = "api_clients"
	sshClients    Group = "ssh"
)

// Groups are the groups that a rule may be open to.
var Groups = []Group{Nodes, ControlPlanes, Pods, APIClients}

// NodePortRange is where Kubernetes puts node ports (--service-node-port-range).
var NodePortRange = struct{ First, Last uint16 }{30000, 32767}

const (
	defaultConfirm = time.Minute
	defaultSSHPort = 22
)

// maxComment keeps the line under nft's 128 bytes with room for a prefix.
const maxComment = 100

// Problem is one thing that is wrong with a Spec.
type Problem struct {
	Argument string // which argument, as people write it
	Text     string
}

// Problems says everything that is wrong, in the order of the fields.
func (s Spec) Problems() []Problem {
	var p problems
	if !slices.Contains([]Role{NoRole, Worker, ControlPlane}, s.Role) {
		p.add("role", "%q is not a role: use control-plane, worker or none", s.Role)
	}
	for _, a := range s.Nodes {
		p.node("peers", a)
	}
	for _, a := range s.ControlPlanes {
		p.node("control_planes", a)
	}
	for _, r := range s.Pods {
		if !r.IsValid() || !r.Addr().Unmap().Is4() {
			p.add("pod_network", "the network %s is not IPv4: clusters of IPv6 and of both are not supported yet", r)
		}
	}
	if s.Role != NoRole && len(s.Nodes) == 0 && len(s.ControlPlanes) == 0 {
		p.add("peers", "a machine with the role %s needs to know the other nodes: list their addresses in peers", s.Role)
	}
	if len(s.SSH) == 0 {
		p.add("ssh_from", "no login would be possible, not even for stoke: declare the ranges that SSH is used from")
	}
	for i, r := range s.NodePorts {
		p.nodePort(i, r)
	}
	for i, r := range s.Rules {
		p.rule(fmt.Sprintf("rule[%d]", i), r)
	}
	if s.Confirm != 0 && (s.Confirm < 10*time.Second || s.Confirm > 10*time.Minute) {
		p.add("confirm_within", "%s is not between 10s and 10m", s.Confirm)
	}
	return p
}

type problems []Problem

func (p *problems) add(argument, format string, args ...any) {
	*p = append(*p, Problem{argument, fmt.Sprintf(format, args...)})
}

func (p *problems) node(argument string, a netip.Addr) {
	switch {
	case !a.IsValid():
		p.add(argument, "an address is missing")
	case !a.Unmap().Is4():
		p.add(argument, "the address %s is not IPv4: clusters of IPv6 and of both are not supported yet", a)
	case a.Unmap().IsUnspecified(), a.Unmap().IsMulticast(), a.Unmap() == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		p.add(argument, "the address %s is not valid for a machine", a)
	}
}

func (p *problems) nodePort(i int, r Rule) {
	argument := fmt.Sprintf("node_ports[%d]", i)
	p.rule(argument, r)
	for _, ports := range r.Ports {
		if ports.First < NodePortRange.First || ports.Last > NodePortRange.Last {
			p.add(argument, "port %s is outside of %d-%d, where node ports are: use rule for another port",
				ports, NodePortRange.First, NodePortRange.Last)
		}
	}
}

func (p *problems) rule(argument string, r Rule) {
	if len(r.Ports) == 0 {
		p.add(argument, "it opens nothing: list ports or name a protocol")
	}
	for _, ports := range r.Ports {
		switch hasPorts := ports.Protocol == TCP || ports.Protocol == UDP || ports.Protocol == SCTP; {
		case ports.First > ports.Last:
			p.add(argument, "the range %s ends before it begins", ports)
		case ports.First == 0 && ports.Last > 0:
			p.add(argument, "port 0 cannot be opened")
		case ports.First > 0 && !hasPorts:
			p.add(argument, "protocol %s has no ports", ports.Protocol)
		}
	}
	for _, from := range r.From {
		if from.Group == "" && !from.Range.IsValid() || from.Group != "" && !slices.Contains(Groups, from.Group) {
			p.add(argument, "%q is neither a range of addresses nor one of %v", from.Group, Groups)
		}
	}
	if len(r.Comment) > maxComment || strings.ContainsFunc(r.Comment, func(c rune) bool {
		return c == '"' || c == '\'' || c == '\\' || c == unicode.ReplacementChar || !unicode.IsPrint(c)
	}) {
		p.add(argument, "the comment has more than %d bytes, or a quote, a backslash or a character that cannot be printed", maxComment)
	}
}
