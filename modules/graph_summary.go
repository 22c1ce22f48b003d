package modules

// Summary leaves the resources of a graph: what stands between two of them is
// replaced by the edges that lead through it. A node stays as a hub where those
// would be many, so that a summary is never much larger than its graph.
func Summary(nodes []*GraphNode) []*GraphNode {
	s := summary{users: map[*GraphNode]int{}, done: map[*GraphNode][]*GraphNode{}, hubs: map[*GraphNode]*GraphNode{}}
	for _, n := range nodes {
		for _, needed := range unique(n.Needs) {
			s.users[needed]++
		}
	}
	for _, n := range nodes {
		if n.Kind == ResourceNode {
			s.copyNode(n)
		}
	}
	for _, n := range nodes {
		if n.Kind == ResourceNode {
			s.hubs[n].Needs = s.keptNeeds(n)
		}
	}
	return s.kept
}

// fewEdges is up to how many edges a node is replaced by without a thought.
const fewEdges = 64

type summary struct {
	users map[*GraphNode]int
	done  map[*GraphNode][]*GraphNode // what a node that is left out stands for
	hubs  map[*GraphNode]*GraphNode   // nodes that stay, with their copies
	kept  []*GraphNode
}

// copyNode makes the copy of a node that stays.
func (s *summary) copyNode(n *GraphNode) *GraphNode {
	c := &GraphNode{Kind: n.Kind, Module: n.Module, Name: n.Name}
	s.hubs[n] = c
	s.kept = append(s.kept, c)
	return c
}

// keptNeeds collects what a node needs, past what is left out.
func (s *summary) keptNeeds(n *GraphNode) []*GraphNode {
	var needs []*GraphNode
	for _, needed := range unique(n.Needs) {
		needs = append(needs, s.resolve(needed)...)
	}
	return unique(needs)
}

func (s *summary) resolve(n *GraphNode) []*GraphNode {
	if n.Kind == ResourceNode {
		return []*GraphNode{s.hubs[n]}
	}
	if needs, ok := s.done[n]; ok {
		return needs
	}
	s.done[n] = nil // a ring of references ends here
	needs := s.keptNeeds(n)
	if len(needs) > 1 && s.users[n] > 1 && len(needs)*s.users[n] > fewEdges {
		hub := s.copyNode(n)
		hub.Needs = needs
		needs = []*GraphNode{hub}
	}
	s.done[n] = needs
	return needs
}

func unique(nodes []*GraphNode) []*GraphNode {
	if len(nodes) < 2 {
		return nodes
	}
	seen := make(map[*GraphNode]bool, len(nodes))
	kept := make([]*GraphNode, 0, len(nodes))
	for _, n := range nodes {
		if !seen[n] {
			seen[n] = true
			kept = append(kept, n)
		}
	}
	return kept
}
