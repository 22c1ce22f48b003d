// Package run carries a plan out: every operation is an intent in the journal,
// a call to a provider, a result in the journal. Apply is its entry point.
//
// It is dumb on purpose. Package plan has decided the operations and their
// order; here is only a bounded pool that does them, and the care that nothing
// which was done is forgotten.
package run
