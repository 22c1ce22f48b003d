package kube

import (
	"context"
	"slices"

	"github.com/stokehq/stoke/providers/kube/live"
)

// checkRoom refuses pods that no node of their cluster could ever take.
func (r *reviewing) checkRoom(ctx context.Context) {
	rooms := map[string]*live.Room{}
	for _, p := range r.all.Planned {
		s, ok := r.sights[p.Address]
		if !ok || p.Source != Source || !declares(p.Planned) || len(s.demands) == 0 {
			continue
		}
		if s.cluster == nil {
			r.notes = append(r.notes, live.UnknownRoom(p.Address, s.demands, "their cluster is not known yet"))
			continue
		}
		key := s.cluster.ID
		if key == "" {
			key = s.cluster.Endpoint
		}
		room, seen := rooms[key]
		if !seen {
			room = s.cluster.Room(ctx, r.all, r.firstPlanned(s.cluster, func(s sight) []string { return s.grows }))
			rooms[key] = room
		}
		refused, notes := room.CheckRoom(ctx, p.Address, s.demands, r.firstPlanned(s.cluster, func(s sight) []string { return s.discover }))
		for _, no := range refused {
			if s.assume {
				notes = append(notes, no.Assumed(p.Address))
				continue
			}
			r.refuse(p, "No node can take the pods", no.Detail())
		}
		r.notes = append(r.notes, notes...)
	}
}

// firstPlanned names the first of some things that the plan makes in a cluster: what may
// add nodes to it, or what may give its nodes labels and extended resources, as
// device plugins and feature discovery do, which run as DaemonSets.
func (r *reviewing) firstPlanned(c *live.Cluster, what func(sight) []string) string {
	var all []string
	for address, s := range r.sights {
		if s.cluster != nil && (s.cluster == c || s.cluster.ID != "" && s.cluster.ID == c.ID) {
			for _, name := range what(s) {
				all = append(all, name+" of "+address)
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	return slices.Min(all)
}
