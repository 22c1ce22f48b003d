package run

import (
	"sync"

	"github.com/stokehq/stoke/plan"
)

// pool starts operations as soon as all that they wait for is done, so many at
// a time. An operation that waits for a failed one is not started.
type pool struct {
	x       *runner
	ops     []plan.Op
	heads   [][]int32 // operation → its dependents
	waiting []int32   // operation → how many it still waits for
	because []string  // operation → the address whose failure keeps it from starting

	mu     sync.Mutex
	wake   *sync.Cond
	ready  []int32
	next   int
	ended  int
	halted bool // nothing more is started
	limits map[string]*limit
	turns  map[int32]*turn // of operations that fall under limits, from their first try on
}

func newPool(x *runner, ops []plan.Op) *pool {
	p := &pool{x: x, ops: ops, heads: make([][]int32, len(ops)), waiting: make([]int32, len(ops)), because: make([]string, len(ops)), limits: map[string]*limit{}, turns: map[int32]*turn{}}
	p.wake = sync.NewCond(&p.mu)
	for i, op := range ops {
		p.waiting[i] = int32(len(op.After))
		for _, before := range op.After {
			p.heads[before] = append(p.heads[before], int32(i))
		}
		if len(op.After) == 0 {
			p.ready = append(p.ready, int32(i))
		}
	}
	return p
}

// run does all operations with so many workers and returns when they are done
// or given up.
func (p *pool) run(workers int) {
	var wg sync.WaitGroup
	for range min(workers, len(p.ops)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			p.work()
		}()
	}
	wg.Wait()
	p.leftOver()
}

func (p *pool) work() {
	for {
		i, ok := p.take()
		if !ok {
			return
		}
		op := p.ops[i]
		if op.Kind == plan.Barrier || p.because[i] != "" {
			p.finish(i, p.because[i])
			continue
		}
		if p.x.stopped() {
			p.halt()
			return
		}
		if !p.admitted(i) {
			continue
		}
		if p.x.do(op) {
			p.finish(i, "")
		} else {
			p.finish(i, p.x.plan.Changes[op.Change].Addr.String())
		}
	}
}

func (p *pool) take() (int32, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.next >= len(p.ready) && p.ended < len(p.ops) && !p.halted {
		p.wake.Wait()
	}
	if p.halted || p.next >= len(p.ready) {
		return 0, false
	}
	i := p.ready[p.next]
	p.next++
	return i, true
}

// admitted reports whether the limits let the operation start now; if not, it
// is taken again later.
func (p *pool) admitted(i int32) bool {
	p.mu.Lock()
	_, tried := p.turns[i]
	p.mu.Unlock()
	if !tried {
		p.queue(i)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.admit(i)
}

func (p *pool) finish(i int32, because string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	p.waiting[i] = -1
	p.leave(i)
	for _, next := range p.heads[i] {
		if because != "" && p.because[next] == "" {
			p.because[next] = because
		}
		if p.waiting[next]--; p.waiting[next] == 0 {
			p.ready = append(p.ready, next)
		}
	}
	p.wake.Broadcast()
}

// halt gives everything up that has not been started.
func (p *pool) halt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halted = true
	p.wake.Broadcast()
}

// leftOver reports the operations that were not started.
func (p *pool) leftOver() {
	for i, op := range p.ops {
		if op.Kind == plan.Barrier || op.Kind == plan.Verify {
			continue
		}
		c := p.x.plan.Changes[op.Change]
		row := Outcome{Addr: c.Addr, Deposed: c.Deposed, Action: action(op, c)}
		switch {
		case p.because[i] != "":
			row.Status, row.Because = Skipped, p.because[i]
		case p.waiting[i] >= 0:
			row.Status = Interrupted
		default:
			continue
		}
		p.x.noteOutcome(row)
	}
}
