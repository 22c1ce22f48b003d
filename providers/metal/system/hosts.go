package system

import (
	"slices"
	"strings"
)

// ownAddress is what Debian resolves a machine's own name to where its address
// may change (Debian Reference, 5.1.1).
const ownAddress = "127.0.1.1"

// hostsLine splits a line of /etc/hosts; ok is false where it names nothing.
func hostsLine(line string) (address string, names []string, comment string, ok bool) {
	text, comment, has := strings.Cut(line, "#")
	if has {
		comment = "#" + comment
	}
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return "", nil, comment, false
	}
	return fields[0], fields[1:], comment, true
}

// hostsHold tells whether a machine finds its own name in /etc/hosts, and finds
// no other name at the address that is kept for it.
func hostsHold(text, name string) bool {
	found := false
	for line := range strings.SplitSeq(text, "\n") {
		address, names, _, ok := hostsLine(line)
		if !ok {
			continue
		}
		has := slices.Contains(names, name)
		if address == ownAddress && !has {
			return false
		}
		found = found || has
	}
	return found
}

// rename brings /etc/hosts into step with a new name. On the machine's own line
// the old names change, with their domain; aliases stay. Where it is named
// nowhere, a line is added below that of localhost.
func rename(text, name string, old ...string) string {
	if hostsHold(text, name) {
		return text
	}
	elsewhere := false
	for line := range strings.SplitSeq(text, "\n") {
		address, names, _, ok := hostsLine(line)
		elsewhere = elsewhere || ok && address != "127.0.0.1" && address != ownAddress && slices.Contains(names, name)
	}
	return eachOwn(text, elsewhere, func(names []string, comment string) string { return ownLine(renamed(names, name, old), comment) })
}

// eachOwn puts others in the place of the machine's own lines; without any, it adds
// one below the line of localhost, unless it is known not to be needed.
func eachOwn(text string, found bool, other func(names []string, comment string) string) string {
	var lines []string
	after := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		address, names, comment, ok := hostsLine(strings.TrimRight(line, "\n"))
		if ok && address == ownAddress {
			found, line = true, other(names, comment)
		}
		if lines = append(lines, line); ok && address == "127.0.0.1" {
			after = len(lines)
		}
	}
	if !found {
		if after > 0 && !strings.HasSuffix(lines[after-1], "\n") {
			lines[after-1] += "\n"
		}
		lines = slices.Insert(lines, after, other(nil, ""))
	}
	return strings.Join(lines, "")
}

func ownLine(names []string, comment string) string {
	line := ownAddress + "\t" + strings.Join(names, " ")
	if comment != "" {
		line += " " + comment
	}
	return line + "\n"
}

func renamed(names []string, name string, old []string) []string {
	short, _, qualified := strings.Cut(name, ".")
	var now []string
	add := func(n string) {
		if !slices.Contains(now, n) {
			now = append(now, n)
		}
	}
	if qualified {
		add(name)
	}
	for _, n := range names {
		for _, o := range old {
			o, _, _ = strings.Cut(o, ".")
			rest, is := strings.CutPrefix(n, o)
			switch {
			case o == "" || !is || rest != "" && rest[0] != '.':
			case rest == "":
				n = short
			case qualified:
				n = name
			default:
				n = short + rest
			}
		}
		add(n)
	}
	if !slices.Contains(now, name) {
		now = slices.Insert(now, 0, name)
	}
	add(short)
	return now
}

func ownLines(text string) []string {
	var own []string
	for line := range strings.SplitSeq(text, "\n") {
		if address, _, _, ok := hostsLine(line); ok && address == ownAddress {
			own = append(own, line)
		}
	}
	return own
}

// withOwnLines puts the machine's own lines back as they were, where they stand.
func withOwnLines(text string, own []string) string {
	placed := len(own) == 0
	return eachOwn(text, placed, func([]string, string) string {
		if placed {
			return ""
		}
		placed = true
		return strings.Join(own, "\n") + "\n"
	})
}
