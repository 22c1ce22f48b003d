// Package host is one machine as the provider metal works on it: how commands
// run there and files are written (Machine), what was there before stoke
// changed it (Record), and what a change interrupts (Disruption).
//
// It knows nothing of what is managed. The packages beside it do, each with the
// same functions over its own Spec, which is plain data, and over what it looks
// at:
//
//	Observe(ctx, m, want) (have Facts, err error)  the machine as it is, as far as want declares it
//	Apply(ctx, m, rec, want, have) error           makes it so, remembering first what it replaces
//	Restore(ctx, m, rec) ([]host.Outcome, error)   undoes it, fact by fact
//
// What differs, what is noted of the time before, and what is given back once it
// is not declared any more follow from a Table of the facts that it looks after.
//
// Each is safe to repeat: a step that was cut off is found by looking, never by
// remembering that it had begun.
package host
