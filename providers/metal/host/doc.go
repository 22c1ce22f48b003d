// Package host is one machine as the provider metal works on it: how commands
// run there and files are written (Machine), what was there before stoke
// changed it (Record), and what a change interrupts (Disruption).
//
// It knows nothing of what is managed. The packages beside it do, each with the
// same functions over its own Spec, which is plain data, and over what it looks
// at:
//
//	Observe(ctx, m, want) (have Facts, err error)  the machine as it is, as far as want declares it
//	Diff(want, have) []host.Change                 what differs, fact by fact, and what changing it interrupts
//	Undoing(rec, want) []host.Change               what is recorded and no longer declared, and what taking it back interrupts
//	Apply(ctx, m, rec, want, have) error           makes it so, remembering first what it replaces
//	Restore(ctx, m, rec) ([]host.Outcome, error)   undoes it, fact by fact
//
// Each is safe to repeat: a step that was cut off is found by looking, never by
// remembering that it had begun.
package host
