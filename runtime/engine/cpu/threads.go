package cpu

import "sync"

// job works on the span [from, to) of a pass's records (or elements) as the
// given part.
type job func(part, from, to int)

// threads runs jobs in parts. The number of parts fixes every sum's order; the
// number of threads only says who computes which part. Its goroutines belong
// to the replica, whose Close waits for them.
type threads struct {
	parts int
	calls []chan call // one per goroutine beside the caller's
	done  chan struct{}
	ended sync.WaitGroup
}

type call struct {
	n int
	f job
}

func newThreads(n, parts int) *threads {
	c := &threads{parts: parts, done: make(chan struct{}, n)}
	for t := 1; t < n; t++ {
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

// run cuts n into the parts and returns when all are done.
func (c *threads) run(n int, f job) {
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
func (c *threads) share(t int, k call) {
	for part := t; part < c.parts; part += len(c.calls) + 1 {
		from, to := k.n*part/c.parts, k.n*(part+1)/c.parts
		if from < to {
			k.f(part, from, to)
		}
	}
}

func (c *threads) close() {
	for _, calls := range c.calls {
		close(calls)
	}
	c.calls = nil
	c.ended.Wait()
}
