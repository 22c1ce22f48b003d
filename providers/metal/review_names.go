package metal

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// repositories are the names of the hosts that a planned machine fetches
// packages from by itself: where a proxy fetches them, the proxy resolves them.
func repositories(planned cty.Value, from snapshot) []string {
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
// changes there may fix it, so it is a warning.
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

// serviceNetwork is the services' where kubeadm is told no other.
const serviceNetwork = "10.96.0.0/12"

// proxied reports networks and nodes of the clusters that a proxy would be asked for,
// although it cannot reach them: the provider's proxy, and the proxies set on the
// machines, which kubeadm passes on to its programs. To those, metal_cluster adds its
// networks by itself (kubeadm.Begin).
func (r *reviewed) proxied() {
	var out []string
	first := "" // it is told at the first of them
	for _, h := range r.hosts {
		for _, missing := range append(h.notDirect(h.from.noProxy, r.networks), r.unproxied(h.from.noProxy)...) {
			if !slices.Contains(out, missing) {
				out = append(out, missing)
				first = cmp.Or(first, h.name)
			}
		}
		own := h.from.facts.Proxy
		if !h.node() || own["http_proxy"] == "" && own["https_proxy"] == "" {
			continue
		}
		direct := strings.FieldsFunc(own["no_proxy"], func(c rune) bool { return c == ',' || c == ' ' })
		if missing := h.notDirect(append([]string{}, direct...), r.networks); len(missing) > 0 {
			r.report(h.name, facts.Problem{Severity: providers.Warning, Path: []string{"role"}, Summary: "Machine asks its proxy for the cluster",
				Detail: fmt.Sprintf("%s has a proxy for all users (/etc/environment, or the login environment), and its "+
					"no_proxy lacks:\n  %s\nAdd them there: otherwise kubeadm and its programs send requests for these to the "+
					"proxy.",
					h.member.Address, strings.Join(missing, "\n  "))})
		}
	}
	if len(out) > 0 {
		r.report(first, facts.Problem{Severity: providers.Warning, Summary: "Cluster's network is reached through the proxy",
			Detail: "no_proxy of the provider block lacks:\n  " + strings.Join(out, "\n  ") + "\nAdd the networks " +
				"there: otherwise nodes send requests for these to the proxy."})
	}
}

// unproxied are networks of the planned clusters that no_proxy leaves out; nil:
// there is no proxy.
func (r *reviewed) unproxied(noProxy []string) []string {
	var out []string
	for _, network := range slices.Sorted(maps.Keys(r.networks)) {
		if noProxy != nil && !packages.Excepted(noProxy, network) {
			out = append(out, network+", "+r.networks[network])
		}
	}
	return out
}

// notDirect is what of a cluster no_proxy leaves out, but for networks that planned
// clusters declare; nil: there is no proxy.
func (h plannedHost) notDirect(noProxy []string, declared map[string]string) []string {
	var out []string
	add := func(network, what string) {
		if noProxy != nil && declared[network] == "" && !packages.Excepted(noProxy, network) {
			out = append(out, network+", "+what)
		}
	}
	for _, n := range h.member.Needs.PodNetworks {
		add(n, "the pods' network")
	}
	if h.node() {
		if declared == nil {
			add(serviceNetwork, "the services' network")
		}
		add(h.member.InCluster(), h.name)
	}
	return out
}

// namesakes refuses two nodes of one name in a cluster: machines that join at the
// same time would both become that node. The default of a name is the host name,
// read from the machine.
func (r *reviewed) namesakes(planned []providers.PlannedInstance) {
	first := map[string]string{}
	for _, p := range planned {
		name, of := textOf(p.Planned, "name"), part(p.Planned, "cluster")
		if p.Type != "metal_node" || name == "" || of == cty.NilVal || textOf(of, "endpoint") == "" {
			continue
		}
		at := textOf(of, "endpoint") + " " + name
		if other, ok := first[at]; ok {
			r.report(p.Address, facts.Problem{Severity: providers.Error, Path: []string{"node_name"}, Summary: "Two nodes have one name",
				Detail: fmt.Sprintf("%s is the node %s of that cluster, too. Give another node_name.", other, name)})
			continue
		}
		first[at] = p.Address
	}
}
