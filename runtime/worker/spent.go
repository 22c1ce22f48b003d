package worker

import (
	"sync/atomic"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// Spent adds up the time that a worker has spent on each kind of work since its start.
// The worker adds, and another goroutine reads it. The zero value is ready; nil counts
// nothing.
type Spent struct {
	compute, communicate, data atomic.Int64 // nanoseconds
}

// kind is one sum of Spent.
type kind func(*Spent) *atomic.Int64

func computing(s *Spent) *atomic.Int64     { return &s.compute }
func communicating(s *Spent) *atomic.Int64 { return &s.communicate }
func readingData(s *Spent) *atomic.Int64   { return &s.data }

// begin begins a time of one kind; the caller calls end.
func (s *Spent) begin(of kind) (end func()) {
	if s == nil {
		return func() {}
	}
	from := time.Now()
	return func() { of(s).Add(int64(time.Since(from))) }
}

// Read returns the sums in seconds.
func (s *Spent) Read() spec.Work {
	seconds := func(n *atomic.Int64) float64 { return time.Duration(n.Load()).Seconds() }
	return spec.Work{Compute: seconds(&s.compute), Communicate: seconds(&s.communicate), Data: seconds(&s.data)}
}
