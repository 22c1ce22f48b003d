package xla

import "time"

const (
	// maxQueued and minQueued bound the runs that wait for the device: each keeps its
	// batch there.
	maxQueued, minQueued = 64, 2
	// queueTime is about how long the device computes what waits for it, at most: a worker
	// that waits for the device reports its progress at most so late.
	queueTime = 500 * time.Millisecond
)

// queue counts the runs that wait for the device, and measures how long they take. The
// zero queue is empty.
type queue struct {
	runs  int       // begun since the last wait for all of them
	most  int       // as many may be begun until the next wait; 0: none was measured
	began time.Time // the first of them
}

// begin counts a run that was begun, and reports whether the caller waits for it.
func (q *queue) begin(now time.Time) (full bool) {
	if q.runs == 0 {
		q.began = now
	}
	q.runs++
	return q.runs >= max(minQueued, q.most)
}

// end is called after a wait for all runs. It at most doubles the number of runs until the
// next one: the first runs of a program may take longer, or less, than later ones.
func (q *queue) end(now time.Time) {
	if q.runs == 0 {
		return
	}
	fit := maxQueued
	if each := now.Sub(q.began) / time.Duration(q.runs); each > 0 {
		fit = int(min(maxQueued, queueTime/each))
	}
	q.most = max(minQueued, min(fit, 2*max(minQueued, q.most)))
	q.runs = 0
}

// throttle counts a run with its newest result, and waits for that where enough runs are
// under way.
func (r *replica) throttle(newest Buffer) error {
	if !r.queue.begin(time.Now()) {
		return nil
	}
	err := newest.Wait()
	r.queue.end(time.Now())
	return err
}
