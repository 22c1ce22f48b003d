package metal

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/facts"
)

// review looks at all planned machines together: what must not be there twice,
// clocks, MTUs, networks that overlap, and whether machines of one cluster reach
// each other. What is not known of a machine (it was not looked at, or something
// of it is unknown) is not judged.
func (s *factsCache) review(ctx context.Context, all providers.Review) ([]providers.Note, providers.Diagnostics) {
	var r reviewed
	planned := slices.DeleteFunc(slices.Clone(all.Planned), func(p providers.PlannedInstance) bool { return p.Planned.IsNull() })
	for _, p := range planned {
		if p.Type == "metal_host" {
			r.host(s, p)
		}
	}
	for _, p := range planned {
		switch p.Type {
		case "metal_firewall":
			r.firewall(p)
		case "metal_cluster":
			r.cluster(p)
		}
	}
	r.nft(s, planned)
	r.unready(s, planned)
	r.checkDuplicates(planned)
	r.namesakes(planned)
	for _, cluster := range r.clusters() {
		r.add(facts.CompareHosts(r.members(func(h plannedHost) bool { return h.cluster == cluster })))
	}
	r.add(facts.Distinct(r.members(func(plannedHost) bool { return true })))
	for _, h := range r.hosts {
		for _, p := range facts.Networks(h.member.Facts, facts.Needs{PodNetworks: h.member.Needs.PodNetworks}) {
			r.report(h.name, p)
		}
	}
	r.proxied()
	r.reach(ctx)
	return nil, r.diags
}

type plannedHost struct {
	name, cluster string
	hostKey       string
	member        facts.Member
	from          snapshot
	changes       bool
	repositories  []string // names of hosts
}

func (h plannedHost) node() bool { return h.cluster != "" || h.member.Needs.Role != "" }

type reviewed struct {
	hosts []plannedHost
	// networks are the networks of clusters, with a description.
	networks map[string]string
	diags    providers.Diagnostics
	said     map[string]bool
}

func (r *reviewed) host(s *factsCache, p providers.PlannedInstance) {
	address, key := textOf(p.Planned, "address"), textOf(p.Planned, "host_key")
	from, ok := s.snapshotOf(address, key)
	if !ok || address == "" {
		return
	}
	r.hosts = append(r.hosts, plannedHost{
		name: p.Address, cluster: textOf(p.Planned, "cluster"), hostKey: key, from: from,
		changes: p.Prior.IsNull() || !p.Prior.RawEquals(p.Planned), repositories: repositories(p.Planned, from),
		member: facts.Member{Facts: from.facts, Address: address, Needs: facts.Needs{
			Role: textOf(p.Planned, "role"), Hostname: textOf(p.Planned, "hostname"), PrivateAddress: textOf(p.Planned, "private_address"),
		}},
	})
}

// firewall takes the networks that a machine's firewall declares.
func (r *reviewed) firewall(p providers.PlannedInstance) {
	to, networks := part(p.Planned, "host"), part(p.Planned, "pod_network")
	if to == cty.NilVal || networks == cty.NilVal || !networks.CanIterateElements() {
		return
	}
	at := machineOf(to)
	for i, h := range r.hosts {
		if machineKey(h.member.Address, h.hostKey) != at {
			continue
		}
		for _, n := range networks.AsValueSlice() {
			if n.IsKnown() && !n.IsNull() && n.Type() == cty.String {
				r.hosts[i].member.Needs.PodNetworks = append(r.hosts[i].member.Needs.PodNetworks, n.AsString())
			}
		}
	}
}

// cluster takes the networks of a cluster, which its nodes must not ask a proxy
// for.
func (r *reviewed) cluster(p providers.PlannedInstance) {
	for argument, what := range map[string]string{"pod_network": "the pods' network of " + p.Address, "service_network": "the services' network of " + p.Address} {
		list := part(p.Planned, argument)
		if list == cty.NilVal || !list.CanIterateElements() {
			continue
		}
		for _, n := range list.AsValueSlice() {
			if n.IsKnown() && !n.IsNull() && n.Type() == cty.String {
				if r.networks == nil {
					r.networks = map[string]string{}
				}
				r.networks[n.AsString()] = what
			}
		}
	}
}

