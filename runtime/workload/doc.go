// Package workload resolves what a spec only names: the model and the prepared
// data, checked against each other and against the planned hash.
//
// It trains nothing; every role of a run that needs model or data opens it.
//
// Entry point: Open.
package workload
