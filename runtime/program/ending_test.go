package program

import (
	"syscall"
	"testing"
	"time"
)

// A rank that was killed from outside ends the generation, whichever end is observed
// first. One that this package kills does not.
func TestEndsThatAreObservedLate(t *testing.T) {
	failed, killed := End{Rank: 2, Code: 1}, End{Rank: 3, Signal: syscall.SIGKILL}
	for name, tt := range map[string]struct {
		killing bool
		cause   Cause
		first   int
		text    string
	}{
		"from outside":    {false, Killed, 1, "was killed (SIGKILL): by the kernel for lack of memory, or by another process"},
		"by this package": {true, Failed, 0, "ended by signal 9 (killed)"},
	} {
		g := &Generation{report: func(Event) {}, machine: machine{now: time.Now}, result: Result{Ranks: make([]End, 2), First: -1}}
		g.noteEnd(ending{0, failed}, false, false)
		g.noteEnd(ending{1, killed}, true, tt.killing)
		if g.result.Cause != tt.cause || g.result.First != tt.first || g.result.Ranks[1].String() != tt.text {
			t.Errorf("%s: %s by rank %d, which %s", name, g.result.Cause, g.result.First, g.result.Ranks[1])
		}
	}
	g := &Generation{report: func(Event) {}, machine: machine{now: time.Now}, result: Result{Ranks: make([]End, 2), First: -1, Cause: Stopped}}
	g.noteEnd(ending{1, killed}, true, false)
	if g.result.Cause != Stopped || g.result.First >= 0 {
		t.Errorf("a generation that was stopped has %s by %d", g.result.Cause, g.result.First)
	}
}
