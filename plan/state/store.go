package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"
)

// Store is where a state is kept. Its methods are called by one goroutine at
// a time; SetInfo and Release of its locks may be called by any. Errors name
// the file or object at fault. No method may destroy what is there when it
// fails.
//
// A version names one content of the snapshot (an object's generation, an
// ETag, a resourceVersion, a digest); "" means that there is none.
type Store interface {
	// Names says what people call the snapshot and the journal: paths, URLs.
	Names() (snapshot, journal string)

	// ReadSnapshot returns the snapshot; nil data and version "" where there
	// is none. An empty file is not none: data is then empty and not nil.
	ReadSnapshot(ctx context.Context) (data []byte, version string, err error)

	// WriteSnapshot replaces the snapshot, durably and in one step, if its
	// version is still ifVersion; otherwise it fails with *ConflictError.
	WriteSnapshot(ctx context.Context, data []byte, ifVersion string) (version string, err error)

	// ReadJournal returns the journal; nil where there is none.
	ReadJournal(ctx context.Context) ([]byte, error)

	// Append puts records at offset at of the journal, of which everything
	// from there on is cut off first; that is never more than a torn record or
	// what an Append that failed has left. With at = 0 the journal is made and
	// must not exist or be empty. With durable it returns when everything up
	// to there would survive a power failure; otherwise when it would survive
	// the death of this process. records may be empty.
	Append(ctx context.Context, at int64, records []byte, durable bool) error

	// DropJournal removes the journal, durably. There may be none.
	DropJournal(ctx context.Context) error

	// Lock keeps all others out. It tries once; a lock that somebody holds is
	// *LockedError, a dead holder's is taken over. While a lock is held, a
	// Store that finds that it has been lost writes nothing any more: its
	// methods then fail with *LostLockError.
	Lock(ctx context.Context, info LockInfo) (Lock, error)

	// ForceUnlock breaks the lock with the given ID, whoever holds it:
	// *NotLockedError where there is none, *LockedError where the ID is
	// another one, and any other error where locks of this kind cannot be
	// broken.
	ForceUnlock(ctx context.Context, id string) error
}

// Backuper is a Store that keeps the snapshot before the present one. (A
// store whose objects have versions needs none.)
type Backuper interface {
	// Backup keeps data, durably, as the snapshot before.
	Backup(ctx context.Context, data []byte) error
}

// Lock is a lock that is held.
type Lock interface {
	// SetInfo changes the message that others get who find the lock held.
	SetInfo(msg string) error
	// Release gives the lock back. It must be called once.
	Release() error
}

// LockInfo says who holds a lock. Its JSON is Terraform's.
type LockInfo struct {
	ID        string    // drawn by the store when empty
	Operation string    // such as OperationTypeApply
	Info      string    // what people should know, such as what a run waits for
	Who       string    // user@host; filled in by the store when empty
	Version   string    // of the program
	Created   time.Time // UTC; filled in by the store when zero
	Path      string    // of the snapshot
}

// JSON is what is written into a lock file.
func (l LockInfo) JSON() []byte {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err) // strings and a time always encode
	}
	return b
}

// String describes the holder in one line.
func (l LockInfo) String() string {
	var b strings.Builder
	who := l.Who
	if who == "" {
		who = "an unknown holder"
	}
	b.WriteString(who)
	if l.Operation != "" {
		fmt.Fprintf(&b, ", %s", strings.TrimPrefix(l.Operation, "OperationType"))
	}
	if !l.Created.IsZero() {
		fmt.Fprintf(&b, ", since %s", l.Created.Local().Format("2006-01-02 15:04:05 MST"))
	}
	if l.ID != "" {
		fmt.Fprintf(&b, " (lock %s)", l.ID)
	}
	if l.Info != "" {
		fmt.Fprintf(&b, ": %s", l.Info)
	}
	return b.String()
}

// CurrentUser names the user and machine of this process, for LockInfo.
func CurrentUser() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// Wait takes the lock, trying again until timeout has passed or ctx ends.
// What it then returns wraps the last *LockedError. A holder that seems to be
// dead is watched for as long as it takes to be sure, even beyond timeout;
// notice, when not nil, is told of that once.
func Wait(ctx context.Context, s Store, info LockInfo, timeout time.Duration, notice func(string)) (Lock, error) {
	deadline := time.Now().Add(timeout)
	watching := false
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		l, err := s.Lock(ctx, info)
		var locked *LockedError
		if err == nil || !errors.As(err, &locked) {
			return l, err
		}
		if locked.Doubt > 0 && !watching {
			watching = true
			deadline = laterOf(deadline, time.Now().Add(locked.Doubt+watchSlack))
			if notice != nil {
				notice(fmt.Sprintf("The lock of %s shows no sign of life. Stoke watches it for %s and then takes it over.\n",
					locked.Holder, locked.Doubt.Round(time.Second)))
			}
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, err
		}
		t := time.NewTimer(min(pause, left))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("%w (waiting for the lock: %w)", err, context.Cause(ctx))
		case <-t.C:
		}
	}
}

// watchSlack is how much longer a dead holder is watched than its Store asks
// for, so that the last look comes after the end.
const watchSlack = 3 * time.Second

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
