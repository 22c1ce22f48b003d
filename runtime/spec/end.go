package spec

import (
	"fmt"
	"slices"
)

// End is the exit status of a process of a run: why it ended. Whoever starts
// processes (the supervisor here, a cluster's Jobs elsewhere) decides by it
// what to do next. The numbers are part of the contract: they never change.
type End int

const (
	// EndFinished: the coordinator declared the run finished. Nothing else is 0.
	EndFinished End = 0
	// EndError is every other error: starting again may mend it. A Go program
	// that crashes ends with 2, one that is killed by a signal with 128 and more.
	EndError End = 1
	// EndOtherwise: the coordinator declared that the run ended otherwise: it
	// failed, or was stopped.
	EndOtherwise End = 10
	// EndAsked: the process was asked to leave, by a signal or because the run
	// needs fewer workers; the run goes on without it.
	EndAsked End = 11
	// EndGivenUp: this worker is given up: another one of the same index would
	// fail in the same way.
	EndGivenUp End = 12
	// EndNoCoordinator: it had no coordinator for too long.
	EndNoCoordinator End = 13
	// EndUsage: arguments, environment or specification are wrong: starting
	// again with the same ones does not help. 64 is EX_USAGE of sysexits(3).
	EndUsage End = 64
)

// EndRow is one line of the table of exit statuses.
type EndRow struct {
	End
	Meaning string
	Again   string // what whoever starts processes is to do
}

// Ends is the table of exit statuses, in the order of their numbers.
var Ends = []EndRow{
	{EndFinished, "the coordinator declared the run finished", "nothing: the run is done"},
	{EndError, "any other error, or a crash (2; 128 and more for a signal)", "start it again, within limits"},
	{EndOtherwise, "the coordinator declared that the run ended otherwise: failed or stopped", "nothing: the run is over"},
	{EndAsked, "it had to leave: by SIGTERM, or because the run needs fewer workers", "start it again only where it is still wanted"},
	{EndGivenUp, "this worker is given up: another one of its index would fail in the same way", "go on without it"},
	{EndNoCoordinator, "it had no coordinator for too long", "start it again while the run is wanted"},
	{EndUsage, "arguments, environment or specification are wrong", "nothing: it would end again"},
}

// IsKnown reports whether the table has the status.
func (e End) IsKnown() bool {
	return slices.ContainsFunc(Ends, func(row EndRow) bool { return row.End == e })
}

// String says the end's meaning.
func (e End) String() string {
	for _, row := range Ends {
		if row.End == e {
			return row.Meaning
		}
	}
	return fmt.Sprintf("exit status %d", int(e))
}

// EndOf is how a process ends whose coordinator declared the run to be in this
// final phase.
func EndOf(p Phase) End {
	if p == Succeeded {
		return EndFinished
	}
	return EndOtherwise
}