// nft refuses firewalls of machines without nft that no metal_host installs.
func (r *reviewed) nft(s *factsCache, planned []providers.PlannedInstance) {
	installs := map[string]bool{}
	for _, p := range planned {
		if p.Type == "metal_host" {
			at := machineOf(p.Planned)
			switch packages := part(p.Planned, "packages"); {
			case packages != cty.NilVal:
				_, installs[at] = packages.AsValueMap()["nftables"]
			case p.Planned.Type().HasAttribute("packages"):
				installs[at] = !p.Planned.GetAttr("packages").IsKnown()
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range planned {
		if p.Type != "metal_firewall" {
			continue
		}
		to := part(p.Planned, "host")
		if at := machineOf(to); s.noNft[at] && !installs[at] {
			r.report(p.Address, facts.Problem{Severity: providers.Error, Path: []string{"host"}, Summary: "Program nft is missing",
				Detail: fmt.Sprintf("%s has no nft, which loads the rules, also in addition to ufw. Install it: packages = { nftables = {} } in its metal_host.", textOf(to, "address"))})
		}
	}
}

// checkDuplicates looks for machines with two resources of one kind.
func (r *reviewed) checkDuplicates(planned []providers.PlannedInstance) {
	kinds := map[string]string{"metal_firewall": "firewall", "metal_gpu_driver": "driver", "metal_node": "node"}
	first := map[string]string{}
	for _, p := range planned {
		kind, to := kinds[p.Type], part(p.Planned, "host")
		if kind == "" || textOf(to, "address") == "" || textOf(to, "host_key") == "" {
			continue
		}
		at := p.Type + " " + machineOf(to)
		if other, ok := first[at]; ok {
			r.report(p.Address, facts.Problem{Severity: providers.Error, Path: []string{"host"}, Summary: "Machine has this already",
				Detail: fmt.Sprintf("The %s of %s is declared by %s, too. A machine has one: put both into one resource, or name another machine.", kind, textOf(to, "address"), other)})
			continue
		}
		first[at] = p.Address
	}
}

// unready warns of machines that lack what a control plane needs, and that no
// metal_host of the plan will have it.
func (r *reviewed) unready(s *factsCache, planned []providers.PlannedInstance) {
	hosts := map[string]cty.Value{}
	for _, p := range planned {
		if p.Type == "metal_host" {
			hosts[machineOf(p.Planned)] = p.Planned
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range planned {
		list := part(p.Planned, "control_plane")
		if p.Type != "metal_cluster" || list == cty.NilVal || list.LengthInt() != 1 {
			continue
		}
		machine := list.Index(cty.Zero)
		at := machineOf(machine)
		left := slices.DeleteFunc(slices.Clone(s.lacks[at]), func(u unfitness) bool {
			h, ok := hosts[at]
			return ok && h.Type().HasAttribute(u.fixedBy) && !h.GetAttr(u.fixedBy).IsNull()
		})
		if len(left) > 0 {
			r.report(p.Address, facts.Problem{Severity: providers.Warning, Path: []string{clusterAt.String()}, Summary: unreadySummary, Detail: unready(textOf(machine, "address"), left)})
		}
	}
}

func machineOf(o cty.Value) string { return machineKey(textOf(o, "address"), textOf(o, "host_key")) }

// part is a known attribute of an object; cty.NilVal when there is none.
func part(o cty.Value, name string) cty.Value {
	if o == cty.NilVal || o.IsNull() || !o.IsKnown() || !o.Type().IsObjectType() || !o.Type().HasAttribute(name) {
		return cty.NilVal
	}
	v := o.GetAttr(name)
	if v.IsNull() || !v.IsKnown() {
		return cty.NilVal
	}
	return v
}

func textOf(o cty.Value, name string) string {
	if v := part(o, name); v != cty.NilVal && v.Type() == cty.String {
		return v.AsString()
	}
	return ""
}

// clusters are those that machines belong to; machines without one are checked
// against each other, too.
func (r *reviewed) clusters() []string {
	names := map[string]bool{}
	for _, h := range r.hosts {
		names[h.cluster] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (r *reviewed) members(which func(plannedHost) bool) map[string]facts.Member {
	m := map[string]facts.Member{}
	for _, h := range r.hosts {
		if which(h) {
			m[h.name] = h.member
		}
	}
	return m
}

func (r *reviewed) add(found []facts.Mutual) {
	for _, p := range found {
		r.report(p.Hosts[0], p.Problem) // they are told where the first of them is declared
	}
}

func (r *reviewed) report(about string, p facts.Problem) {
	d := providers.Diagnostic{Address: about, Severity: p.Severity, Summary: p.Summary, Detail: p.Detail}
	if len(p.Path) > 0 {
		d.Path = cty.GetAttrPath(p.Path[0])
	}
	if r.said == nil {
		r.said = map[string]bool{}
	}
	if key := about + "\n" + d.Summary + "\n" + d.Detail; !r.said[key] {
		r.said[key] = true
		r.diags = append(r.diags, d)
	}
}

// Most machines that are asked at the same time, and for how long altogether.
const (
	maxAsked    = 16
	reachWithin = 90 * time.Second
)

// reach lets the machines of each cluster that something changes in send
// packets to each other, and look up the names that they need. That takes one
// round trip for each machine.
func (r *reviewed) reach(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	type answer struct {
		problems []facts.Problem
		err      error
	}
	answers := make([]answer, len(r.hosts))
	tokens := make(chan struct{}, maxAsked)
	var all sync.WaitGroup
	for i, h := range r.hosts {
		peers, names, called := r.peers(h)
		repositories := h.repositories
		if !h.changes {
			repositories = nil
		}
		repositories = slices.DeleteFunc(slices.Clone(repositories), func(n string) bool { return slices.Contains(names, n) })
		names = append(names, repositories...)
		if h.from.m == nil || len(peers)+len(names) == 0 {
			continue
		}
		all.Go(func() {
			tokens <- struct{}{}
			defer func() { <-tokens }()
			reach, err := facts.Reachable(ctx, h.from.m, h.member.MTU(), peers, names)
			problems := unresolved(reach, repositories)
			answers[i] = answer{append(reach.Problems(called), problems...), err}
		})
	}
	all.Wait()
	for i, a := range answers {
		name := r.hosts[i].name
		if a.err != nil {
			r.report(name, facts.Problem{Severity: providers.Warning, Summary: "Peers could not be checked", Detail: fmt.Sprintf("%s.", a.err)})
			continue
		}
		for _, p := range a.problems {
			r.report(name, p)
		}
	}
}

// peers are the other machines of a machine's cluster: their addresses, the
// names of those that have one instead, and what messages call the addresses.
// There are none where nothing changes.
func (r *reviewed) peers(h plannedHost) (addresses, names []string, called map[string]string) {
	called = map[string]string{}
	changes := h.changes
	for _, other := range r.hosts {
		if other.name == h.name || other.cluster != h.cluster || !other.node() || !h.node() {
			continue
		}
		changes = changes || other.changes
		at := other.member.InCluster()
		if ip, err := netip.ParseAddr(at); err == nil {
			addresses = append(addresses, ip.String())
			called[ip.String()] = other.name
		} else {
			names = append(names, at)
		}
	}
	if !changes {
		return nil, nil, nil
	}
	return addresses, names, called
}
