package firewall

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// tableName is the nftables table that is stoke's own, of the family inet.
const tableName = "stoke"

// NftTable is an nftables table as text: what Spec.Table makes and nft loads, and
// what ReadTable reads back.
type NftTable struct {
	Sets   []Set
	Chains []Chain
	Other  []string // what is neither: somebody added it by hand
}

// Set is a named set of addresses.
type Set struct {
	Name     string
	Type     string // as nft says it, such as "type ipv4_addr; flags interval"
	Elements []string
}

// Chain is a chain of rules.
type Chain struct {
	Name  string
	Hook  string // such as "type filter hook input priority 0; policy drop"; "" for one that is jumped to
	Rules []string
}

// A chain before destination NAT (-100) and after connection tracking (-200):
// only there can a node port be told from a reply that is masqueraded to a
// port of that range.
const (
	inputHook      = "type filter hook input priority 0; policy drop"
	preroutingHook = "type filter hook prerouting priority -150; policy accept"
)

// always is what every machine has to let in. Invalid packets are not dropped
// here: they are dropped at the end, unless a rule accepts their source.
var always = []string{
	"ct state established,related accept",
	`iifname "lo" accept`,
	`meta l4proto 1 accept comment "ICMP"`,
	`meta l4proto 58 accept comment "ICMPv6: neighbour discovery and errors"`,
	`udp sport 67 udp dport 68 accept comment "DHCP client"`,
	`ip6 saddr fe80::/10 udp sport 547 udp dport 546 accept comment "DHCPv6 client"`,
}

// Table is the table that the Spec asks for.
func (s Spec) Table() NftTable {
	b := tableBuilder{spec: s, sets: map[string]Set{}}
	input := Chain{Name: "input", Hook: inputHook, Rules: slices.Clone(always)}
	nodePorts := Chain{Name: "nodeports"}
	for _, o := range s.openings() {
		input.Rules = append(input.Rules, b.rules(o)...)
		if ports, ok := o.ports.overlap(NodePortRange.First, NodePortRange.Last); ok && o.nodePort {
			for _, p := range transports(ports) {
				o.ports = p
				nodePorts.Rules = append(nodePorts.Rules, b.rules(o)...)
			}
		}
	}
	t := NftTable{Chains: []Chain{input}}
	if s.Role != NoRole {
		nodePorts.Rules = append(nodePorts.Rules, "drop")
		t.Chains = append(t.Chains, nodePorts, nodePortGuard())
	}
	for _, set := range b.sets {
		t.Sets = append(t.Sets, set)
	}
	t.sort()
	return t
}

// transports takes a range of any protocol apart into those that have ports.
func transports(p Ports) []Ports {
	if p.Protocol != AnyProtocol {
		return []Ports{p}
	}
	return []Ports{{TCP, p.First, p.Last}, {UDP, p.First, p.Last}, {SCTP, p.First, p.Last}}
}

// nodePortGuard sends new connections to node ports of this machine to the
// chain nodeports. Replies, and what only passes through, are not new or not
// local.
func nodePortGuard() Chain {
	c := Chain{Name: "prerouting", Hook: preroutingHook, Rules: []string{`iifname "lo" accept`}}
	for _, p := range transports(Ports{First: NodePortRange.First, Last: NodePortRange.Last}) {
		c.Rules = append(c.Rules, fmt.Sprintf("ct state new fib daddr type local %s jump nodeports", portsMatch(p)))
	}
	return c
}

type tableBuilder struct {
	spec Spec
	sets map[string]Set
}

// rules are the rules of an opening: one, or one for each family of a group.
func (b tableBuilder) rules(o opening) []string {
	var froms []string
	switch {
	case o.from == Source{}:
		froms = []string{""}
	case o.from.Group == "":
		froms = []string{saddr(o.from.Range.Addr()) + prefixText(o.from.Range)}
	default:
		froms = b.group(o.from.Group)
	}
	var rules []string
	for _, from := range froms {
		words := []string{from, portsMatch(o.ports), "accept"}
		if o.comment != "" {
			words = append(words, "comment "+strconv.Quote(o.comment))
		}
		words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
		rules = append(rules, strings.Join(words, " "))
	}
	return rules
}

