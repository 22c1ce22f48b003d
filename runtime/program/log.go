package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// logBytes is the size at which a log is rotated; one older file is kept.
const logBytes = 64 << 20

// rankLog is the log of one rank: what it writes to both outputs, in the order of
// arrival. Its file is path, the older one path.1. Output that cannot be written
// is dropped: a full disk never blocks the program.
type rankLog struct {
	path   string
	limit  int64
	open   func(path string) (file io.WriteCloser, size int64, err error)
	report func(kind Kind, text string)

	mu      sync.Mutex
	file    io.WriteCloser
	size    int64
	stream  int  // that wrote last
	middle  bool // its last line is not complete
	dropped int64
	lost    int64 // dropped bytes that the log does not mention yet
}

// openAppending opens a log of this or an earlier generation.
func openAppending(path string) (io.WriteCloser, int64, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// write writes a part of a stream, and begins a new line where the other stream
// has not ended its own.
func (l *rankLog) write(stream int, p []byte) {
	if len(p) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.middle && stream != l.stream {
		p = append([]byte{'\n'}, p...)
	}
	l.stream, l.middle = stream, p[len(p)-1] != '\n'
	if err := l.put(p); err != nil {
		if l.dropped == 0 {
			l.report(Unwritten, "its output is dropped until it can be written again: "+err.Error())
		}
		l.dropped += int64(len(p))
		l.lost += int64(len(p))
	}
}

// put writes all of p, after a note about lost bytes, or nothing that counts.
func (l *rankLog) put(p []byte) error {
	if err := l.reopen(); err != nil {
		return err
	}
	if l.size > 0 && l.size+int64(len(p)) > l.limit {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	if l.lost > 0 {
		note := fmt.Sprintf("\n[stoke: %d bytes of output could not be written here]\n", l.lost)
		n, err := l.file.Write([]byte(note))
		l.size += int64(n)
		if err != nil {
			return err
		}
		l.lost = 0
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return err
}

func (l *rankLog) reopen() error {
	if l.file != nil {
		return nil
	}
	file, size, err := l.open(l.path)
	if err == nil {
		l.file, l.size = file, size
	}
	return err
}

// rotate renames the file and opens a new one.
func (l *rankLog) rotate() error {
	err := l.file.Close()
	l.file = nil
	if err = errors.Join(err, os.Rename(l.path, l.path+".1")); err != nil {
		return err
	}
	l.report(Rotated, fmt.Sprintf("its log reached %d MiB: the older part is in %s.1", l.limit>>20, l.path))
	return l.reopen()
}

// close closes the file and returns the number of dropped bytes.
func (l *rankLog) close() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
	return l.dropped
}
