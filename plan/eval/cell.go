package eval

import (
	"github.com/hashicorp/hcl/v2"
)

type cellState uint8

const (
	idle cellState = iota
	running
	done
)

// header is what all cells have in common. Its fields are guarded by the
// evaluator's mutex.
type header struct {
	state cellState
	ok    bool
	// deferred reports that the cell read something that this phase cannot decide.
	deferred bool
	owner    *Task
	ready    chan struct{} // made by the first task that waits
	node     *Node
	name     func() string // for cycle reports; nil where a reader would not know the thing
	rng      *hcl.Range    // nil where nothing is written

	advises *advice // set for a check's own data source
}

// title is what a cycle report calls the cell, "" where a reader would not
// know the thing. Instances are many, so their names are made when asked for.
func (h *header) title() string {
	switch {
	case h.name != nil:
		return h.name()
	case h.node != nil && h.node.Instance != nil && !h.node.Instance.Addr.Key.IsZero():
		return h.node.Instance.Addr.String()
	}
	return ""
}

// cell computes a value once per phase.
type cell[T any] struct {
	header
	value T
}

// get returns the cell's value, which the first caller computes. ok is false
// when the value could not be made; whoever computed it has reported why.
func (c *cell[T]) get(t *Task, compute func(t *Task) (T, bool)) (value T, ok bool) {
	switch t.enter(&c.header) {
	case mine:
		v, ok := compute(t)
		c.value = v
		t.leave(&c.header, ok)
		return v, ok
	case cyclic:
		return value, false
	}
	return c.value, c.ok
}

type entry uint8

const (
	mine entry = iota
	theirs
	cyclic
)

// enter lets the task compute the cell, or waits until another task has. The
// cell becomes a dependency of the cell that the task is computing.
func (t *Task) enter(h *header) entry {
	ev := t.ev
	ev.mu.Lock()
	if h.node == nil {
		h.node = &Node{}
	}
	if n := t.top(); n != nil {
		n.node.add(h.node)
	}
	switch h.state {
	case idle:
		h.state, h.owner = running, t
		t.stack = append(t.stack, h)
		ev.mu.Unlock()
		return mine
	case done:
		t.pass(h)
		ev.mu.Unlock()
		return theirs
	}
	if chain := t.cycle(h); chain != nil {
		ev.mu.Unlock()
		t.reportCycle(chain)
		return cyclic
	}
	if h.ready == nil {
		h.ready = make(chan struct{})
	}
	ready := h.ready
	t.waiting = h
	ev.mu.Unlock()

	ev.release()
	<-ready
	ev.acquire()

	ev.mu.Lock()
	t.waiting = nil
	t.pass(h)
	ev.mu.Unlock()
	return theirs
}

func (t *Task) leave(h *header, ok bool) {
	ev := t.ev
	ev.mu.Lock()
	h.state, h.ok, h.owner = done, ok, nil
	t.stack = t.stack[:len(t.stack)-1]
	t.pass(h)
	ready := h.ready
	h.ready = nil
	ev.mu.Unlock()
	if ready != nil {
		close(ready)
	}
}
