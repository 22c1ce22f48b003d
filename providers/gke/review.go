package gke

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/catalogue"
)

// review looks at clusters and their pools together: upgrades by the cluster's
// channel, addresses for all nodes and pods, quotas. What is not known is not judged.
func review(ctx context.Context, all providers.Review) ([]providers.Note, providers.Diagnostics) {
	r := reviewed{}
	for _, p := range all.Configured {
		if c, ok := providers.ServerAs[closing](p); ok && c.provider.settings != nil {
			r.job = job{settings: c.provider.settings, cloud: c.provider.settings.cloud}
		}
	}
	if r.job.settings == nil {
		return nil, nil
	}
	ctx = providers.WithCall(ctx, &providers.Call{Note: func(n providers.Note) { r.notes = append(r.notes, n) }})
	var heard diag.Diagnostics
	r.job.diags = &heard
	var gone []plannedPool
	for _, p := range all.Planned {
		switch {
		case p.Type == "gke_cluster" && !p.Planned.IsNull():
			r.clusters = append(r.clusters, plannedCluster{address: p.Address, value: p.Planned, made: p.Prior.IsNull()})
		case p.Type == "gke_node_pool" && p.Planned.IsNull():
			r.frees = true
			gone = append(gone, plannedPool{address: p.Address, value: p.Planned, prior: p.Prior})
		case p.Type == "gke_node_pool":
			r.pools = append(r.pools, newPlannedPool(p))
		}
	}
	for i := range r.pools {
		r.pools[i].cluster = r.clusterOf(r.pools[i])
		r.pools[i].estimate(r.location(r.pools[i]))
		r.channel(ctx, r.pools[i])
		r.runs(r.pools[i], all.Planned)
	}
	for _, p := range gone {
		p.cluster = r.clusterOf(plannedPool{value: p.prior})
		r.runs(p, all.Planned)
	}
	for i := range r.clusters {
		r.ranges(ctx, &r.clusters[i])
	}
	r.quotas(ctx)
	for _, d := range heard {
		r.diags = append(r.diags, providers.Diagnostic{Severity: providers.Error, Summary: d.Summary(), Detail: d.Detail()})
	}
	return r.notes, r.diags
}

type reviewed struct {
	job      job
	clusters []plannedCluster
	pools    []plannedPool
	frees    bool // some pool goes, and with it what it takes of quotas
	notes    []providers.Note
	diags    providers.Diagnostics
}

type plannedCluster struct {
	address string
	value   cty.Value
	made    bool
}

type plannedPool struct {
	address     string
	value       cty.Value
	prior       cty.Value
	made        bool
	cluster     *plannedCluster // nil: it is not in the plan
	least, most int64           // nodes in all, -1 where that is not known
	more        int64           // nodes that the plan adds
}

// textIn and numberIn are parts of a value that are known; zero otherwise.
func textIn(v cty.Value, name string) string {
	if v.IsNull() || !v.Type().HasAttribute(name) {
		return ""
	}
	if a := v.GetAttr(name); a.IsKnown() && !a.IsNull() && a.Type() == cty.String {
		return a.AsString()
	}
	return ""
}

func numberIn(v cty.Value, name string) (n int64, known bool) {
	if v.IsNull() || !v.IsKnown() || !v.Type().HasAttribute(name) {
		return 0, false
	}
	if a := v.GetAttr(name); a.IsKnown() && !a.IsNull() && a.Type() == cty.Number {
		n, _ = a.AsBigFloat().Int64()
		return n, true
	}
	return 0, false
}

func flagIn(v cty.Value, name string) (on, known bool) {
	if a := v.GetAttr(name); a.IsKnown() && !a.IsNull() {
		return a.True(), true
	}
	return false, false
}

// groupIn is the one group of nodes in a pool's attribute capacity.
func groupIn(v cty.Value) (least, most int64) {
	if v.IsNull() {
		return 0, 0
	}
	c := v.GetAttr("capacity")
	if !c.IsWhollyKnown() || c.IsNull() {
		return -1, -1
	}
	groups := c.GetAttr("groups")
	if groups.LengthInt() != 1 {
		return -1, -1
	}
	g := groups.AsValueSlice()[0]
	least, _ = numberIn(g, "min")
	most, _ = numberIn(g, "max")
	return least, most
}

func newPlannedPool(p providers.PlannedInstance) plannedPool {
	out := plannedPool{address: p.Address, value: p.Planned, prior: p.Prior, made: p.Prior.IsNull()}
	out.least, out.most = groupIn(p.Planned)
	before, _ := groupIn(p.Prior)
	out.more = max(out.least-max(before, 0), 0)
	return out
}

