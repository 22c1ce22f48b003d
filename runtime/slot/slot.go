package slot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stokehq/stoke/runtime/engine"
)

// poll is between two tries of a process that waits for a slot.
const poll = 200 * time.Millisecond

// Options describe the process that takes a slot.
type Options struct {
	Run    string       // for the processes that wait for the slot
	Folder string       // of the slots' files, where all processes share it; "" = Folder()
	Log    *slog.Logger // tells of a wait
}

// Slot is a device that this process has, until it releases the slot or ends.
type Slot struct {
	Device engine.Device
	file   *os.File
}

// holder is the content of a slot's file: the process that took the slot last.
type holder struct {
	Run string `json:"run"`
	PID int    `json:"pid"`
}

// Take waits until one of the devices has a free slot, and takes it. The first
// device of the list that is free counts. It returns an error where ctx ends or the
// files cannot be used.
func Take(ctx context.Context, devices []engine.Device, o Options) (*Slot, error) {
	if len(devices) == 0 {
		return nil, errors.New("take a GPU: this process sees none")
	}
	if o.Folder == "" {
		o.Folder = Folder()
	}
	folder, err := openFolder(o.Folder)
	if err != nil {
		return nil, fmt.Errorf("take a GPU: %w", err)
	}
	defer folder.Close() //nolint:errcheck // nothing was written to it
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var told []string
	for {
		var busy []string
		for _, d := range devices {
			s, by, err := try(folder, d, o.Run)
			if err != nil {
				return nil, fmt.Errorf("take GPU %d: %w", d.Index, err)
			}
			if s != nil {
				o.Log.Info("took a GPU", "gpu", d.Index, "name", d.Name, "uuid", d.UUID)
				return s, nil
			}
			busy = append(busy, fmt.Sprintf("GPU %d: %s", d.Index, by))
		}
		if !slices.Equal(busy, told) {
			told = busy
			o.Log.Info("waiting for a GPU, which another run has", "holders", strings.Join(busy, "; "))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("take a GPU: %w (%s)", context.Cause(ctx), strings.Join(busy, "; "))
		}
	}
}

// Release gives the slot back. Further calls have no effect.
func (s *Slot) Release() {
	s.file.Close() //nolint:errcheck // the lock ends with it
}

// attempts bounds how often a slot's file may be replaced by others in one try.
const attempts = 10

// try takes the slot of a device; nil: another process, by, has it.
func try(folder *os.Root, d engine.Device, run string) (s *Slot, by string, err error) {
	name := fileName(d)
	for range attempts {
		file, err := openFile(folder, name)
		if err != nil {
			return nil, "", err
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			by = readHolder(file)
			return nil, by, file.Close()
		case err != nil:
			return nil, "", errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
		}
		// A file that was removed before it was locked is another one for later processes.
		if err := check(folder, name, file); err == nil {
			return &Slot{d, file}, "", writeHolder(file, holder{run, os.Getpid()})
		}
		if err := file.Close(); err != nil {
			return nil, "", err
		}
	}
	return nil, "", fmt.Errorf("%s is removed again and again", filepath.Join(folder.Name(), name))
}

// fileName is the name of a device's slot. A number differs between processes that
// see other parts of the machine: the UUID counts where the device has one.
func fileName(d engine.Device) string {
	if d.UUID == "" {
		return fmt.Sprintf("gpu-%d", d.Index)
	}
	return "gpu-" + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' {
			return r
		}
		return '_'
	}, d.UUID)
}

// writeHolder notes who has the slot. The lock counts, not the note: a disk that is
// full makes the note empty.
func writeHolder(file *os.File, h holder) error {
	text, err := json.Marshal(h)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Truncate(0); err == nil {
		file.WriteAt(append(text, '\n'), 0) //nolint:errcheck // see above
	}
	return nil
}

// readHolder names the process that has a slot, as far as its note tells.
func readHolder(file *os.File) string {
	const most, longest = 4 << 10, 200
	var h holder
	text, err := io.ReadAll(io.NewSectionReader(file, 0, most))
	if err != nil || json.Unmarshal(text, &h) != nil || h.PID <= 0 {
		return "a process that has left no note"
	}
	return fmt.Sprintf("run %.*q, process %d", longest, h.Run, h.PID)
}

var errReplaced = errors.New("it is not the file of that name any longer")

// check returns an error if another file than the open one has the name, or
// if the file is not a regular one with a single name.
func check(folder *os.Root, name string, file *os.File) error {
	is, err := file.Stat()
	if err != nil {
		return err
	}
	named, err := folder.Lstat(name)
	switch {
	case err != nil:
		return err
	case !named.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file: remove it", filepath.Join(folder.Name(), name))
	case !os.SameFile(is, named):
		return errReplaced
	case links(named) != 1:
		return fmt.Errorf("%s has another name: remove it", filepath.Join(folder.Name(), name))
	}
	return nil
}

func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}
