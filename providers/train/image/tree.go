package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// entry is one file, link or empty folder of a layer.
type entry struct {
	name   string // path in the image without the first slash
	kind   byte   // tar's: TypeReg, TypeSymlink, TypeDir
	mode   int64  // what the image says, whatever the file's own is
	link   string
	size   int64
	sum    string // hex SHA-256 of the content of a file
	from   string // where it comes from, for messages and fingerprints
	stamp  string // changes when the content does, as far as file systems tell
	open   func() (io.ReadCloser, error)
	of     string // argument of the Spec
	key    string // its key
	inside string // the wheel that it is a part of
}

// permission leaves of a file's mode what the image keeps. The rest depends on
// the umask of whoever checked it out.
func permission(mode fs.FileMode) int64 {
	if mode&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

// tree lists a file or a folder of this machine, to lie at to in the image.
// Nothing is read yet.
func tree(argument, to, local string) ([]entry, error) {
	w := walk{argument: argument, key: to}
	at, err := cleanImagePath(to)
	if err != nil {
		return nil, mistake(argument, to, "Path in the image is malformed", "%q: %s.", to, err)
	}
	// What the user names may be a link; what lies below may not lead out of it.
	root, err := filepath.EvalSymlinks(local)
	if err != nil {
		return nil, w.unreadable(local, err)
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, w.unreadable(local, err)
	}
	if info.IsDir() {
		w.root = root
		err = w.folder(root, at)
		return w.found, err
	}
	if strings.HasSuffix(to, "/") { // as cp does
		if err := usable(filepath.Base(local)); err != nil {
			return nil, mistake(argument, to, "File cannot be in an image", "%s: %s.", local, err)
		}
		at = path.Join(at, filepath.Base(local))
	}
	err = w.item(root, at, info)
	return w.found, err
}

type walk struct {
	argument, key string
	root          string
	found         []entry
}

func (w *walk) folder(local, at string) error {
	entries, err := os.ReadDir(local) // sorted by name
	if err != nil {
		return w.unreadable(local, err)
	}
	if len(entries) == 0 && at != "" {
		w.found = append(w.found, entry{name: at, kind: tar.TypeDir, mode: 0o755, from: local, of: w.argument, key: w.key})
	}
	for _, e := range entries {
		below := filepath.Join(local, e.Name())
		if err := usable(e.Name()); err != nil {
			return mistake(w.argument, w.key, "File cannot be in an image", "%s: %s.", below, err)
		}
		info, err := e.Info()
		if err != nil {
			return w.unreadable(below, err)
		}
		to := path.Join(at, e.Name())
		if info.IsDir() {
			err = w.folder(below, to)
		} else {
			err = w.item(below, to, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) item(local, at string, info fs.FileInfo) error {
	e := entry{name: at, from: local, of: w.argument, key: w.key}
	switch info.Mode().Type() {
	case 0:
		e.kind, e.mode, e.size = tar.TypeReg, permission(info.Mode()), info.Size()
		e.stamp = fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
		e.open = func() (io.ReadCloser, error) { return os.Open(local) }
	case fs.ModeSymlink:
		target, err := w.target(local)
		if err != nil {
			return err
		}
		e.kind, e.mode, e.link = tar.TypeSymlink, 0o777, target
	default:
		return mistake(w.argument, w.key, "File cannot be in an image",
			"%s is neither a file nor a folder nor a link (%s). Move it out of the folder.", local, info.Mode().Type())
	}
	w.found = append(w.found, e)
	return nil
}

// target reads a link, and refuses one that leads out of the folder: what it
// means here would not be there in the image.
func (w *walk) target(local string) (string, error) {
	target, err := os.Readlink(local)
	if err != nil {
		return "", w.unreadable(local, err)
	}
	outside := mistake(w.argument, w.key, "Link leads out of its folder",
		"%s points to %s, which is not in %s. Put a copy of the file there instead.", local, target, w.root)
	if filepath.IsAbs(target) || !isBelow(w.root, filepath.Join(filepath.Dir(local), target)) {
		return "", outside
	}
	real, err := filepath.EvalSymlinks(local)
	switch {
	case err == nil && !isBelow(w.root, real):
		return "", outside
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", w.unreadable(local, err)
	case err != nil && climbs(target): // nobody can tell where it would lead
		return "", outside
	}
	return filepath.ToSlash(target), nil
}

func isBelow(root, name string) bool {
	rest, err := filepath.Rel(root, name)
	return err == nil && filepath.IsLocal(rest)
}

// climbs reports whether a relative path goes up after it went down.
func climbs(target string) bool {
	down := false
	for part := range strings.SplitSeq(filepath.ToSlash(target), "/") {
		switch part {
		case "", ".":
		case "..":
			if down {
				return true
			}
		default:
			down = true
		}
	}
	return false
}

func (w *walk) unreadable(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return mistake(w.argument, w.key, "There is no such file", "There is nothing at %s. Correct the path, or put the file there.", name)
	}
	return mistake(w.argument, w.key, "File cannot be read", "%s: %s.", name, plainError(err))
}

// plainError drops the path that a message names already.
func plainError(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
