package eval

import (
	"sync/atomic"

	"github.com/stokehq/stoke/modules/address"
)

// Node is a cell's place in the dependency graph: what it read while it was
// computed. Variables, locals, outputs and the like only pass dependencies on.
type Node struct {
	Resource *Resource      // set for the value of a resource as a whole
	Instance *Instance      // set for one instance
	Provider bool           // a provider configuration: it orders operations but is not a dependency of the object
	empty    address.Module // set for a module call without instances: the call, with any key
	deps     []*Node
	flat     atomic.Pointer[flat]
}

// flat is what a node reads directly, through any number of locals, variables
// and outputs.
type flat struct {
	resources []address.Resource
	empty     []address.Module
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
// the order of discovery. The node's cell must be done; the slice must not be
// changed. Several goroutines may ask at once: they find the same.
func (n *Node) Resources() []address.Resource { return n.flatten().resources }

// EmptyCalls returns the module calls without instances that the node reads,
// as Resources does resources.
func (n *Node) EmptyCalls() []address.Module { return n.flatten().empty }

func (n *Node) flatten() *flat {
	if f := n.flat.Load(); f != nil {
		return f
	}
	f := &flat{}
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
			f.resources = append(f.resources, d.Resource.Addr)
		case d.Instance != nil:
			f.resources = append(f.resources, d.Instance.Addr.Resource)
		default:
			if d.empty != "" {
				f.empty = append(f.empty, d.empty)
			}
			for _, e := range d.deps {
				visit(e)
			}
		}
	}
	for _, d := range n.deps {
		visit(d)
	}
	n.flat.Store(f)
	return f
}
