package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
	"github.com/stokehq/stoke/plan/state"
)

// DefaultPath is where a state is kept unless people say otherwise.
const DefaultPath = "terraform.tfstate"

// Store keeps a state in files. It is a state.Store and state.Backuper.
type Store struct {
	path    string // of the snapshot; not a symbolic link
	backup  string // "" for none
	journal string
	lock    string

	log   *os.File // the journal, once it was appended to
	size  int64    // of log
	guard *guard   // keeps Terraform out while the lock is held

	// step is called before each step that changes a file; tests let it fail,
	// as if the process had died there.
	step func(name string) error
}

// New is a store whose snapshot is at path. A symbolic link is followed, as
// Terraform does, and the other files lie beside what it leads to. Nothing is
// opened or made.
func New(path string) (*Store, error) {
	if path == "" {
		path = DefaultPath
	}
	path, err := follow(path)
	if err != nil {
		return nil, fmt.Errorf("find state: %w", err)
	}
	dir, base := filepath.Split(path)
	return &Store{
		path:    path,
		backup:  path + ".backup",
		journal: path + ".journal",
		lock:    filepath.Join(dir, "."+base+".lock.info"),
		step:    func(string) error { return nil },
	}, nil
}

// follow resolves symbolic links, also where the last one leads nowhere yet.
func follow(path string) (string, error) {
	for range 40 {
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link; if something is wrong, opening it will tell
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", &fs.PathError{Op: "follow", Path: path, Err: syscall.ELOOP}
}

// SetBackup sets the path for the snapshot before the present one, by default a
// file next to it; "-" means nowhere.
func (s *Store) SetBackup(path string) {
	if path == "-" {
		path = ""
	}
	s.backup = path
}

// Names returns the paths of snapshot and journal.
func (s *Store) Names() (snapshot, journal string) { return s.path, s.journal }

// Close closes what is open. The lock is released separately.
func (s *Store) Close() error {
	if s.log == nil {
		return nil
	}
	err := s.log.Close()
	s.log = nil
	return err
}

// ReadSnapshot reads the snapshot; its version is made of the file's identity,
// size and time.
func (s *Store) ReadSnapshot(context.Context) ([]byte, string, error) {
	for range 10 {
		data, info, err := readFile(s.path)
		if err != nil || data == nil {
			return nil, "", err
		}
		// Terraform writes in place: make sure that it was not just doing so.
		again, err := os.Stat(s.path)
		if err == nil && version(again) == version(info) && int64(len(data)) == info.Size() {
			return data, version(info), nil
		}
	}
	return nil, "", &fs.PathError{Op: "read", Path: s.path, Err: errors.New("the file keeps changing")}
}

// version names one content of a file.
func version(info fs.FileInfo) string {
	var inode uint64
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = uint64(st.Ino)
	}
	return fmt.Sprintf("%d-%d-%d", inode, info.Size(), info.ModTime().UnixNano())
}

// readFile reads a regular file; nil where there is none.
func readFile(path string) ([]byte, fs.FileInfo, error) {
	info, err := regular(path)
	if err != nil || info == nil {
		return nil, nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	data := make([]byte, info.Size())
	n, err := io.ReadFull(f, data)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, nil, err
	}
	return data[:n], info, nil
}

// regular returns nil where there is no file, and an error for folders,
// devices and the like. (Opening a pipe would wait for ever.)
func regular(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is not a regular file (%s)", info.Mode().Type())}
	}
	return info, err
}

// WriteSnapshot replaces the snapshot if its version is still ifVersion.
func (s *Store) WriteSnapshot(_ context.Context, data []byte, ifVersion string) (string, error) {
	info, err := regular(s.path)
	if err != nil {
		return "", err
	}
	now := ""
	if info != nil {
		now = version(info)
	}
	if now != ifVersion {
		return "", &state.ConflictError{Path: s.path}
	}
	if err := s.replace(s.path, data, true); err != nil {
		return "", err
	}
	if info, err = os.Stat(s.path); err != nil {
		return "", err
	}
	return version(info), nil
}

// Backup writes the snapshot before the present one.
func (s *Store) Backup(_ context.Context, data []byte) error {
	if s.backup == "" {
		return nil
	}
	path, err := follow(s.backup)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeCharDevice != 0 {
		return os.WriteFile(path, data, 0) // /dev/null, for those who want none
	}
	if _, err := regular(path); err != nil {
		return err
	}
	return s.replace(path, data, false)
}

// replace writes a file beside path, syncs it and renames it to path.
func (s *Store) replace(path string, data []byte, guarded bool) error {
	dir := filepath.Dir(path)
	if err := s.makeFolder(path); err != nil {
		return err
	}
	if err := s.step("create " + path); err != nil {
		return err
	}
	t, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer t.Cleanup() //nolint:errcheck // does nothing after success
	if err := s.step("write " + path); err != nil {
		return err
	}
	if _, err := t.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	var next *guard
	if guarded && s.guard != nil {
		if next, err = newGuard(t.Name()); err != nil {
			return fmt.Errorf("lock %s: %w", path, err)
		}
	}
	if err := s.step("rename " + path); err != nil {
		next.release()
		return err
	}
	if err := t.CloseAtomicallyReplace(); err != nil {
		next.release()
		return fmt.Errorf("write %s: %w", path, err)
	}
	if next != nil {
		s.guard.release()
		s.guard = next
	}
	return s.syncDir(dir)
}

func (s *Store) syncDir(dir string) error {
	if err := s.step("sync " + dir); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// removeLitter removes what a process left that was killed while it wrote a
// snapshot; the caller holds the lock.
func (s *Store) removeLitter() {
	dir, base := filepath.Split(s.path)
	if dir == "" {
		dir = "."
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range list {
		for _, of := range []string{base, base + ".backup"} {
			rest, ok := strings.CutPrefix(e.Name(), "."+of)
			if ok && rest != "" && strings.Trim(rest, "0123456789") == "" && e.Type().IsRegular() {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
}
