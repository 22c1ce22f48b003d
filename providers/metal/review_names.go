package metal

import (
	"cmp"
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
	if all == cty.NilVal || from.noProxy != nil || !all.CanIterateElements() {
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

// proxied says which of the clusters' networks and nodes would be asked for
// through the provider's proxy, which knows neither.
func (r *reviewed) proxied() {
	var out []string
	first := "" // it is told at the first of them
	add := func(h plannedHost, network, what string) {
		if h.from.noProxy != nil && !excepted(h.from.noProxy, network) && !slices.Contains(out, network+what) {
			out = append(out, network+what)
			first = cmp.Or(first, h.name)
		}
	}
	for _, h := range r.hosts {
		for _, n := range h.member.Needs.PodNetworks {
			add(h, n, ", the pods' network")
		}
		if h.node() {
			add(h, h.member.InCluster(), ", "+h.name)
		}
	}
	if len(out) > 0 {
		r.say(first, facts.Problem{Severity: providers.Warning, Summary: "Cluster's network goes through the proxy",
			Detail: "no_proxy of the provider block has nothing for:\n  " + strings.Join(out, "\n  ") + "\nName the networks there: nodes would ask the proxy for what is in them."})
	}
}

// excepted tells whether no_proxy covers a network, an address or a name.
func excepted(noProxy []string, network string) bool {
	want, err := netip.ParsePrefix(network)
	if addr, bad := netip.ParseAddr(network); bad == nil {
		want, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	return slices.ContainsFunc(noProxy, func(d string) bool {
		p, bad := netip.ParsePrefix(d)
		switch {
		case d == "*" || d == network:
			return true
		case err != nil:
			return strings.HasSuffix(network, "."+strings.TrimLeft(d, "*."))
		}
		return bad == nil && p.Bits() <= want.Bits() && p.Contains(want.Addr())
	})
}
