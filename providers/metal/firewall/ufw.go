package firewall

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ufwRule is an allow rule of ufw that carries our mark.
type ufwRule struct {
	proto   string // tcp, udp, … or any
	from    string // a range, or any
	ports   string // "" for all, else as ufw writes them: 80,9000:9100
	comment string // without our mark
}

const (
	ufwPrefix = "ufw: "
	// ufwMark begins the comment of each rule that is ours: destroying removes
	// what has it and nothing else.
	ufwMark = "stoke: "
)

func (r ufwRule) String() string {
	return ufwPrefix + r.command() + fmt.Sprintf(" comment %q", r.comment)
}

func (r ufwRule) command() string {
	return strings.Join(r.args(), " ")
}

// args is the rule as ufw takes it.
func (r ufwRule) args() []string {
	args := []string{"allow"}
	if r.proto != "any" {
		args = append(args, "proto", r.proto)
	}
	args = append(args, "from", r.from, "to", "any")
	if r.ports != "" {
		args = append(args, "port", r.ports)
	}
	return args
}

// ufwProtocols are those that ufw knows, beside tcp and udp.
var ufwProtocols = map[Protocol]string{TCP: "tcp", UDP: "udp", 2: "igmp", 41: "ipv6", 47: "gre", 50: "esp", 51: "ah", 112: "vrrp"}

// ufwRules are the Spec's openings as rules of ufw, each for one source: ufw
// has no sets, and takes a good part of a second for a rule. cannot is what ufw
// has no rule for.
func (s Spec) ufwRules() (rules []ufwRule, cannot []string) {
	seen := map[ufwRule]bool{} // without comments: ufw keeps one rule of a kind
	for _, o := range s.openings() {
		sources := []netip.Prefix{o.from.Range}
		if o.from.Group != "" {
			sources = s.members(o.from.Group)
		}
		r := ufwRule{proto: "any", ports: ufwPorts(o.ports), comment: o.comment}
		if o.ports.Protocol != AnyProtocol {
			known := false
			if r.proto, known = ufwProtocols[o.ports.Protocol]; !known {
				cannot = append(cannot, fmt.Sprintf("ufw has no rules for %s (%s)", o.ports, o.comment))
				continue
			}
		}
		for _, source := range sources {
			r.from = "any"
			if source.IsValid() {
				r.from = prefixText(source)
			}
			bare := r
			if bare.comment = ""; !seen[bare] {
				seen[bare] = true
				rules = append(rules, r)
			}
		}
	}
	return rules, cannot
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

// guard is the table beside ufw: it judges node ports alone. ufw's rules for
// what comes in do not see a node port that goes on to a pod.
func (s Spec) guard() Table {
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
	if b != UFW {
		return s.Table().Lines()
	}
	rules, _ := s.ufwRules()
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

// readUFW finds out whether ufw is what the machine uses, and reads our rules,
// those of a ufw that is switched off, too.
func (h *Have) readUFW(said map[string][]byte) error {
	for _, name := range []string{"user.rules", "user6.rules"} {
		for line := range strings.Lines(string(said[name])) {
			r, ours, err := readUFWRule(line)
			if err != nil {
				return fmt.Errorf("/etc/ufw/%s: %w", name, err)
			}
			// A rule for everybody stands in both files.
			if ours && (name == "user.rules" || r.from != "any" || !slices.Contains(h.ufw, r)) {
				h.ufw = append(h.ufw, r)
			}
		}
	}
	h.ufwEnabled = strings.TrimSpace(string(said["ufw.enabled"]))
	on := setting(said["ufw.conf"], "ENABLED") == "yes"
	active := strings.TrimSpace(string(said["ufw.status"])) == "Status: active"
	switch {
	case !active && (!on || h.ufwEnabled != "enabled"):
		return nil // it is installed and does nothing, now and after a reboot
	case !active:
		return fmt.Errorf("ufw is enabled but not active: it would take over after a reboot. Run `ufw enable` or `ufw disable` there")
	case !on:
		return fmt.Errorf("ufw is active but not enabled in /etc/ufw/ufw.conf: run `ufw enable` or `ufw disable` there")
	case setting(said["ufw.default"], "DEFAULT_INPUT_POLICY") == "ACCEPT":
		return fmt.Errorf("ufw accepts whatever no rule denies, so that allowing means nothing: run `ufw default deny incoming` there, once SSH is allowed")
	}
	h.Backend = UFW
	return nil
}

// setting is a variable of one of ufw's configuration files.
func setting(file []byte, name string) string {
	value := ""
	for line := range strings.Lines(string(file)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			value = strings.Trim(v, `"' `)
		}
	}
	return value
}

// readUFWRule reads a line of ufw's user.rules. Those of rules look like
//
//	### tuple ### allow tcp 22 0.0.0.0/0 any 10.0.0.1 in comment=73746f6b65
//
// with the comment in hexadecimal; everything else in that file follows from
// them.
func readUFWRule(line string) (r ufwRule, ours bool, err error) {
	line, isRule := strings.CutPrefix(strings.TrimSpace(line), "### tuple ### ")
	at := strings.LastIndex(line, " comment=")
	if !isRule || at < 0 {
		return ufwRule{}, false, nil
	}
	comment, err := hex.DecodeString(line[at+len(" comment="):])
	if err != nil {
		return ufwRule{}, false, fmt.Errorf("comment of %q: %w", shorten(line), err)
	}
	r.comment, ours = strings.CutPrefix(string(comment), ufwMark)
	if !ours {
		return ufwRule{}, false, nil
	}
	fields := strings.Fields(line[:at])
	if len(fields) != 7 || fields[0] != "allow" || fields[4] != "any" || fields[6] != "in" ||
		fields[3] != "0.0.0.0/0" && fields[3] != "::/0" {
		return ufwRule{}, false, nil // somebody's own, whatever its comment says
	}
	r.proto, r.ports, r.from = fields[1], fields[2], fields[5]
	if r.ports == "any" {
		r.ports = ""
	}
	if r.from == "0.0.0.0/0" || r.from == "::/0" {
		r.from = "any"
	}
	return r, true, nil
}
