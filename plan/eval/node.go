package eval

import (
	"sync/atomic"

	"github.com/stokehq/stoke/modules/address"
)

// Node is a cell's place in the dependency graph: what it read while it was
// computed. Variables, locals, outputs and the like only pass dependencies on.
type Node struct {
	Resource *Resource // set for the value of a resource as a whole
	Instance *Instance // set for one instance
	Provider bool      // a provider configuration: it orders operations but is no dependency of the object
	deps     []*Node
	flat     atomic.Pointer[[]address.Resource] // memoised Resources
}

// Deps are the nodes that this one read. They are complete when the cell is
// done; the slice must not be changed.
func (n *Node) Deps() []*Node { return n.deps }

func (n *Node) add(d *Node) {
	// Most cells read few others, so that a scan is cheaper than a set; of long
	// lists only the recent part is searched, and a rare double does no harm.
	for i := len(n.deps) - 1; i >= 0 && i >= len(n.deps)-16; i-- {
		if n.deps[i] == d {
			return
		}
	}
	n.deps = append(n.deps, d)
}

// Resources returns the resources that the node reads directly, through any
// number of locals, variables and outputs but not through other resources, in
// the order in which they were found. The node's cell must be done; the slice
// must not be changed. Several goroutines may ask at once: they find the same.
func (n *Node) Resources() []address.Resource {
	if flat := n.flat.Load(); flat != nil {
		return *flat
	}
	var flat []address.Resource
	seen := map[*Node]bool{}
	var visit func(*Node)
	visit = func(d *Node) {
		if seen[d] {
			return
		}
		seen[d] = true
		switch {
		case d.Provider && n != d:
		case d.Resource != nil:
			flat = append(flat, d.Resource.Addr)
		case d.Instance != nil:
			flat = append(flat, d.Instance.Addr.Resource)
		default:
			for _, e := range d.deps {
				visit(e)
			}
		}
	}
	for _, d := range n.deps {
		visit(d)
	}
	n.flat.Store(&flat)
	return flat
}
