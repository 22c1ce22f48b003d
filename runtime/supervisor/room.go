package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// roomBytes is what the final status may take on a disk that is full.
const roomBytes = 16 << 10

// room is a file that keeps the room for the run's final status. On a full disk no
// new file can be written, and without its final status a run counts as lost.
type room string

// keepRoom writes the file. The launcher reports a disk that is full already.
func keepRoom(f run.Folder) (room, error) {
	r := room(filepath.Join(string(f), "room"))
	if err := run.WriteFile(string(r), bytes.Repeat([]byte{' '}, roomBytes)); err != nil {
		return r, fmt.Errorf("keep room for the final status: %w", err)
	}
	return r, nil
}

// give gives the room back.
func (r room) give() { os.Remove(string(r)) } // what is left is small, and the next start writes it again

// conclude writes the run's final status, into the room where the disk has no
// other, and returns it as it was written.
func (r room) conclude(f run.Folder, s spec.Status) (spec.Status, error) {
	err := run.WriteJSON(f.StatusFile(), s)
	if err == nil {
		r.give()
		return s, nil
	}
	s = unwritten(s, err)
	if err := r.write(f, s); err != nil {
		return s, fmt.Errorf("write the final status: %w", err)
	}
	return s, nil
}

func (r room) write(f run.Folder, s spec.Status) error {
	data, err := s.Outcome(roomBytes)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(string(r), os.O_WRONLY, 0) // in place
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.WriteAt(append(data, bytes.Repeat([]byte{' '}, roomBytes-len(data))...), 0); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(string(r), f.StatusFile()); err != nil {
		return err
	}
	return run.SyncDir(string(f))
}

// unwritten is the outcome of a run that ended because, or at a time when, its
// folder cannot be written. How a run ended for good, or by request, stays.
func unwritten(s spec.Status, err error) spec.Status {
	stopped := s.Phase == spec.Stopped && (s.Cause == spec.CauseRequest || s.Cause == spec.CauseDisk)
	if s.Phase == spec.Succeeded || s.Phase == spec.Failed || stopped {
		return s
	}
	message := fmt.Sprintf("the run's folder cannot be written: %v", err)
	if s.Phase == spec.Stopped && s.Message != "" {
		message += "; " + s.Message
	}
	s.Phase, s.Cause, s.Message = spec.Stopped, spec.CauseDisk, message
	return s
}

// writable reports whether the folder takes another file.
func writable(f run.Folder) error {
	probe := filepath.Join(string(f), "probe")
	defer os.Remove(probe)
	return os.WriteFile(probe, make([]byte, 4<<10), 0o600)
}
