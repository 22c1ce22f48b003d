package state

import (
	"fmt"
	"math"
	"time"
)

// CorruptError: a snapshot or journal does not check out. Nothing was written,
// and nothing will be until the file was repaired.
type CorruptError struct {
	Path   string // as the store names it
	Offset int64  // the byte at which it stops making sense
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is corrupt at byte %d: %s", e.Path, e.Offset, e.Reason)
}

// NewerVersionError: a snapshot or journal has a format that this program does
// not know.
type NewerVersionError struct {
	Path    string
	Version int64 // that it has
	Known   int64 // the newest that can be read
}

func (e *NewerVersionError) Error() string {
	return fmt.Sprintf("%s has format version %d, and this program knows none above %d: it was written by a newer one",
		e.Path, e.Version, e.Known)
}

// OlderVersionError: a snapshot is in a format that is no longer read.
type OlderVersionError struct {
	Path    string
	Version int64
}

func (e *OlderVersionError) Error() string {
	return fmt.Sprintf("%s has format version %d, which is no longer read: run terraform apply with Terraform 0.13 or later once, which writes version 4",
		e.Path, e.Version)
}

// ConflictError: the stored snapshot is not the snapshot that was read, because
// another process has written it.
type ConflictError struct {
	Path string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s was changed by another process since it was read", e.Path)
}

// SerialError: a snapshot has the highest possible serial, so that no other can
// follow it. Nothing was written.
type SerialError struct {
	Path string
}

func (e *SerialError) Error() string {
	return fmt.Sprintf("%s has the serial %d, which is the last one", e.Path, uint64(math.MaxUint64))
}

// LockedError names the holder of the lock.
type LockedError struct {
	Path   string // of the snapshot
	Holder LockInfo
	// Doubt is not 0 where the holder seems to be dead, as its lease has run
	// out: how long it has to be watched to be sure. Trying again for as long
	// takes the lock over.
	Doubt time.Duration
	// Advice is a sentence on how a dead holder's lock is released; "" where the
	// lock stays until it is broken.
	Advice string
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is locked by %s", e.Path, e.Holder)
}

// NotLockedError: the state was not locked.
type NotLockedError struct {
	Path string // of the snapshot
}

func (e *NotLockedError) Error() string { return fmt.Sprintf("%s is not locked", e.Path) }

// LostLockError: the lock was held, and another process has taken it, or it
// could not be renewed in time. Nothing was written since.
type LostLockError struct {
	Path   string // of the snapshot
	Reason string
}

func (e *LostLockError) Error() string {
	return fmt.Sprintf("the lock of %s was lost: %s", e.Path, e.Reason)
}
