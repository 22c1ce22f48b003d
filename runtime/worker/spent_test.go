package worker

import (
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

func TestSpent(t *testing.T) {
	var s Spent
	end := s.begin(computing)
	time.Sleep(2 * time.Millisecond)
	end()
	s.begin(readingData)()
	if is := s.Read(); is.Compute < 0.002 || is.Communicate != 0 {
		t.Errorf("%+v", is)
	}
	(*Spent)(nil).begin(communicating)()
	got := spec.Work{Compute: 7, Communicate: 2, Data: 100}.Shares(spec.Work{Compute: 4, Communicate: 3}, 5)
	if want := (spec.Work{Compute: 0.6, Data: 1}); got != want {
		t.Errorf("shares %+v, want %+v", got, want)
	}
}