// estimate counts the nodes of a pool that is made with its cluster. Its zones are not known as long as
// it names none: it has one zone at least.
func (p *plannedPool) estimate(location string) {
	if !p.made || p.least >= 0 {
		return
	}
	zones := int64(setIn(p.value, "zones"))
	if zones == 0 && p.cluster != nil && p.cluster.made {
		zones = int64(setIn(p.cluster.value, "node_locations"))
	}
	zones = max(zones, 1)
	if scaling := p.value.GetAttr("autoscaling"); !scaling.IsKnown() {
		return
	} else if !scaling.IsNull() {
		least, _ := numberIn(scaling, "min")
		most, _ := numberIn(scaling, "max")
		p.least, p.most = least*zones, most*zones
		if total, limited := numberIn(scaling, "total_max"); limited {
			p.least, _ = numberIn(scaling, "total_min")
			p.most = total
		}
	} else if n, known := numberIn(p.value, "node_count"); known && location != "" {
		p.least, p.most = n*zones, n*zones
	}
	p.more = max(p.least, 0)
}

// setIn is the number of elements of a set that is known; 0 otherwise.
func setIn(v cty.Value, name string) int {
	if a := v.GetAttr(name); a.IsKnown() && !a.IsNull() {
		return a.LengthInt()
	}
	return 0
}

func (r *reviewed) report(severity providers.Severity, address, name, summary, detail string) {
	r.diags = append(r.diags, providers.Diagnostic{Severity: severity, Address: address, Path: cty.GetAttrPath(name), Summary: summary, Detail: detail})
}

// clusterOf is the planned cluster of a pool. One that is being made has no id yet:
// a pool whose cluster is not known is of the only such cluster.
func (r *reviewed) clusterOf(p plannedPool) *plannedCluster {
	named := textIn(p.value, "cluster")
	var made []*plannedCluster
	for i := range r.clusters {
		c := &r.clusters[i]
		at := textIn(c.value, "location") + "/clusters/" + textIn(c.value, "name")
		switch {
		case named != "" && (strings.HasSuffix(named, "/"+at) || named == strings.Replace(at, "/clusters/", "/", 1)):
			return c
		case named == "" && c.made:
			made = append(made, c)
		}
	}
	if len(made) == 1 {
		return made[0]
	}
	return nil
}

// channel refuses to go without upgrades in a cluster that upgrades by itself.
func (r *reviewed) channel(ctx context.Context, p plannedPool) {
	name, what := "auto_upgrade", "upgrades"
	if on, known := flagIn(p.value, name); on || !known {
		name, what = "auto_repair", "repairs"
		on, known = flagIn(p.value, name)
		if flex, _ := flagIn(p.value, "flex_start"); on || !known || flex || !p.made { // of flex-start it has to be off
			return
		}
	}
	channel := ""
	if p.cluster != nil {
		channel = textIn(p.cluster.value, "release_channel")
		if channel == "" && p.cluster.made && !p.cluster.value.GetAttr("release_channel").IsKnown() {
			channel = "REGULAR" // Google's choice
		}
	} else if path := textIn(p.value, "cluster"); strings.HasPrefix(path, "projects/") {
		if k, ok := clusterAt(ctx, r.job, path); ok && k.GetReleaseChannel().GetChannel() != containerpb.ReleaseChannel_UNSPECIFIED {
			channel = k.GetReleaseChannel().GetChannel().String()
		}
	}
	if channel != "" && channel != "NONE" {
		r.report(providers.Error, p.address, name, "Release channel without "+what,
			fmt.Sprintf("The cluster is in the channel %s: Google refuses %s = false there. Set release_channel = \"NONE\", or protect the pool from upgrades with exclude_upgrades_until_end_of_support = true.", channel, name))
	}
}

// ranges looks whether there are addresses for all nodes and pods of a cluster.
func (r *reviewed) ranges(ctx context.Context, c *plannedCluster) {
	pods, nodes := r.sizes(ctx, c)
	var need [2][2]int64 // pods and nodes, least and most
	for _, p := range r.pools {
		if p.cluster != c || p.least < 0 {
			continue
		}
		each, known := numberIn(p.value, "max_pods_per_node")
		if !known {
			each = 110 // Google's choice
		}
		// GKE gives each node a power of two, at least twice the pods.
		size := int64(1) << bits.Len64(uint64(2*each-1)) //nolint:gosec // a few hundred
		for i, n := range []int64{p.least, p.most} {
			need[1][i] += n
			if textIn(p.value, "pod_range") == "" {
				need[0][i] += n * size
			}
		}
	}
	for i, has := range []int64{pods, nodes} {
		what := []string{"pods", "nodes"}[i]
		name := []string{"pods_cidr", "subnetwork"}[i]
		if i == 0 && textIn(c.value, "pods_range") != "" {
			name = "pods_range"
		}
		switch {
		case has > 0 && need[i][0] > has:
			r.report(providers.Error, c.address, name, "Addresses of the "+what+" do not suffice", fmt.Sprintf("The declared node pools need %d addresses for %s, and the range has %d. Take a larger range, fewer nodes, or a smaller max_pods_per_node.", need[i][0], what, has))
		case has > 0 && need[i][1] > has:
			r.report(providers.Warning, c.address, name, "Addresses limit the autoscaling", fmt.Sprintf("With all nodes that autoscaling allows, %d addresses are needed for %s, and the range has %d.", need[i][1], what, has))
		}
	}
}

