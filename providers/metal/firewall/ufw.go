package firewall

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ufwRule is an allow rule of ufw that carries our mark. An opening for all
// sources is two rules: ufw keeps IPv4 and IPv6 apart.
type ufwRule struct {
	Proto   string // tcp, udp, … or any
	From    string // a range
	Ports   string // "" for all, else as ufw writes them: 80,9000:9100
	Comment string // without our mark
}

const (
	ufwPrefix = "ufw: "
	// ufwMark begins the comment of each rule that is ours: destroying removes
	// what has it and nothing else.
	ufwMark = "stoke: "
)

func (r ufwRule) String() string {
	return ufwPrefix + r.command() + fmt.Sprintf(" comment %q", r.Comment)
}

func (r ufwRule) command() string {
	return strings.Join(r.args(), " ")
}

func (r ufwRule) args() []string {
	args := []string{"allow"}
	if r.Proto != "any" {
		args = append(args, "proto", r.Proto)
	}
	args = append(args, "from", r.From, "to", "any")
	if r.Ports != "" {
		args = append(args, "port", r.Ports)
	}
	return args
}

// ufwProtocols are the protocols that ufw supports, in addition to tcp and udp;
// the last two only over IPv4.
var ufwProtocols = map[Protocol]string{TCP: "tcp", UDP: "udp", 47: "gre", 50: "esp", 51: "ah", 112: "vrrp", 2: "igmp", 41: "ipv6"}

func (p Protocol) hasUFW(source netip.Prefix) bool { return p != 2 && p != 41 || source.Addr().Is4() }

// ufwRules are the Spec's openings as rules of ufw, each for one source: ufw
// has no sets, and takes a good part of a second for a rule. cannot is what ufw
// has no rule for. A rule for all sources is not possible if ufw leaves IPv6
// out.
func (s Spec) ufwRules(b Backend) (rules []ufwRule, cannot []string) {
	seen := map[string]bool{} // ufw keeps one rule of a kind
	for _, o := range s.openings() {
		r := ufwRule{Proto: "any", Ports: ufwPorts(o.ports), Comment: o.comment}
		if o.ports.Protocol != AnyProtocol {
			known := false
			if r.Proto, known = ufwProtocols[o.ports.Protocol]; !known {
				cannot = append(cannot, fmt.Sprintf("ufw has no rules for %s (%s)", o.ports, o.comment))
				continue
			}
		}
		for _, source := range s.sources(o.from) {
			r.From = prefixText(source)
			all := source.Bits() == 0
			switch {
			case !o.ports.Protocol.hasUFW(source) && !all:
				cannot = append(cannot, fmt.Sprintf("ufw has no rules for %s over IPv6 (%s)", o.ports, source))
			case b == UFW4 && !source.Addr().Is4() && !all:
				cannot = append(cannot, fmt.Sprintf("its ufw leaves IPv6 out (IPV6=no in /etc/default/ufw), and so has no rules for %s", source))
			case seen[r.command()], !source.Addr().Is4() && (b == UFW4 || !o.ports.Protocol.hasUFW(source)):
			default:
				seen[r.command()] = true
				rules = append(rules, r)
			}
		}
	}
	return rules, cannot
}

func (s Spec) sources(from Source) []netip.Prefix {
	switch {
	case from == Source{}:
		return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
	case from.Group != "":
		return s.members(from.Group)
	}
	return []netip.Prefix{from.Range}
}

func ufwPorts(p Ports) string {
	switch {
	case p.First == 0:
		return ""
	case p.First == p.Last:
		return fmt.Sprint(p.First)
	}
	return fmt.Sprintf("%d:%d", p.First, p.Last)
}

// guard is a table next to ufw that only filters node ports. ufw's rules for
// incoming packets do not apply to a node port that is forwarded to a pod.
func (s Spec) guard() NftTable {
	t := s.Table()
	t.Chains = slices.DeleteFunc(t.Chains, func(c Chain) bool { return c.Name == "input" })
	used := map[string]bool{}
	for _, c := range t.Chains {
		for _, r := range c.Rules {
			for word := range strings.FieldsSeq(r) {
				used[word] = used[word] || strings.HasPrefix(word, "@")
			}
		}
	}
	t.Sets = slices.DeleteFunc(t.Sets, func(s Set) bool { return !used["@"+s.Name] })
	return t
}

// Lines are the lines that a machine's firewall should have.
func (s Spec) Lines(b Backend) []string {
	if !b.isUFW() {
		return s.Table().Lines()
	}
	rules, _ := s.ufwRules(b)
	return append(s.guard().Lines(), ufwLines(rules)...)
}

// ufwLines are sorted: all of our rules allow, so their order means nothing.
func ufwLines(rules []ufwRule) []string {
	var lines []string
	for _, r := range rules {
		lines = append(lines, r.String())
	}
	slices.Sort(lines)
	return lines
}
