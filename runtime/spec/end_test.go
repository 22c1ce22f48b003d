package spec

import "testing"

// A status must not be mistaken for what the system or the Go runtime gives,
// and the numbers are what clusters were told: they stay.
func TestEnds(t *testing.T) {
	want := map[End]int{EndFinished: 0, EndError: 1, EndOtherwise: 10, EndAsked: 11, EndGivenUp: 12, EndNoCoordinator: 13, EndUsage: 64}
	if len(Ends) != len(want) {
		t.Errorf("the table has %d rows, want %d", len(Ends), len(want))
	}
	last := End(-1)
	for _, row := range Ends {
		if n, ok := want[row.End]; !ok || int(row.End) != n {
			t.Errorf("%d is not in the list of statuses", row.End)
		}
		if row.End <= last || row.End == 2 || row.End > 125 {
			t.Errorf("%d: out of order, or what a crash, a shell or a signal gives", row.End)
		}
		if row.Meaning == "" || row.Again == "" || row.End.String() != row.Meaning {
			t.Errorf("%d is not explained: %q, %q", row.End, row.Meaning, row.Again)
		}
		last = row.End
	}
	for phase, end := range map[Phase]End{Succeeded: EndFinished, Failed: EndOtherwise, Stopped: EndOtherwise} {
		if EndOf(phase) != end {
			t.Errorf("%s ends as %d", phase, EndOf(phase))
		}
	}
	if got := End(9).String(); got != "exit status 9" {
		t.Error(got)
	}
}
