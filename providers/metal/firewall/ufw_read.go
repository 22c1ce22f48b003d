package firewall

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// readUFW finds out whether ufw is what the machine uses, and reads our rules,
// those of a ufw that is switched off, too.
func (h *Have) readUFW(said map[string][]byte) error {
	h.theirs = map[string]string{}
	for _, name := range []string{"user.rules", "user6.rules"} {
		for line := range strings.Lines(string(said[name])) {
			r, action, err := readUFWRule(line)
			switch {
			case err != nil:
				return fmt.Errorf("/etc/ufw/%s: %w", name, err)
			case action == "":
			case action == ufwMark:
				h.ufw = append(h.ufw, r)
			default:
				h.theirs[r.command()] = action
			}
			if text := theirRule(line); action != ufwMark && text != "" {
				h.tuples = append(h.tuples, tuple(line))
				if !slices.Contains(h.Theirs, text) {
					h.Theirs = append(h.Theirs, text)
				}
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
		h.unfit = errors.New("ufw is enabled but not active: it would take over after a reboot. Run `ufw enable` or `ufw disable` there")
	case !on:
		h.unfit = errors.New("ufw is active but not enabled in /etc/ufw/ufw.conf: run `ufw enable` or `ufw disable` there")
	case setting(said["ufw.default"], "DEFAULT_INPUT_POLICY") == "ACCEPT":
		h.unfit = errors.New("ufw accepts whatever no rule denies, so that allowing means nothing: run `ufw default deny incoming` there, once SSH is allowed")
	}
	if h.Backend = UFW; setting(said["ufw.default"], "IPV6") == "no" {
		h.Backend = UFW4
	}
	return nil
}

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
// them. action is ufwMark for one of ours, what somebody else's does where ufw
// would take ours for the same rule, and "" for any other line.
func readUFWRule(line string) (r ufwRule, action string, err error) {
	line, isRule := strings.CutPrefix(strings.TrimSpace(line), "### tuple ### ")
	if !isRule {
		return r, "", nil
	}
	ours := false
	if at := strings.LastIndex(line, " comment="); at >= 0 {
		comment, err := hex.DecodeString(line[at+len(" comment="):])
		if err != nil {
			return r, "", fmt.Errorf("comment of %q: %w", shorten(line), err)
		}
		line = line[:at]
		r.Comment, ours = strings.CutPrefix(string(comment), ufwMark)
	}
	fields := strings.Fields(line)
	if len(fields) != 7 || fields[4] != "any" || fields[6] != "in" || fields[3] != "0.0.0.0/0" && fields[3] != "::/0" {
		return ufwRule{}, "", nil // a foreign rule, whatever its comment
	}
	action, r.Proto, r.Ports, r.From = fields[0], fields[1], fields[2], fields[5]
	if r.Ports == "any" {
		r.Ports = ""
	}
	if ours && action == "allow" {
		action = ufwMark
	}
	return r, action, nil
}

// tuple are the fields of a line that is a rule.
func tuple(line string) []string {
	text, isRule := strings.CutPrefix(strings.TrimSpace(line), "### tuple ### ")
	if !isRule {
		return nil
	}
	text, _, _ = strings.Cut(text, " comment=")
	return strings.Fields(text)
}

// LetsIn reports whether a rule of ufw that is somebody else's lets an address
// connect to a port: the first that is about both decides. The zero address is
// anybody's.
func (h Have) LetsIn(protocol Protocol, port uint16, from netip.Addr) bool {
	if !h.Backend.isUFW() {
		return false
	}
	for _, f := range h.tuples {
		source, err := parseRange(f[5])
		if err != nil || from.IsValid() && !source.Contains(from.Unmap()) || f[1] != "any" && f[1] != ufwProtocols[protocol] || !strings.HasSuffix(f[3], "/0") || f[4] != "any" || !slices.Contains(f[6:], "in") {
			continue
		}
		about := f[2] == "any" || slices.ContainsFunc(strings.Split(f[2], ","), func(part string) bool {
			ports, err := ParsePorts(protocol, strings.ReplaceAll(part, ":", "-"))
			return err == nil && ports.contains(protocol, port)
		})
		lets := strings.HasPrefix(f[0], "allow") || strings.HasPrefix(f[0], "limit")
		if about && (lets || from.IsValid() || source.Bits() == 0) { // a few who are kept out are not all
			return lets
		}
	}
	return false
}

// theirRule describes a foreign rule for incoming connections; it returns ""
// for any other line.
func theirRule(line string) string {
	f := tuple(line)
	if len(f) < 7 || strings.HasPrefix(f[0], "route:") || !slices.ContainsFunc(f[6:], func(w string) bool { return w == "in" || strings.HasPrefix(w, "in_") }) {
		return ""
	}
	from := f[5]
	if strings.HasSuffix(from, "/0") {
		from = "anywhere"
	}
	ports := f[2]
	if f[1] != "any" {
		ports += "/" + f[1]
	}
	return fmt.Sprintf("%.20s %.40s from %.50s", f[0], ports, from)
}

// standIn counts foreign rules that equal ours as ours. ufw keeps one rule of a
// kind: ours would take their place, and destroying would remove them.
func (h *Have) standIn(want Spec) {
	if !h.Backend.isUFW() {
		return
	}
	ours := map[string]bool{}
	for _, r := range h.ufw {
		ours[r.command()] = true
	}
	rules, _ := want.ufwRules(h.Backend)
	for _, r := range rules {
		action := h.theirs[r.command()]
		switch {
		case action == "" || ours[r.command()]:
		case strings.HasPrefix(action, "allow"), strings.HasPrefix(action, "limit"):
			h.standIns = append(h.standIns, r)
		default:
			h.against = append(h.against, fmt.Sprintf("a rule of ufw says %s where this one is declared: %s", action, r.command()))
		}
	}
}
