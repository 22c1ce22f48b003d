package eval

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/plan/redact"
)

// Task is one line of evaluation: a goroutine with the stack of cells that it
// is computing. It holds one of the evaluator's tokens while it runs and gives
// it back while it waits for other tasks.
type Task struct {
	ev    *Evaluator
	stack []*header

	advises *advice // like header.advises, for code outside of a cell
	reports int     // how many diagnostics the task itself has reported

	// For finding cycles across tasks, guarded by the evaluator's mutex.
	waiting  *header        // the cell of another task that this one waits for
	parent   *Task          // the task that spawned this one and joins it
	depth    int            // how much of the parent's stack waits for this one
	children map[*Task]bool // those that run now
}

// Report passes diagnostics on to whoever runs the evaluation.
func (t *Task) Report(diags ...*hcl.Diagnostic) {
	t.reports += len(diags)
	explainFunctions(diags)
	t.ev.report(t.advised(redact.WithoutSecrets(diags)))
}

// ReportOnce reports the first of all diagnostics with the same key.
func (t *Task) ReportOnce(key string, d *hcl.Diagnostic) { t.ev.reportOnce(key, d) }

// Evaluator returns the evaluator that the task belongs to.
func (t *Task) Evaluator() *Evaluator { return t.ev }

// Idle runs f, which only waits for something outside of the evaluation;
// meanwhile another task may run.
func (t *Task) Idle(f func()) {
	t.ev.release()
	defer t.ev.acquire()
	f()
}

func (t *Task) top() *header {
	if len(t.stack) == 0 {
		return nil
	}
	return t.stack[len(t.stack)-1]
}

// ForEach calls f for 0 … n-1, some of them at the same time, and returns when all
// have. The reads of the calls are dependencies of the cell that t computes.
//
// Helpers take one item after the other, so that their stacks grow once.
func (t *Task) ForEach(n int, f func(t *Task, i int)) {
	var wg sync.WaitGroup
	var taken atomic.Int64
	for {
		i := int(taken.Add(1)) - 1
		if i >= n {
			break
		}
		for help := n - 1 - i; help > 0 && t.ev.tryAcquire(); help-- {
			child := t.spawn()
			wg.Go(func() {
				for {
					i := int(taken.Add(1)) - 1
					if i >= n {
						break
					}
					f(child, i)
				}
				t.ev.mu.Lock()
				delete(t.children, child)
				t.ev.mu.Unlock()
				t.ev.release()
			})
		}
		f(t, i)
	}
	t.ev.release()
	wg.Wait()
	t.ev.acquire()
}

// spawn makes a task that works on the cell that t computes: its reads are
// noted there too.
func (t *Task) spawn() *Task {
	child := &Task{ev: t.ev, parent: t, depth: len(t.stack), advises: t.advises}
	if h := t.top(); h != nil {
		child.stack = append(child.stack, h)
	}
	t.ev.mu.Lock()
	defer t.ev.mu.Unlock()
	if t.children == nil {
		t.children = map[*Task]bool{}
	}
	t.children[child] = true
	return child
}

// cycle returns the chain of cells that leads from h back to the task if
// waiting for h would never end, else nil. The evaluator's mutex is held.
func (t *Task) cycle(h *header) []*header {
	seen := map[*header]bool{}
	var search func(h *header) []*header
	search = func(h *header) []*header {
		if seen[h] || h.owner == nil {
			return nil
		}
		seen[h] = true
		owner := h.owner
		from := owner.index(h)
		if from < 0 {
			return nil
		}
		if line, ok := t.cellsBelow(owner, from); ok {
			return line
		}
		above := owner.stack[from:]
		var next []*header
		if owner.waiting != nil {
			next = append(next, owner.waiting)
		}
		for child := range owner.children {
			if child.depth > from {
				next = child.waits(next)
			}
		}
		for _, n := range next {
			if chain := search(n); chain != nil {
				return slices.Concat(above, chain)
			}
		}
		return nil
	}
	return search(h)
}

func (t *Task) index(h *header) int {
	for i := len(t.stack) - 1; i >= 0; i-- {
		if t.stack[i] == h {
			return i
		}
	}
	return -1
}

// cellsBelow returns the cells from the owner's stack position down to the top of
// t's stack, if t works for that position: because it is the owner, or because
// the owner spawned it, or the task that did, while computing that cell.
func (t *Task) cellsBelow(owner *Task, from int) ([]*header, bool) {
	if t == owner {
		return t.stack[from:], true
	}
	if t.parent == nil {
		return nil, false
	}
	if t.parent == owner {
		if t.depth <= from {
			return nil, false
		}
		return slices.Concat(owner.stack[from:t.depth], t.stack), true
	}
	line, ok := t.parent.cellsBelow(owner, from)
	if !ok {
		return nil, false
	}
	return slices.Concat(line, t.stack), true
}

// waits collects what the task and its children wait for.
func (t *Task) waits(into []*header) []*header {
	if t.waiting != nil {
		into = append(into, t.waiting)
	}
	for child := range t.children {
		into = child.waits(into)
	}
	return into
}

// Cycle is the summary of the error that things need each other.
const Cycle = "Cycle"

func (t *Task) reportCycle(chain []*header) {
	chain = fromFirst(chain)
	var b strings.Builder
	var first *hcl.Range
	seen := map[string]bool{}
	lines := 0
	for _, h := range chain {
		line := h.title()
		if line == "" {
			continue
		}
		if h.rng != nil {
			line = fmt.Sprintf("%s (%s line %d)", line, h.rng.Filename, h.rng.Start.Line)
			if first == nil {
				first = h.rng
			}
		}
		if !seen[line] {
			seen[line] = true
			lines++
			b.WriteString("  - " + line + "\n")
		}
	}
	intro := "Each of these needs the next one, and the last needs the first, so none can come first:\n"
	if lines == 1 {
		intro = "This needs its own value before it has one:\n"
	}
	t.ev.reportOnce("cycle", &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  Cycle,
		Detail:   intro + b.String() + "Remove one of the references between them.",
		Subject:  first,
	})
}

// fromFirst turns a cycle so that it begins with its first part in the files,
// whichever part was evaluated first.
func fromFirst(chain []*header) []*header {
	first := -1
	for i, h := range chain {
		if h.rng == nil || h.title() == "" {
			continue
		}
		if first < 0 || precedes(h.rng, chain[first].rng) {
			first = i
		}
	}
	if first <= 0 {
		return chain
	}
	return slices.Concat(chain[first:], chain[:first])
}

func precedes(a, b *hcl.Range) bool {
	if a.Filename != b.Filename {
		return a.Filename < b.Filename
	}
	return a.Start.Byte < b.Start.Byte
}
