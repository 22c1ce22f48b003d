package plan

import (
	"slices"
	"sync"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
)

// writtenReferences has the references of declarations as they are written, without
// evaluation. It serves resources and module calls without instances, whose
// bodies are never evaluated; without any of those, it is never made.
type writtenReferences struct {
	nodes func() map[string]*modules.GraphNode
	found map[*modules.GraphNode][]string
}

func newWritten(root *modules.Module) *writtenReferences {
	return &writtenReferences{
		found: map[*modules.GraphNode][]string{},
		nodes: sync.OnceValue(func() map[string]*modules.GraphNode {
			nodes := map[string]*modules.GraphNode{}
			if root != nil {
				for _, n := range modules.Graph(root) {
					nodes[n.Address()] = n
				}
			}
			return nodes
		}),
	}
}

// needs lists the resources that a resource refers to, directly or through
// variables, locals and outputs. References of its provider's configuration do
// not count as dependencies.
func (w *writtenReferences) needs(name string) []string { return w.reach(w.nodes()[name]) }

// outputs lists the resources that a module's outputs refer to.
func (w *writtenReferences) outputs(m address.Module) []string {
	return w.reach(w.nodes()[(&modules.GraphNode{Kind: modules.ValueNode, Module: string(m)}).Address()])
}

func (w *writtenReferences) reach(from *modules.GraphNode) []string {
	if from == nil {
		return nil
	}
	if names, ok := w.found[from]; ok {
		return names
	}
	var names []string
	seen := map[*modules.GraphNode]bool{from: true}
	for queue := []*modules.GraphNode{from}; len(queue) > 0; queue = queue[1:] {
		for _, n := range queue[0].Needs {
			switch {
			case seen[n]:
			case n.Kind == modules.ResourceNode:
				names = append(names, n.Address())
			case n.Kind != modules.ProviderNode:
				queue = append(queue, n)
			}
			seen[n] = true
		}
	}
	w.found[from] = names
	return names
}

// guesses are the written dependencies of names, in addition to the certain
// ones. A written reference is only a guess: values may have been made
// otherwise, or will never be made.
type guesses map[string][]string

// withoutRings drops the guesses that close a ring with each other or with
// certain dependencies: no order could follow them.
func (g guesses) withoutRings(certain map[string][]string) {
	if len(g) == 0 {
		return
	}
	numbers := map[string]int32{}
	var next [][2][]int32
	number := func(name string) int32 {
		n, ok := numbers[name]
		if !ok {
			n = int32(len(next))
			numbers[name] = n
			next = append(next, [2][]int32{})
		}
		return n
	}
	for i, lists := range []map[string][]string{certain, g} {
		for name, list := range lists {
			n := number(name)
			for _, dep := range list {
				d := number(dep)
				next[n][i] = append(next[n][i], d)
			}
		}
	}
	rings := components(len(next), func(n int32) [2][]int32 { return next[n] })
	for name, list := range g {
		g[name] = slices.DeleteFunc(slices.Clone(list), func(dep string) bool { return rings[numbers[dep]] == rings[numbers[name]] })
	}
}
