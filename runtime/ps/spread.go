package ps

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// piece is how many values are worked on at a time. It is fixed, so that what
// is added up over pieces is the same on any number of cores, and with the norms that
// other members send (wire.Values).
const piece = 1 << 15

// perCore is for how many values, of all workers' pushes of an update together,
// a core more is worth it: below that, waking its thread takes longer than the
// work.
const perCore = 1 << 20

// limitCores tells how many cores the server's work fills. Called with mu held.
func (s *Server) limitCores() {
	if s.Fit != nil {
		s.Fit(1 + len(s.values.v)*s.workers/perCore)
	}
}

// leastPieces is for how many pieces another core is worth it: waking its thread takes as
// long as some pieces.
const leastPieces = 4

// spread does a vector's pieces [from, to), on all cores where there are many of them:
// while a server works, those who compute wait for it.
func spread(n int, do func(i, from, to int)) {
	pieces := (n + piece - 1) / piece
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < pieces; i = int(next.Add(1)) - 1 {
			do(i, i*piece, min((i+1)*piece, n))
		}
	}
	var others sync.WaitGroup
	for range min(pieces/leastPieces, runtime.GOMAXPROCS(0)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}
