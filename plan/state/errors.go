package state

import (
	"errors"
	"fmt"
)

// CorruptError says that a snapshot or journal does not check out. Nothing
// was written, and nothing will be until somebody has looked at it.
type CorruptError struct {
	Path   string // as the store names it
	Offset int64  // the byte at which it stops making sense
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is corrupt at byte %d: %s", e.Path, e.Offset, e.Reason)
}

// NewerVersionError says that a snapshot or journal is in a format of which
// this program knows nothing.
type NewerVersionError struct {
	Path    string
	Version int64 // that it has
	Known   int64 // the newest that can be read
}

func (e *NewerVersionError) Error() string {
	return fmt.Sprintf("%s has format version %d, and this program knows none above %d: it was written by a newer one",
		e.Path, e.Version, e.Known)
}

// OlderVersionError says that a snapshot is in a format that is no longer
// read.
type OlderVersionError struct {
	Path    string
	Version int64
}

func (e *OlderVersionError) Error() string {
	return fmt.Sprintf("%s has format version %d, which is no longer read: run terraform apply with Terraform 0.13 or later once, which writes version 4",
		e.Path, e.Version)
}

// ConflictError says that a snapshot is not the one that was read: somebody
// else has written it.
type ConflictError struct {
	Path string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s was changed by somebody else since it was read", e.Path)
}

// LockedError says who holds the lock.
type LockedError struct {
	Path   string // of the snapshot
	Holder LockInfo
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is locked by %s", e.Path, e.Holder)
}

func isLocked(err error) bool {
	var l *LockedError
	return errors.As(err, &l)
}