// group makes the sets of a group and returns the matches on them.
func (b tableBuilder) group(g Group) []string {
	var families [2][]string
	for _, r := range b.spec.members(g) {
		if r.Addr().Is4() {
			families[0] = append(families[0], prefixText(r))
		} else {
			families[1] = append(families[1], prefixText(r))
		}
	}
	var matches []string
	for i, elements := range families {
		if len(elements) == 0 {
			continue
		}
		set, match := Set{Name: string(g), Type: "type ipv4_addr", Elements: elements}, "ip saddr @"
		if i == 1 {
			set.Name, set.Type, match = set.Name+"6", "type ipv6_addr", "ip6 saddr @"
		}
		if g != Nodes && g != ControlPlanes { // those are single addresses
			set.Type += "; flags interval"
		}
		b.sets[set.Name] = set
		matches = append(matches, match+set.Name)
	}
	return matches
}

func saddr(a netip.Addr) string {
	if a.Is4() {
		return "ip saddr "
	}
	return "ip6 saddr "
}

func prefixText(r netip.Prefix) string {
	if r.IsSingleIP() {
		return r.Addr().String()
	}
	return r.String()
}

func portsMatch(p Ports) string {
	switch {
	case p.Protocol == AnyProtocol:
		return ""
	case p.First == 0:
		return fmt.Sprintf("meta l4proto %d", p.Protocol)
	case p.First == p.Last:
		return fmt.Sprintf("%s dport %d", p.Protocol, p.First)
	}
	return fmt.Sprintf("%s dport %d-%d", p.Protocol, p.First, p.Last)
}

// sort puts the parts of a table into the order in which tables are compared.
// The order of rules is kept: it matters.
func (t *NftTable) sort() {
	slices.SortFunc(t.Sets, func(a, b Set) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(t.Chains, func(a, b Chain) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range t.Sets {
		slices.SortFunc(s.Elements, compareElements)
	}
	slices.Sort(t.Other)
}

// compareElements orders addresses by number and anything else by its text.
func compareElements(a, b string) int {
	x, xErr := parseRange(a)
	y, yErr := parseRange(b)
	if xErr != nil || yErr != nil {
		return strings.Compare(a, b)
	}
	return x.Compare(y)
}

// Lines is the table line by line: rules, the hooks of chains, the elements of
// sets. Two tables do the same when their lines are the same.
func (t NftTable) Lines() []string {
	var lines []string
	for _, c := range t.Chains {
		if c.Hook != "" {
			lines = append(lines, c.Name+": "+c.Hook)
		}
		for _, r := range c.Rules {
			lines = append(lines, c.Name+": "+r)
		}
	}
	for _, s := range t.Sets {
		for _, e := range s.Elements {
			lines = append(lines, "@"+s.Name+": "+e)
		}
		lines = append(lines, "@"+s.Name+": "+s.Type)
	}
	return append(lines, t.Other...)
}

const fileHeader = `# The firewall of this machine. stoke writes this file (metal_firewall) and reads the table back:
# what is changed by hand here or with nft is shown by the next plan and put right by the next apply.
`

// replace makes loading one step: whatever the table was, it is this now.
const replace = "table inet " + tableName + "\ndelete table inet " + tableName + "\n"

// File is the table as a file for nft -f, which replaces the whole table and
// touches no other. That of a table without chains removes it.
func (t NftTable) File() []byte {
	var b strings.Builder
	b.WriteString(fileHeader + replace)
	if len(t.Chains) == 0 {
		return []byte(b.String())
	}
	b.WriteString("table inet " + tableName + " {\n")
	for _, s := range t.Sets {
		fmt.Fprintf(&b, "\tset %s {\n", s.Name)
		for line := range strings.SplitSeq(s.Type, "; ") {
			fmt.Fprintf(&b, "\t\t%s\n", line)
		}
		fmt.Fprintf(&b, "\t\telements = {\n\t\t\t%s\n\t\t}\n\t}\n", strings.Join(s.Elements, ",\n\t\t\t"))
	}
	for _, c := range t.Chains {
		fmt.Fprintf(&b, "\tchain %s {\n", c.Name)
		if c.Hook != "" {
			fmt.Fprintf(&b, "\t\t%s;\n", c.Hook)
		}
		for _, r := range c.Rules {
			fmt.Fprintf(&b, "\t\t%s\n", r)
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n")
	return []byte(b.String())
}
