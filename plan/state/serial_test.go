package state

import (
	"errors"
	"math"
	"testing"
)

// TestHighestSerial: no journal begins on a state after which no serial is left,
// as it could never become part of it.
func TestHighestSerial(t *testing.T) {
	m := newMemory()
	m.snapshot = New("l").Encode(math.MaxUint64)
	before := string(m.snapshot)
	_, err := open(t, m).Begin(t.Context())
	var serial *SerialError
	if !errors.As(err, &serial) {
		t.Fatalf("got %v, want a *SerialError", err)
	}
	if m.journal != nil || string(m.snapshot) != before {
		t.Error("something was written")
	}
	m = newMemory()
	m.snapshot = New("l").Encode(math.MaxUint64 - 1)
	closeJournal(t, begin(t, open(t, m)))
}
