package packages

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// dropLists removes the lists that only a sources file of ours asked for, and
// its next content does not.
func (a *apply) dropLists(ctx context.Context, name string, have State, next string) error {
	others := slices.DeleteFunc(slices.Clone(have.Sources), func(s source) bool { return s.File == name || s.Disabled })
	others = append(others, parseDeb822(name, next)...)
	var lists []string
	for _, s := range parseDeb822(name, string(have.Files[name].Content)) {
		lists = append(lists, listsOf(s, others)...)
	}
	if len(lists) == 0 {
		return nil
	}
	return host.Do(ctx, a.m, "drop the lists of a repository", dropListsScript, lists...)
}

const dropListsScript = `# remove lists of packages
cd /var/lib/apt/lists || exit 0
for p; do
  case $p in
  ""|*/*) ;;
  *_dists_*) rm -f -- "$p"* ;;
  *) rm -f -- "$p"InRelease "$p"Release "$p"Release.gpg "$p"Packages* "$p"Sources* "$p"Translation* ;;
  esac
done`

// listsOf returns the prefixes of the names of a source's lists, except lists
// that another source has, too.
func listsOf(s source, others []source) []string {
	var all []string
	for _, u := range s.URIs {
		for _, suite := range s.Suites {
			shared := slices.ContainsFunc(others, func(o source) bool {
				return slices.Contains(o.Suites, suite) && slices.ContainsFunc(o.URIs, func(v string) bool { return strings.TrimRight(u, "/") == strings.TrimRight(v, "/") })
			})
			if !shared {
				all = append(all, listName(u, suite))
			}
		}
	}
	return all
}

// listName is how apt names what it has read from a repository: the URI without
// scheme, with its slashes as underscores (URItoFileName in apt-pkg/strutl.cc).
func listName(uri, suite string) string {
	_, rest, found := strings.Cut(uri, "://")
	if !found {
		_, rest, _ = strings.Cut(uri, ":")
	}
	rest = strings.TrimRight(rest, "/") + "/"
	switch flat := strings.HasSuffix(suite, "/"); {
	case flat:
		rest += strings.TrimPrefix(strings.TrimPrefix(suite, "./"), "/")
	default:
		rest += "dists/" + suite + "/"
	}
	var b strings.Builder
	for _, c := range []byte(rest) {
		switch {
		case c == '/':
			b.WriteByte('_')
		case c <= ' ' || c >= 0x7f || strings.IndexByte("\\|{}[]<>\"^~_=!@#$%&*", c) >= 0:
			fmt.Fprintf(&b, "%%%02x", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
