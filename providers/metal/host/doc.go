// Package host is one machine as the provider metal works on it: how commands
// run there and files are written (Machine), what was there before stoke
// changed it (Record), and what a change interrupts (Disruption).
//
// It does not know the managed facts. The packages in the neighbouring folders
// do, each with the same functions over its own Spec, which is plain data, and
// over its observed Facts:
//
//	Observe(ctx, m, want) (have Facts, err error)  the machine as it is, as far as want declares it
//	Apply(ctx, m, rec, want, have) error           makes it so, remembering first what it replaces
//	Restore(ctx, m, rec) ([]host.Outcome, error)   undoes it, fact by fact
//
// Each package has a Table of its facts: differences, notes of former values and
// the restoring of removed arguments follow from it.
//
// Each function is safe to repeat: it observes how far an interrupted step came,
// and never relies on a note that the step had begun.
package host
