package cpu

import "sync"

// job works on the span [from, to) of a pass's records (or elements) as the
// given part.
type job func(part, from, to int)

// crew runs jobs in parts. The number of parts fixes every sum's order; the
// number of threads only says who computes which part. Its goroutines belong
// to the replica, whose Close waits for them.
type crew struct {
	parts int
	calls []chan call // one per goroutine beside the caller's
	done  chan struct{}
	ended sync.WaitGroup
}

type call struct {
	n int
	f job
}

func newCrew(threads, parts int) *crew {
	c := &crew{parts: parts, done: make(chan struct{}, threads)}
	for t := 1; t < threads; t++ {
		calls := make(chan call, 1)
		c.calls = append(c.calls, calls)
		c.ended.Add(1)
		go func() {
			defer c.ended.Done()
			for k := range calls {
				c.share(t, k)
				c.done <- struct{}{}
			}
		}()
	}
	return c
}

// run cuts n into the crew's parts and returns when all are done.
func (c *crew) run(n int, f job) {
	k := call{n, f}
	for _, calls := range c.calls {
		calls <- k
	}
	c.share(0, k)
	for range c.calls {
		<-c.done
	}
}

// share runs the parts of thread t.
func (c *crew) share(t int, k call) {
	for part := t; part < c.parts; part += len(c.calls) + 1 {
		from, to := k.n*part/c.parts, k.n*(part+1)/c.parts
		if from < to {
			k.f(part, from, to)
		}
	}
}

func (c *crew) close() {
	for _, calls := range c.calls {
		close(calls)
	}
	c.calls = nil
	c.ended.Wait()
}
