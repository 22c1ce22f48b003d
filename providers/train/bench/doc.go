// Package bench measures the all-reduce of training runs: it starts a temporary run
// whose program is stoke-trainer's benchmark, reads the results from the log of rank 0,
// and removes the run.
//
// The launcher decides where the run is; the exchange itself is in runtime/worker and
// runtime/ps.
//
// Entry point: Measure.
package bench
