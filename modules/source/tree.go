package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// limits bound what a package may be: far more than any module has, far less
// than a machine.
type limits struct {
	download int64 // bytes of an archive
	bytes    int64 // of all files together
	files    int   // files, folders and links
}

var usual = limits{download: 512 << 20, bytes: 1 << 30, files: 100_000}

// tree writes the files of a package into one folder and nowhere else.
type tree struct {
	root  *os.Root
	left  limits
	links []string
}

// plant makes a folder, which must not exist yet, to write into.
func plant(dir string, l limits) (*tree, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &tree{root: root, left: l}, nil
}

// entry checks and cleans the name of an entry; "" means to leave it out.
func (t *tree) entry(name string) (string, error) {
	clean := filepath.Clean(filepath.FromSlash(name))
	switch {
	case strings.ContainsRune(name, 0) || len(name) > 4096:
		return "", errors.New("an entry has no possible name")
	case !filepath.IsLocal(clean):
		return "", fmt.Errorf("the entry %q leads out of the archive", name)
	case clean == ".":
		return "", nil
	}
	for part := range strings.SplitSeq(filepath.ToSlash(clean), "/") {
		if part == ".git" {
			return "", nil // what it says would be obeyed by every git that comes near
		}
	}
	if t.left.files--; t.left.files < 0 {
		return "", errors.New("it has too many entries")
	}
	return clean, t.root.MkdirAll(filepath.Dir(clean), 0o755)
}

func (t *tree) folder(name string) error {
	name, err := t.entry(name)
	if err != nil || name == "" {
		return err
	}
	return t.root.MkdirAll(name, 0o755)
}

// file writes a file; of its mode, only whether it can be run is kept.
func (t *tree) file(name string, mode fs.FileMode, content io.Reader) error {
	name, err := t.entry(name)
	if err != nil || name == "" {
		return err
	}
	if err := t.vacate(name); err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	f, err := t.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(content, t.left.bytes+1))
	if closing := f.Close(); err == nil {
		err = closing
	}
	if t.left.bytes -= n; err == nil && t.left.bytes < 0 {
		err = errors.New("unpacked, it is too large")
	}
	return err
}

// vacate makes room for an entry that is there a second time: the last one
// counts, as in tar.
func (t *tree) vacate(name string) error {
	info, err := t.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("the entry %q is a folder and a file", name)
	}
	return t.root.Remove(name)
}

// link makes a symbolic link. Whether it stays inside is checked by close:
// only then is it known what lies on its way.
func (t *tree) link(name, target string) error {
	clean, err := t.entry(name)
	if err != nil || clean == "" {
		return err
	}
	if target == "" || filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(clean), target)) {
		return fmt.Errorf("the link %q leads out of the archive, to %q", name, target)
	}
	if err := t.vacate(clean); err != nil {
		return err
	}
	t.links = append(t.links, clean)
	return t.root.Symlink(target, clean)
}

// hardLink makes a second name for a file that was written before.
func (t *tree) hardLink(name, target string) error {
	name, err := t.entry(name)
	if err != nil || name == "" {
		return err
	}
	first := filepath.Clean(filepath.FromSlash(target))
	if !filepath.IsLocal(first) {
		return fmt.Errorf("the link %q leads out of the archive, to %q", name, target)
	}
	info, err := t.root.Lstat(first)
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("the link %q is to %q, which is not a file before it", name, target)
	}
	if err := t.vacate(name); err != nil {
		return err
	}
	return t.root.Link(first, name)
}

// close checks the links: a chain of harmless ones may still lead out.
func (t *tree) close() error {
	defer t.root.Close()
	for _, name := range t.links {
		if _, err := t.root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the link %q leads out of the archive or nowhere: %w", name, err)
		}
	}
	return nil
}

// checkLinks does the same for a folder that somebody else has written, and
// takes out what belongs to git.
func checkLinks(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	t := &tree{root: root}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			if err := root.RemoveAll(name); err != nil {
				return err
			}
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type()&fs.ModeSymlink != 0:
			target, err := root.Readlink(name)
			if err != nil {
				return err
			}
			if filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(name), target)) {
				return fmt.Errorf("the link %q leads out of the repository, to %q", name, target)
			}
			t.links = append(t.links, name)
		case !d.IsDir() && !d.Type().IsRegular():
			return fmt.Errorf("%q is neither a file nor a folder", name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.close()
}

// Copy copies a package that was fetched into a folder that must not exist
// yet. Links are copied as they are.
func Copy(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return copyEntry(path, filepath.Join(to, rest), d)
	})
}

func copyEntry(from, to string, d fs.DirEntry) error {
	switch {
	case d.IsDir():
		return os.Mkdir(to, 0o755)
	case d.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case !d.Type().IsRegular():
		return fmt.Errorf("copy %s: it is neither a file nor a folder", from)
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closing := out.Close(); err == nil {
		err = closing
	}
	return err
}
