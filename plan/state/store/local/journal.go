package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ReadJournal reads the journal; nil where there is none.
func (s *Store) ReadJournal(context.Context) ([]byte, error) {
	data, _, err := readFile(s.journal)
	return data, err
}

// Append writes records at offset at, after cutting off what follows it.
func (s *Store) Append(_ context.Context, at int64, records []byte, durable bool) error {
	if err := s.openJournal(at); err != nil {
		return err
	}
	if at > s.size {
		return s.tooShort(at)
	}
	if s.size != at {
		if err := s.step("truncate " + s.journal); err != nil {
			return err
		}
		if err := s.log.Truncate(at); err != nil {
			return fmt.Errorf("append to journal: %w", err)
		}
		s.size = at
	}
	if len(records) > 0 {
		if err := s.step("append " + s.journal); err != nil {
			return err
		}
		n, err := s.log.WriteAt(records, at)
		s.size = at + int64(n)
		if err != nil {
			if s.log.Truncate(at) == nil { // a disk that is full: leave no torn record
				s.size = at
			}
			return fmt.Errorf("append to journal: %w", err)
		}
	}
	if !durable {
		return nil
	}
	if err := s.step("sync " + s.journal); err != nil {
		return err
	}
	if err := s.log.Sync(); err != nil {
		return fmt.Errorf("append to journal: %w", err)
	}
	if at == 0 {
		return s.syncDir(filepath.Dir(s.journal))
	}
	return nil
}

// openJournal opens the journal, or makes it when at is 0.
func (s *Store) openJournal(at int64) error {
	if s.log != nil {
		return nil
	}
	info, err := regular(s.journal)
	if err != nil {
		return err
	}
	flags := os.O_WRONLY | syscall.O_NOFOLLOW
	switch {
	case at == 0 && info == nil:
		flags |= os.O_CREATE | os.O_EXCL
		if err := s.makeFolder(s.journal); err != nil {
			return err
		}
		if err := s.step("create " + s.journal); err != nil {
			return err
		}
	case info == nil:
		return &fs.PathError{Op: "append", Path: s.journal, Err: fs.ErrNotExist}
	case at == 0 && info.Size() > 0:
		return &fs.PathError{Op: "create", Path: s.journal, Err: fs.ErrExist}
	}
	f, err := os.OpenFile(s.journal, flags, 0o600)
	if err != nil {
		return err
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return err
	}
	s.log, s.size = f, info.Size()
	return nil
}

func (s *Store) tooShort(at int64) error {
	return &fs.PathError{Op: "append", Path: s.journal,
		Err: fmt.Errorf("it is %d bytes long, and was %d when it was read", s.size, at)}
}

// DropJournal removes the journal.
func (s *Store) DropJournal(context.Context) error {
	if err := s.step("remove " + s.journal); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if err := os.Remove(s.journal); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return s.syncDir(filepath.Dir(s.journal))
}
