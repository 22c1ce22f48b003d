package program

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// Cause is why a generation ended.
type Cause string

// The causes.
const (
	Succeeded Cause = "succeeded" // all ranks ended with 0
	Failed    Cause = "failed"    // by an error of the program: it counts against max_restarts
	Killed    Cause = "killed"    // a rank was ended from outside: by the kernel for lack of memory, or by a signal of another process
	Stopped   Cause = "stopped"   // by Stop
)

// Result is how a generation ended.
type Result struct {
	Cause     Cause
	Ranks     []End
	First     int      // index in Ranks of the rank whose end ended the generation; -1: none
	Last      []string // lines that this rank printed last, harmless to print
	Leftovers []int    // processes that could not be ended, not even by SIGKILL
}

// String returns the cause with the rank and its last lines, for people.
func (r Result) String() string {
	if r.First < 0 {
		return string(r.Cause)
	}
	e := r.Ranks[r.First]
	text := fmt.Sprintf("rank %d %s", e.Rank, e)
	if len(r.Last) > 0 {
		text += "; its last lines:\n" + strings.Join(r.Last, "\n")
	}
	return text
}

// End is how a rank ended.
type End struct {
	Rank      int
	PID       int
	Code      int            // where Signal is 0
	Signal    syscall.Signal // that ended the process; 0: it exited
	Core      bool           // a core was dumped
	At        time.Time
	Asked     bool  // after SIGTERM or SIGKILL of this package
	Lost      bool  // it did not end within the time that SIGKILL may take
	Malformed int   // lines of metrics that were not as documented
	Dropped   int64 // bytes of output that could not be written
}

// OK reports whether the rank has done all of its work.
func (e End) OK() bool { return !e.Lost && e.Signal == 0 && e.Code == 0 }

// Outside reports whether the rank was ended from outside. Shells report the
// signal of their child as 128 and its number.
func (e End) Outside() bool {
	if e.Code == 128+int(syscall.SIGKILL) || e.Code == 128+int(syscall.SIGTERM) {
		return true
	}
	switch e.Signal {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGXCPU:
		return true
	}
	return false
}

// String returns the end for people, after "rank N".
func (e End) String() string {
	switch {
	case e.Lost:
		return "does not end, not even after SIGKILL"
	case e.Signal == syscall.SIGKILL && !e.Asked:
		return "was killed (SIGKILL): by the kernel for lack of memory, or by another process"
	case e.Signal != 0:
		return fmt.Sprintf("ended by signal %d (%s)", int(e.Signal), e.Signal)
	case e.Code == 0:
		return "ended with 0"
	case e.Code == 128+int(syscall.SIGKILL):
		return "ended with 137: a process that it started was killed (SIGKILL), perhaps for lack of memory"
	}
	return fmt.Sprintf("ended with %d", e.Code)
}
