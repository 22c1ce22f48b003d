// Package state remembers stoke's objects: a snapshot in Terraform's version 4
// format and an append-only journal of the changes since.
//
// Open reads both from a Store and yields the present State and the intents
// that have no result. Begin opens the journal for writing: each provider call
// is announced by an Intent, which returns once it is on disk, and followed by
// a Result. Close folds the journal into the snapshot. A process that dies at
// any moment loses nothing that was acknowledged.
//
// A State is an immutable base with an overlay of what changed: it is read by
// many goroutines at once without copying, and a State taken earlier stays as
// it was.
//
// The package knows no provider and no configuration, evaluates nothing and
// never guesses: what does not check out is a *CorruptError that names the
// file and the byte, and nothing is overwritten. Where the bytes are kept is a
// Store; package local keeps them in files.
package state
