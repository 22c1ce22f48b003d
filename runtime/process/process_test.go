package process

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

func TestParseStat(t *testing.T) {
	fields := "S 12 34 34 0 -1 4194560 1 2 3 4 500 60 7 8 20 0 1 0 7777 1024 99 0 0"
	s, err := ParseStat(5, []byte("5 (a) b (c d) "+fields+"\n"))
	if want := (Stat{Parent: 12, Group: 34, Start: 7777, CPU: 560, Pages: 99}); err != nil || s != want {
		t.Errorf("%+v, %v, want %+v", s, err, want)
	}
	if s, err := ParseStat(5, []byte("5 (x) "+strings.Replace(fields, "S", "Z", 1))); err != nil || !s.Zombie {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"", "5 (x)", "5 (x) S 1 2", "5 (x) " + strings.Replace(fields, "7777", "?", 1)} {
		if _, err := ParseStat(5, []byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestThread(t *testing.T) {
	prepared := false
	thread := NewThread(func() { prepared = true })
	failure := errors.New("it failed")
	calls := 0
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			var want error
			if i%2 == 0 {
				want = failure
			}
			err := thread.Do(func() error {
				calls++ // one call at a time
				if !prepared {
					t.Error("called before it was prepared")
				}
				return want
			})
			if err != want {
				t.Errorf("%v, want %v", err, want)
			}
		})
	}
	all.Wait()
	thread.Close()
	if calls != 20 {
		t.Errorf("%d calls", calls)
	}
}
