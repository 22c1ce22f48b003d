// Package worker computes gradients: it holds one replica of the model, takes
// leases from the coordinator, reads their records ahead, pulls the parameters
// from the servers when they changed, pushes its sums to them and reports.
//
// It never updates a parameter and never chooses records: those belong to ps
// and coordinator.
//
// Entry point: Run.
package worker
