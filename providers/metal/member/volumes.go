package member

import (
	"context"
	"fmt"
	"slices"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

var volumes = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}

// Volume is a volume that only pods on one node can use.
type Volume struct {
	Name  string
	Claim string // NAMESPACE/NAME of its claim; "" for nothing
}

func (v Volume) String() string {
	if v.Claim == "" {
		return v.Name
	}
	return v.Name + " (of the claim " + v.Claim + ")"
}

// Pinned are the volumes whose data only pods on the node can reach, such as
// local ones: whoever uses them waits for ever once the node is gone.
func Pinned(ctx context.Context, c *kubernetes.Client, s *State) ([]Volume, error) {
	var all []Volume
	err := listEach(ctx, c, volumes, "", func(v *core.PersistentVolume) {
		affinity := v.Spec.NodeAffinity
		if affinity == nil || affinity.Required == nil || len(affinity.Required.NodeSelectorTerms) == 0 {
			return
		}
		for _, term := range affinity.Required.NodeSelectorTerms { // one of them has to hold
			if !s.pins(term) {
				return
			}
		}
		is := Volume{Name: v.Name}
		if claim := v.Spec.ClaimRef; claim != nil {
			is.Claim = claim.Namespace + "/" + claim.Name
		}
		all = append(all, is)
	})
	if err != nil {
		return nil, fmt.Errorf("look for volumes that only pods on node %s can use: %w", s.Node.Name, err)
	}
	return all, nil
}

// pins reports whether a term matches only this node.
func (s *State) pins(term core.NodeSelectorTerm) bool {
	alone := func(r core.NodeSelectorRequirement, value string) bool {
		return r.Operator == core.NodeSelectorOpIn && slices.Equal(r.Values, []string{value})
	}
	for _, r := range term.MatchExpressions {
		if r.Key == core.LabelHostname && alone(r, s.hostname()) {
			return true
		}
	}
	for _, r := range term.MatchFields {
		if r.Key == "metadata.name" && alone(r, s.Node.Name) {
			return true
		}
	}
	return false
}

// hostname is the label that volumes go by; it is the node's name unless it was
// changed by hand.
func (s *State) hostname() string {
	if h := s.Node.Labels[core.LabelHostname]; h != "" {
		return h
	}
	return s.Node.Name
}
