package gke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/stokehq/stoke/providers"
)

// checkZones checks the effect of a change of node_locations on the existing
// pools: Google gives all of them the cluster's zones (desired_locations of
// ClusterUpdate in the container API), also pools with zones of their own.
func (m *clusterModel) checkZones(ctx context.Context, j job, prior *clusterModel) {
	if !changed(m.NodeLocations, prior.NodeLocations) || m.NodeLocations.IsUnknown() {
		return
	}
	now, ok := ask(ctx, j, "pools of "+prior.path(j.cloud.Project), "what node_locations does to node pools", func(ctx context.Context) (*containerpb.Cluster, error) {
		return prior.get(ctx, j.cloud)
	})
	if !ok || now == nil {
		return
	}
	moves, err := movesOf(now, list(m.NodeLocations))
	if err != nil {
		j.diags.AddAttributeError(path.Root("node_locations"), "Node pools would be moved", err.Error())
		return
	}
	if len(moves) > 0 {
		providers.CallFrom(ctx).AddNote(providers.Note{Kind: providers.NoteDisruption, Text: "moves nodes of " + strings.Join(moves, "; ")})
	}
}

// movesOf are the pools whose nodes come and go when a cluster gets other zones, and
// where. An error names the pools that do not allow this: with zones of their own,
// or with local SSDs in a removed zone.
func movesOf(k *containerpb.Cluster, zones []string) (moves []string, err error) {
	var refused []error
	for _, p := range k.GetNodePools() {
		come, gone := subtract(zones, p.GetLocations()), subtract(p.GetLocations(), zones)
		ssds := p.GetConfig().GetEphemeralStorageLocalSsdConfig().GetLocalSsdCount() + p.GetConfig().GetLocalNvmeSsdBlockConfig().GetLocalSsdCount()
		var where []string
		if len(come) > 0 {
			where = append(where, "into "+strings.Join(come, ", "))
		}
		if len(gone) > 0 {
			where = append(where, "out of "+strings.Join(gone, ", "))
		}
		switch {
		case len(where) == 0 || ours(p):
		case len(subtract(p.GetLocations(), k.GetLocations()))+len(subtract(k.GetLocations(), p.GetLocations())) > 0:
			refused = append(refused, fmt.Errorf("the node pool %s has zones of its own (%s), and Google would move its nodes %s. Leave node_locations as it is: it is for pools that name no zones. Or give that pool these zones first", p.GetName(), strings.Join(p.GetLocations(), ", "), strings.Join(where, " and ")))
		case ssds > 0 && len(gone) > 0:
			refused = append(refused, fmt.Errorf("the nodes of the node pool %s in %s would be deleted, with the data on "+
				"their local SSDs. Change zones of that pool first: its plan shows the losses", p.GetName(), strings.Join(gone, ", ")))
		default:
			moves = append(moves, p.GetName()+" "+strings.Join(where, " and "))
		}
	}
	return moves, errors.Join(refused...)
}

// subtract is what of all is not among others.
func subtract(all, others []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(others, one) })
}
