// Package history keeps the events of a run for people: metrics.jsonl, one JSON
// object a line, which the API and commands read while the coordinator writes.
//
// The newest updates are there in full. Older ones are merged into events of
// several updates, so that the file grows with the logarithm of their number.
// All other events stay. Lines that cannot be read are moved to a file of their
// own.
//
// It is no account of what was committed: that is runtime/ledger.
//
// Entry points: Open, File.
package history
