package dashboard

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestManyRuns lists 200 runs of 32 workers, 4 of them live, and bounds the memory of
// their histories on the screens.
func TestManyRuns(t *testing.T) {
	f := &fakeSource{saved: make(map[string]string)}
	for i := range 200 {
		r := newRun(fmt.Sprintf("r[%d]", i), 32, 0.1)
		r.train(0, 60)
		if i >= 4 {
			r.end("succeeded")
		}
		f.runs = append(f.runs, r)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := open(t, f)
	began := time.Now()
	body := s.get("/runs")
	t.Logf("the list took %v, %d KB", time.Since(began), len(body)/1024)
	if n := strings.Count(body, "<tr data-run="); n != 200 {
		t.Errorf("%d runs are listed", n)
	}
	began = time.Now()
	if n := strings.Count(s.get("/workers"), `<li class="card`); n != maxCards {
		t.Errorf("%d cards", n)
	}
	s.get("/data/workers")
	t.Logf("the workers took %v", time.Since(began))
	for _, r := range f.runs {
		s.get(of("/data/series", r))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("the heap grew by %d MB", grown>>20)
	if grown > 100<<20 {
		t.Errorf("the heap grew by %d MB", grown>>20)
	}
	if n := len(s.server.feeds.all); n > idleFeeds {
		t.Errorf("%d histories are kept", n)
	}
}
