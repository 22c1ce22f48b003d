package slot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// All users of a machine share the folder and its files. A file that is there is
// never removed: a lock on a removed file would lock nothing.
const (
	folderName = "stoke-gpu"
	folderMode = fs.ModeSticky | 0o777 // only its owner removes a file
	fileMode   = 0o666
)

// Folder returns the folder of the slots of this machine, which is the same for all
// users: below /run/lock where every user may write there, else below /tmp.
func Folder() string {
	for _, parent := range []string{"/run/lock", "/tmp"} {
		info, err := os.Stat(parent)
		if err == nil && info.IsDir() && info.Mode()&(fs.ModeSticky|0o002) == fs.ModeSticky|0o002 {
			return filepath.Join(parent, folderName)
		}
	}
	return filepath.Join(os.TempDir(), folderName)
}

// openFolder makes the folder where it does not exist. A symlink in its place is an
// error: another user could lead this one elsewhere.
func openFolder(path string) (*os.Root, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	named, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !named.IsDir() {
		return nil, fmt.Errorf("%s is not a folder: remove it", path)
	}
	root, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: its owner or root must allow all users (chmod 1777 %s)", err, path)
	}
	if err != nil {
		return nil, err
	}
	if is, err := root.Stat("."); err != nil || !os.SameFile(is, named) {
		return nil, errors.Join(err, root.Close(), fmt.Errorf("%s was replaced while it was opened", path))
	}
	if named.Mode()&(fs.ModeSticky|fs.ModePerm) != folderMode {
		root.Chmod(".", folderMode) //nolint:errcheck // only its owner can; others try it as it is
	}
	return root, nil
}

// openFile opens a slot's file, or makes it. An existing one is not opened with
// O_CREATE: the kernel forbids that for files of others in a sticky folder
// (fs.protected_regular).
func openFile(folder *os.Root, name string) (*os.File, error) {
	const flags = os.O_RDWR | syscall.O_NONBLOCK // a named pipe does not hold us
	for range attempts {
		file, err := folder.OpenFile(name, flags, 0)
		if errors.Is(err, fs.ErrNotExist) {
			file, err = folder.OpenFile(name, flags|os.O_CREATE|os.O_EXCL, fileMode)
			if errors.Is(err, fs.ErrExist) {
				continue
			}
		}
		if err == nil {
			err = check(folder, name, file)
		}
		switch {
		case err == nil:
			file.Chmod(fileMode) //nolint:errcheck // OpenFile respects the umask; only the file's owner can
			return file, nil
		case file != nil:
			file.Close() //nolint:errcheck // nothing was written to it
		}
		if !errors.Is(err, errReplaced) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s cannot be opened: remove it", filepath.Join(folder.Name(), name))
}
