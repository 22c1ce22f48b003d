package nvidia

import (
	"slices"
	"strings"
)

// offer is what apt has of a package.
type offer struct {
	candidate string   // what it would install; "" for nothing
	versions  []string // all that it knows
}

// all are the versions that apt could install.
func (o offer) all() []string {
	if o.candidate == "" {
		return o.versions
	}
	return append([]string{o.candidate}, o.versions...)
}

// has reports whether one of the versions is as a pattern says.
func (o offer) has(pattern string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return slices.ContainsFunc(o.all(), func(v string) bool { return v == prefix || open && strings.HasPrefix(v, prefix) })
}

// parsePolicy reads apt-cache policy.
func parsePolicy(out []byte) map[string]offer {
	found := map[string]offer{}
	name := ""
	for _, line := range strings.Split(string(out), "\n") {
		if line != "" && line[0] != ' ' {
			name = strings.TrimSuffix(line, ":")
			found[name] = offer{}
			continue
		}
		o := found[name]
		words := strings.Fields(line)
		switch {
		case name == "" || len(words) < 2:
			continue
		case words[0] == "Candidate:":
			if words[1] != "(none)" {
				o.candidate = words[1]
			}
		case strings.HasPrefix(line, " *** "):
			o.versions = append(o.versions, words[1])
		case strings.HasPrefix(line, "     ") && line[5] != ' ':
			o.versions = append(o.versions, words[0])
		}
		found[name] = o
	}
	return found
}
