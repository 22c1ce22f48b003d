package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/stokehq/stoke/plan/state"
)

// ForceUnlock removes a lock file that a dead process left. The lock of a
// living one cannot be broken: it ends with the process.
func (s *Store) ForceUnlock(_ context.Context, id string) error {
	b, _, err := readFile(s.lock)
	if err != nil {
		return fmt.Errorf("break lock: %w", err)
	}
	if b == nil {
		return &state.NotLockedError{Path: s.path}
	}
	fl, err := s.tryLock()
	var held *state.LockedError
	if errors.As(err, &held) {
		held.Holder.Info = "" // what it is doing is of no help here
		return fmt.Errorf("the lock is held by a process on this machine that is alive, and ends with it: %s", held.Holder)
	}
	if err != nil {
		return err
	}
	defer fl.Unlock() //nolint:errcheck // the file is gone by then
	var info state.LockInfo
	if err := json.Unmarshal(b, &info); err == nil && info.ID != id {
		return &state.LockedError{Path: s.path, Holder: info}
	}
	if err := os.Remove(s.lock); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("break lock: %w", err)
	}
	return nil
}
