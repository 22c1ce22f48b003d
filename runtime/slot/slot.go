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
	Run   string // for the processes that wait for the slot
	Needs int    // slots that the run has at least while it works, 0: one
	// Unfit are devices that the process has found unfit. It takes none of them, but other
	// processes of the run may have done so. The run needs no more slots than it can have
	// without the others.
	Unfit  []engine.Device
	Folder string       // of the slots' files, where all processes share it; "" = Folder()
	Log    *slog.Logger // tells of a wait
	// Waits is called with the processes that have the slots, as often as they change, and
	// with "" at the end of a wait; nil: no call.
	Waits func(holders string)
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

// ErrOwn is the error of a process whose run has the slots of all fit devices: a wait for
// them would not end while the run works.
var ErrOwn = errors.New("take a GPU: the run itself has the slots of all others")

// Take waits until one of the devices has a free slot, and takes it. The first
// device of the list that is free counts. A run that needs several slots takes none
// unless its own slots and the free ones suffice. Two runs never wait for each other for
// ever: the run that took the last slot gets all that it needs. Take returns an error
// where ctx ends or the files cannot be used, and ErrOwn where the process has found devices
// unfit and its own run has the slots of all others.
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
	if o.Waits == nil {
		o.Waits = func(string) {}
	}
	defer o.Waits("")
	var told []string
	for {
		s, busy, err := tryAll(folder, devices, o)
		if err != nil {
			return nil, err
		}
		if s != nil {
			o.Log.Info("took a GPU", "gpu", s.Device.Index, "name", s.Device.Name, "uuid", s.Device.UUID)
			return s, nil
		}
		if busy != nil && !slices.Equal(busy, told) {
			told = busy
			o.Log.Info("waiting for a GPU, which another run has", "holders", strings.Join(busy, "; "))
			o.Waits(strings.Join(busy, "; "))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("take a GPU: %w (%s)", context.Cause(ctx), strings.Join(busy, "; "))
		}
	}
}

// gateName is the file whose lock a process has while it counts and takes slots.
const gateName = "gate"

// tryAll takes the first free slot; without one, busy names the processes that have
// them. Where another process counts slots, it returns nothing.
func tryAll(folder *os.Root, devices []engine.Device, o Options) (s *Slot, busy []string, err error) {
	gate, _, err := lock(folder, gateName)
	if err != nil || gate == nil {
		return nil, nil, err
	}
	defer gate.Close() //nolint:errcheck // the lock ends with it
	var free []*Slot
	defer func() {
		for _, f := range free {
			f.Release()
		}
	}()
	others, err := countOwn(folder, o)
	if err != nil {
		return nil, nil, err
	}
	own, needs := 0, max(1, o.Needs)
	if len(o.Unfit) > 0 {
		needs = min(needs, others+len(devices))
	}
	for _, d := range devices {
		file, by, err := lock(folder, fileName(d))
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("take GPU %d: %w", d.Index, err)
		case file != nil:
			free = append(free, &Slot{d, file})
			continue
		case by.Run == o.Run:
			own++
		}
		busy = append(busy, fmt.Sprintf("GPU %d: %s", d.Index, by))
	}
	if own == len(devices) && len(o.Unfit) > 0 {
		return nil, nil, ErrOwn
	}
	if own += others; len(free) == 0 || own+len(free) < needs {
		if len(free) > 0 {
			busy = append(busy, fmt.Sprintf("free GPUs: %d; the run needs: %d more", len(free), needs-own))
		}
		return nil, busy, nil
	}
	s, free = free[0], free[1:]
	return s, nil, writeHolder(s.file, holder{o.Run, os.Getpid()})
}

// countOwn returns how many of the unfit devices' slots other processes of the run have. The
// caller has the lock of the gate.
func countOwn(folder *os.Root, o Options) (own int, err error) {
	for _, d := range o.Unfit {
		file, by, err := lock(folder, fileName(d))
		switch {
		case err != nil:
			return 0, fmt.Errorf("look for the holder of GPU %d: %w", d.Index, err)
		case file != nil:
			file.Close() //nolint:errcheck // the lock ends with it
		case by.Run == o.Run:
			own++
		}
	}
	return own, nil
}

// Release gives the slot back. Further calls have no effect.
func (s *Slot) Release() {
	s.file.Close() //nolint:errcheck // the lock ends with it
}

// attempts bounds how often a slot's file may be replaced by others in one try.
const attempts = 10

// lock locks the file of a name; nil: another process, by, has locked it.
func lock(folder *os.Root, name string) (locked *os.File, by holder, err error) {
	for range attempts {
		file, err := openFile(folder, name)
		if err != nil {
			return nil, by, err
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			by = readHolder(file)
			return nil, by, file.Close()
		case err != nil:
			return nil, by, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
		}
		// A file that was removed before it was locked is another one for later processes.
		if err := check(folder, name, file); err == nil {
			return file, by, nil
		}
		if err := file.Close(); err != nil {
			return nil, by, err
		}
	}
	return nil, by, fmt.Errorf("%s is removed again and again", filepath.Join(folder.Name(), name))
}

// devicePrefix begins the names of the slots' files.
const devicePrefix = "gpu-"

// fileName is the name of a device's slot. A number differs between processes that
// see other parts of the machine: the UUID counts where the device has one.
func fileName(d engine.Device) string {
	if d.UUID == "" {
		return fmt.Sprint(devicePrefix, d.Index)
	}
	return devicePrefix + strings.Map(func(r rune) rune {
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

// readHolder reads the note of the process that has a slot; zero: it has left none.
func readHolder(file *os.File) (h holder) {
	const most = 4 << 10
	text, err := io.ReadAll(io.NewSectionReader(file, 0, most))
	if err != nil || json.Unmarshal(text, &h) != nil || h.PID <= 0 {
		return holder{}
	}
	return h
}

func (h holder) String() string {
	const longest = 200
	if h.PID == 0 {
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
