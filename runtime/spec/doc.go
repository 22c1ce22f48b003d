// Package spec is the contract between the planner of an experiment
// (providers/train) and its trainer (the rest of runtime), as data: an
// experiment (Spec), the cost of a change (Compare), a run's progress (Status,
// Event, Ledger), and the messages between its processes (Control, Endpoints,
// LiveChange).
//
// It is not a place for behaviour: it opens no file, starts no process, speaks
// to no network and imports nothing of ours, so that both sides can share it.
// runtime/run has a run's folder on a machine, runtime/api its HTTP interface.
//
// Entry point: Spec.
package spec