// sizes are how many addresses a cluster has for pods and for nodes, 0 where that
// is not known.
func (r *reviewed) sizes(ctx context.Context, c *plannedCluster) (pods, nodes int64) {
	pods = addresses(textIn(c.value, "pods_cidr"))
	name, region := last(textIn(c.value, "subnetwork")), regionOf(textIn(c.value, "location"))
	if name == "" || region == "" {
		return pods, 0
	}
	j := r.job
	j.cloud = j.cloud.ForProject(firstNonEmpty(textIn(c.value, "network_project"), textIn(c.value, "project")))
	sub, ok := subnetworkOf(ctx, j, region, name)
	if !ok {
		return pods, 0
	}
	for _, s := range sub.SecondaryIpRanges {
		if pods == 0 && s.RangeName == textIn(c.value, "pods_range") {
			pods = addresses(s.IpCidrRange)
		}
	}
	return pods, max(addresses(sub.IpCidrRange)-4, 0) // four are the network's own
}

// addresses is how many a range such as 10.8.0.0/14 or /14 has, 0 for none.
func addresses(cidr string) int64 {
	if size, ok := strings.CutPrefix(cidr, "/"); ok {
		if n, err := strconv.Atoi(size); err == nil && n >= 0 && n <= 32 {
			return 1 << (32 - n)
		}
		return 0
	}
	p, err := netip.ParsePrefix(cidr)
	if err != nil || !p.Addr().Is4() {
		return 0
	}
	return 1 << (32 - p.Bits())
}

// quotas looks whether the project may have all that the plan adds.
func (r *reviewed) quotas(ctx context.Context) {
	type key struct{ project, region, metric string }
	wanted, by, falls := map[key]float64{}, map[key][]string{}, map[key]bool{}
	for _, p := range r.pools {
		location := r.location(p)
		if p.more <= 0 || location == "" {
			continue
		}
		spot, _ := flagIn(p.value, "spot")
		for metric, n := range needs(p.value, spot) {
			k := key{firstNonEmpty(textIn(p.value, "project"), r.job.cloud.Project), regionOf(location), metric}
			if metric == catalogue.AllGPUs {
				k.region = "" // of the project
			}
			wanted[k] += float64(n * p.more)
			by[k] = append(by[k], p.address)
			falls[k] = falls[k] || falling(p.value)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(wanted), func(a, b key) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		j := r.job
		j.cloud = j.cloud.ForProject(k.project)
		all, ok := quotasOf(ctx, j, k.region)
		q := all[k.metric]
		if spare := strings.HasPrefix(k.metric, catalogue.Spot) && q != nil && q.Limit == 0; !ok || q == nil || spare || q.Usage+wanted[k] <= q.Limit {
			continue
		}
		severity, after := providers.Error, " Ask for more at https://console.cloud.google.com/iam-admin/quotas, declare less, or declare a fallback."
		if falls[k] || r.frees {
			severity, after = providers.Warning, " A fallback, or what this plan gives back, may help."
		}
		r.report(severity, by[k][0], "machine_type", "Quota of the project does not suffice", fmt.Sprintf("%s need %v of "+
			"%s in %s; the project has %v and uses %v.%s",
			strings.Join(by[k], ", "), wanted[k], k.metric, firstNonEmpty(k.region, "all regions"), q.Limit, q.Usage, after))
	}
}

// falling tells whether a pool has a fallback, or may have one.
func falling(pool cty.Value) bool {
	steps := pool.GetAttr("fallback")
	return !steps.IsKnown() || !steps.IsNull() && steps.LengthInt() > 0
}

func (r *reviewed) location(p plannedPool) string {
	if p.cluster != nil {
		return textIn(p.cluster.value, "location")
	}
	_, location, _, err := place(r.job, textIn(p.value, "cluster"), "clusters")
	if err != nil {
		return ""
	}
	return location
}

// needs is what one node takes of the quotas of its region, and of the project. A spot machine has quotas of
// its own; a project without those uses the others.
func needs(pool cty.Value, spot bool) map[string]int64 {
	out, begins := map[string]int64{}, ""
	if spot {
		begins = catalogue.Spot
	}
	name := textIn(pool, "machine_type")
	if m, ok := machineOf(name); ok && name != "" {
		out[begins+catalogue.CPUQuota(name)] = m.CPUs
	}
	if a := pool.GetAttr("accelerator"); !a.IsNull() && a.IsKnown() {
		if n, ok := numberIn(a, "count"); ok {
			out[catalogue.AllGPUs] = n
			if metric := catalogue.GPUQuota(textIn(a, "type")); metric != "" {
				out[begins+metric] = n
			}
		}
	}
	return out
}
