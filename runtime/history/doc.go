// Package history keeps the events of a run for people: metrics.jsonl, one JSON
// object a line, which the API and commands read while the coordinator writes.
//
// The newest updates are there in full. Older ones are merged into events of
// several updates, so that the file grows with the logarithm of their number.
// Samples of usage are merged in the same way for each role, evenly over the run:
// their number is bounded. All other events stay. Lines that cannot be read are moved to a file of their
// own.
//
// The account of committed updates is runtime/ledger's.
//
// Entry points: Open, File.
package history
