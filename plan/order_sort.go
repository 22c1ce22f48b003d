package plan

import "slices"

// preference orders an operation after another one where possible: the deletion
// of an object after the update of a user that no longer reads it. It gives way
// where the update waits for that very deletion.
type preference struct{ op, after int32 }

// sorted returns the operations in an order in which each follows the
// operations that it waits for. It keeps the given order where that leaves a
// choice, and honours all preferences that leave such an order. stuck are the
// operations of a circle.
func sorted(ops []Op, rather []preference) (result []Op, stuck []int32) {
	preferred := make([]int, len(ops)) // how many of an operation's waits are preferences
	for _, r := range rather {
		ops[r.op].After = append(ops[r.op].After, r.after)
		preferred[r.op]++
	}
	if result, stuck = topological(ops); stuck == nil || len(rather) == 0 {
		return result, stuck
	}
	for _, r := range rather {
		op := &ops[r.op]
		op.After = op.After[:len(op.After)-preferred[r.op]]
		preferred[r.op] = 0
	}
	honour(ops, rather)
	return topological(ops)
}

// honour adds to what operations wait for those preferences that close no ring.
// Where a preference with a barrier would close one, some operations of the
// barrier may still come first.
func honour(ops []Op, rather []preference) {
	h := &honouring{ops: ops, heads: make([][]int32, len(ops))}
	preferred := make([][]int32, len(ops))
	for _, r := range rather {
		preferred[r.op] = append(preferred[r.op], r.after)
	}
	h.ring = components(len(ops), func(op int32) [2][]int32 { return [2][]int32{ops[op].After, preferred[op]} })
	for i, op := range ops {
		for _, before := range op.After {
			h.heads[before] = append(h.heads[before], int32(i))
		}
	}
	groups := map[int32][]int32{} // by the operation that is preferred first: the operations that prefer it
	var order []int32
	for _, r := range rather {
		if groups[r.after] == nil {
			order = append(order, r.after)
		}
		groups[r.after] = append(groups[r.after], r.op)
	}
	for _, after := range order {
		h.try(groups[after], []int32{after})
	}
}

type honouring struct {
	ops   []Op
	heads [][]int32 // which operations wait for one
	ring  []int32   // its component, with all preferences; nothing leads out of it and back
}

// try makes each of some operations wait for each of others, but where that one
// waits for it. It searches as often as the shorter of the two lists is long.
func (h *honouring) try(ops, before []int32) {
	refused := map[int32][]int32{} // by the operation that cannot be first, where that is a barrier
	decide := func(op, first int32, ring bool) {
		switch {
		case !ring:
			h.ops[op].After = append(h.ops[op].After, first)
			h.heads[first] = append(h.heads[first], op)
		case h.ops[first].Kind == Barrier:
			refused[first] = append(refused[first], op)
		}
	}
	if len(before) <= len(ops) {
		for _, first := range before {
			waits := h.reach(first, func(op int32) []int32 { return h.ops[op].After })
			for _, op := range ops {
				decide(op, first, waits[op])
			}
		}
	} else {
		for _, op := range ops {
			waiting := h.reach(op, func(op int32) []int32 { return h.heads[op] })
			for _, first := range before {
				decide(op, first, waiting[first])
			}
		}
	}
	for _, first := range before {
		if len(refused[first]) > 0 {
			h.try(refused[first], slices.Clone(h.ops[first].After))
		}
	}
}

// reach is where edges lead from an operation within its component, itself
// included.
func (h *honouring) reach(from int32, edges func(int32) []int32) map[int32]bool {
	reached := map[int32]bool{from: true}
	for stack := []int32{from}; len(stack) > 0; {
		op := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, next := range edges(op) {
			if h.ring[next] == h.ring[from] && !reached[next] {
				reached[next] = true
				stack = append(stack, next)
			}
		}
	}
	return reached
}

// topological sorts operations so that each follows those it waits for.
func topological(ops []Op) (result []Op, stuck []int32) {
	waiting := make([]int32, len(ops))
	heads := make([][]int32, len(ops))
	for i, op := range ops {
		waiting[i] = int32(len(op.After))
		for _, before := range op.After {
			heads[before] = append(heads[before], int32(i))
		}
	}
	queue := make([]int32, 0, len(ops))
	for i := range ops {
		if waiting[i] == 0 {
			queue = append(queue, int32(i))
		}
	}
	place := make([]int32, len(ops))
	for n := 0; n < len(queue); n++ {
		place[queue[n]] = int32(n)
		for _, next := range heads[queue[n]] {
			if waiting[next]--; waiting[next] == 0 {
				queue = append(queue, next)
			}
		}
	}
	if len(queue) < len(ops) {
		for i := range ops {
			if waiting[i] > 0 {
				stuck = append(stuck, int32(i))
			}
		}
		return nil, stuck
	}
	result = make([]Op, len(ops))
	for n, i := range queue {
		op := ops[i]
		after := make([]int32, len(op.After))
		for k, before := range op.After {
			after[k] = place[before]
		}
		op.After = after
		result[n] = op
	}
	return result, nil
}

// components numbers the strongly connected components of a graph, given what
// each of its n nodes leads to: two nodes have the same number where each leads
// to the other (Tarjan's algorithm).
func components(n int, next func(int32) [2][]int32) []int32 {
	number := make([]int32, n) // by when they were found, from 1
	low := make([]int32, n)
	component := make([]int32, n) // from 1; 0: not known yet
	var stack []int32
	var found, count int32
	var visit func(at int32)
	visit = func(at int32) {
		found++
		number[at], low[at] = found, found
		stack = append(stack, at)
		for _, list := range next(at) {
			for _, to := range list {
				switch {
				case number[to] == 0:
					visit(to)
					low[at] = min(low[at], low[to])
				case component[to] == 0:
					low[at] = min(low[at], number[to])
				}
			}
		}
		if low[at] < number[at] {
			return
		}
		count++
		for component[at] == 0 {
			component[stack[len(stack)-1]] = count
			stack = stack[:len(stack)-1]
		}
	}
	for at := range n {
		if number[at] == 0 {
			visit(int32(at))
		}
	}
	return component
}
