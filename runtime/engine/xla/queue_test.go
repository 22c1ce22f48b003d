package xla

import (
	"testing"
	"time"
)

// The queue is as long as half a second, whatever a run takes, and follows runs that get
// slower or faster.
func TestQueueIsHalfASecond(t *testing.T) {
	var q queue
	now := time.Unix(1, 0)
	waits := func(each time.Duration, times int) (last int) {
		for range times {
			last = 0
			for full := false; !full; last++ {
				full = q.begin(now)
			}
			now = now.Add(time.Duration(last) * each)
			q.end(now)
			now = now.Add(time.Hour) // the host is idle: that is no time of a run
		}
		return last
	}
	for _, test := range []struct {
		each  time.Duration
		times int
		want  int
	}{
		{time.Millisecond, 1, 2}, {time.Millisecond, 1, 4}, {time.Millisecond, 5, 64}, {50 * time.Millisecond, 2, 10},
		{time.Second, 2, 2}, {time.Minute, 2, 2}, {100 * time.Millisecond, 4, 5}, {0, 6, 64},
	} {
		if got := waits(test.each, test.times); got != test.want {
			t.Errorf("%d waits for runs of %v each: the last one was for %d, want %d", test.times, test.each, got, test.want)
		}
	}
	q.end(now)
	if q.most != 64 {
		t.Errorf("a wait for no run has changed the queue: %+v", q)
	}
}
