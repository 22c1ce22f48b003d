package metal

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/facts"
)

// repositories are the names of the hosts that a planned machine fetches
// packages from by itself: where a proxy fetches them, the proxy resolves them.
func repositories(planned cty.Value, from sight) []string {
	all := part(planned, "apt_repositories")
	if all == cty.NilVal || from.proxied || !all.CanIterateElements() {
		return nil
	}
	var names []string
	for _, r := range all.AsValueMap() {
		uris := part(r, "uris")
		if uris == cty.NilVal || !uris.CanIterateElements() {
			continue
		}
		for _, v := range uris.AsValueSlice() {
			if v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
				continue
			}
			u, err := url.Parse(v.AsString())
			if err != nil || (u.Scheme != "http" && u.Scheme != "https") || from.facts.Proxy["apt "+u.Scheme] != "" {
				continue
			}
			name := strings.ToLower(u.Hostname())
			if _, err := netip.ParseAddr(name); err != nil && facts.ValidHostname(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unresolved says which repositories a machine cannot find. What else the plan
// changes there may mend it, so it is a warning.
func unresolved(reach facts.Reach, names []string) []facts.Problem {
	only := facts.Reach{Names: map[string]facts.Answer{}}
	for _, n := range names {
		if a, ok := reach.Names[n]; ok {
			only.Names[n] = a
			delete(reach.Names, n)
		}
	}
	problems := only.Problems(nil)
	for i := range problems {
		problems[i].Severity = providers.Warning
	}
	return problems
}
