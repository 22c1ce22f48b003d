package eval

import (
	"github.com/stokehq/stoke/modules/address"
)

// A value that a phase cannot decide (a count that is known only after apply,
// or a value that its resolver defers) defers everything that reads it: each
// cell passes the deferral on to the cell that reads it.

// Defer makes the cell that the task computes, and all that read it, deferred.
func (t *Task) Defer() {
	t.ev.mu.Lock()
	defer t.ev.mu.Unlock()
	if h := t.top(); h != nil {
		h.deferred = true
	}
}

// Deferred reports whether the cell that the task computes read anything
// deferred so far.
func (t *Task) Deferred() bool {
	t.ev.mu.Lock()
	defer t.ev.mu.Unlock()
	h := t.top()
	return h != nil && h.deferred
}

// pass hands the deferral of a finished cell on to its reader. The evaluator's
// mutex is held.
func (t *Task) pass(h *header) {
	if !h.deferred {
		return
	}
	if top := t.top(); top != nil {
		top.deferred = true
	}
}

// readsResources reports whether the cell that the task computes has read a
// resource so far, through whatever locals, variables and outputs. Only then
// can an apply make known what is unknown now.
func (t *Task) readsResources() bool {
	t.ev.mu.Lock()
	defer t.ev.mu.Unlock()
	h := t.top()
	if h == nil {
		return false
	}
	seen := map[*Node]bool{}
	var visit func(*Node) bool
	visit = func(n *Node) bool {
		if seen[n] {
			return false
		}
		seen[n] = true
		if n.Resource != nil || n.Instance != nil {
			return true
		}
		for _, d := range n.deps {
			if visit(d) {
				return true
			}
		}
		return false
	}
	for _, d := range h.node.deps {
		if visit(d) {
			return true
		}
	}
	return false
}

// OutputDeferred reports whether an evaluated output depends on something
// deferred.
func (m *Module) OutputDeferred(name string) bool {
	m.ev.mu.Lock()
	defer m.ev.mu.Unlock()
	c := m.outputs[name]
	return c != nil && c.deferred
}

// Undecided is a count or for_each whose value is not known yet.
type Undecided struct {
	Subject  string // whose it is: an address without instance keys of its own
	Argument string // count or for_each
	Node     *Node  // what it reads
}

// Undecided returns what keeps the resource's instances from being told apart:
// a count or for_each of its own or, before that, of a module call that leads
// to it. It is nil where they are known. It is for one goroutine, after
// evaluation.
func (r *Resource) Undecided() *Undecided {
	var found *Undecided
	for m := r.module; m.parent != nil; m = m.parent {
		if !m.rep.key.IsAny() {
			continue
		}
		call := m.parent.calls[m.call.Name]
		found = &Undecided{
			Subject:  string(m.parent.Addr.Child(m.call.Name, address.Key{})),
			Argument: repeatedBy(m.call.Count != nil), Node: call.keys.node,
		}
	}
	if found == nil && r.form == undecided {
		found = &Undecided{Subject: r.Addr.String(), Argument: r.Repeated(), Node: r.keys.node}
	}
	return found
}

func repeatedBy(count bool) string {
	if count {
		return "count"
	}
	return "for_each"
}

// Open reports whether the instance represents all of a call whose count or
// for_each is not known yet, and names the call: its path without a key.
func (m *Module) Open() (address.Module, bool) {
	if m.parent == nil || !m.rep.key.IsAny() {
		return "", false
	}
	return m.parent.Addr.Child(m.call.Name, address.Key{}), true
}

// Undecided reports whether the instances of a module above this one are not known:
// it may have no instance at all.
func (m *Module) Undecided() bool {
	for ; m.parent != nil; m = m.parent {
		if m.rep.key.IsAny() {
			return true
		}
	}
	return false
}

// open reports whether the instance represents any number of instances, also zero:
// an error that depends on values may be wrong.
func (i *Instance) open() bool { return i.Addr.Key.IsAny() || i.Resource.module.Undecided() }
