// Package spec is the contract between whoever plans an experiment
// (providers/train) and whoever trains it (the rest of runtime), as data: what
// an experiment is (Spec), what a change of it costs (Compare), how a run
// stands and what it did (Status, Event, Ledger), and what its processes tell
// each other about it (Control, Endpoints, LiveChange).
//
// It is not a place for behaviour: it opens no file, starts no process, speaks
// to no network and imports nothing of ours, so that both sides can share it.
// runtime/run has a run's folder on a machine, runtime/api its HTTP interface.
//
// Entry point: Spec.
package spec
