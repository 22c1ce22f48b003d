package packages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stokehq/stoke/runtime/pattern"
)

// source is one entry of apt's sources: the product of its URIs and suites.
type source struct {
	File          string
	URIs, Suites  []string
	Components    []string
	Architectures []string
	SignedBy      string
	Disabled      bool
}

// render writes a repository as a deb822 file (sources.list(5)).
func (r Repository) render(keyring string) string {
	var b strings.Builder
	b.WriteString("# Written by stoke; destroying all that declares it removes it.\n")
	b.WriteString("Types: deb\n")
	field := func(name string, words []string) {
		if len(words) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(words, " "))
		}
	}
	field("URIs", r.URIs)
	field("Suites", r.Suites)
	field("Components", r.Components)
	field("Architectures", r.Architectures)
	field("Signed-By", []string{keyring})
	return b.String()
}

// parseSources reads a sources file of either format, as far as is needed to
// compare and to find two keys for one repository. Entries that it cannot parse
// are left out: apt reports them.
func parseSources(file, content string) []source {
	if strings.HasSuffix(file, ".sources") {
		return parseDeb822(file, content)
	}
	var all []source
	for line := range strings.Lines(content) {
		line, _, _ = strings.Cut(line, "#")
		if s, ok := parseOneLine(line); ok {
			s.File = file
			all = append(all, s)
		}
	}
	return all
}

// parseOneLine reads "deb [option=value …] uri suite component…".
func parseOneLine(line string) (source, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb")
	if !ok || rest == "" || rest[0] != ' ' && rest[0] != '\t' {
		return source{}, false
	}
	var s source
	rest = strings.TrimSpace(rest)
	if inner, ok := strings.CutPrefix(rest, "["); ok {
		options, after, ok := strings.Cut(inner, "]")
		if !ok {
			return source{}, false
		}
		rest = after
		for _, o := range strings.Fields(options) {
			switch k, v, _ := strings.Cut(o, "="); strings.ToLower(k) {
			case "signed-by":
				s.SignedBy = v
			case "arch":
				s.Architectures = strings.Split(v, ",")
			}
		}
	}
	f := strings.Fields(rest)
	if len(f) < 2 {
		return source{}, false
	}
	s.URIs, s.Suites, s.Components = f[:1], f[1:2], f[2:]
	return s, true
}

func parseDeb822(file, content string) []source {
	var all []source
	for stanza := range strings.SplitSeq(trailing.ReplaceAllString(content, "\n")+"\n", "\n\n") {
		fields, field := map[string][]string{}, ""
		for line := range strings.SplitSeq(stanza, "\n") {
			value := line
			if line == "" || line[0] == '#' {
				continue
			}
			if line[0] != ' ' && line[0] != '\t' {
				k, v, ok := strings.Cut(line, ":")
				if field = strings.ToLower(k); !ok {
					field = ""
				}
				value = v
			}
			fields[field] = append(fields[field], strings.Fields(value)...)
		}
		if !slices.Contains(fields["types"], "deb") {
			continue
		}
		s := source{File: file, URIs: fields["uris"], Suites: fields["suites"], Components: fields["components"], Architectures: fields["architectures"]}
		switch by := fields["signed-by"]; len(by) {
		case 0:
		case 1:
			s.SignedBy = by[0]
		default:
			s.SignedBy = "a key inside of the file"
		}
		s.Disabled = slices.Contains([]string{"no", "false", "off", "0"}, strings.ToLower(strings.Join(fields["enabled"], " ")))
		all = append(all, s)
	}
	return all
}

// trailing is blanks at the ends of lines.
var trailing = pattern.New(`[ \t\r]*\n`)

// clash finds an entry of somebody else for the same repository with another
// key: apt would then read no sources at all ("Conflicting values set for option
// Signed-By").
func clash(r Repository, keyring string, sources []source) (source, bool) {
	for _, s := range sources {
		if s.Disabled || s.SignedBy == keyring {
			continue
		}
		for _, u := range s.URIs {
			sameURI := slices.ContainsFunc(r.URIs, func(v string) bool { return strings.TrimRight(u, "/") == strings.TrimRight(v, "/") })
			if sameURI && slices.ContainsFunc(s.Suites, func(v string) bool { return slices.Contains(r.Suites, v) }) {
				return s, true
			}
		}
	}
	return source{}, false
}
