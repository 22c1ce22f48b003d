package code

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// nonblock keeps the open of a named pipe from waiting for a writer.
const nonblock = syscall.O_NONBLOCK

// Pack writes the files of a snapshot from its folder as a tar stream. Equal
// snapshots give equal streams. A file that has changed since the snapshot was
// taken is a *Fault with Edited, and the stream is then useless: Unpack rejects
// it.
func (s *Snapshot) Pack(ctx context.Context, dir string, to io.Writer) error {
	root, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	w := tar.NewWriter(to)
	for _, f := range s.Files {
		if err := packFile(ctx, root, f, w); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("pack code: %w", err)
	}
	return nil
}

func packFile(ctx context.Context, root *os.Root, f File, w *tar.Writer) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: f.Size, Mode: 0o644, ModTime: time.Unix(0, 0)}
	if f.Executable {
		h.Mode = 0o755
	}
	if f.Link != "" {
		target, err := root.Readlink(f.Name)
		if err != nil || target != f.Link {
			return editedFault(f.Name)
		}
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
		return writeHeader(w, h)
	}
	from, err := openFile(root, f.Name)
	if err != nil {
		return err
	}
	defer from.Close()
	before, err := from.Stat()
	if err != nil {
		return fmt.Errorf("pack code: %w", err)
	}
	if !before.Mode().IsRegular() || before.Size() != f.Size || before.Mode()&0o111 != 0 != f.Executable {
		return editedFault(f.Name)
	}
	if err := writeHeader(w, h); err != nil {
		return err
	}
	sum, err := hashFile(ctx, w, from, f.Name, before)
	if err == nil && sum != f.Sum {
		err = editedFault(f.Name)
	}
	return err
}

func writeHeader(w *tar.Writer, h *tar.Header) error {
	if err := w.WriteHeader(h); err != nil {
		return fmt.Errorf("pack %s: %w", h.Name, err)
	}
	return nil
}

// Unpack writes the files of a tar stream of Pack into a new folder, whose parent
// exists. The folder appears only when all files are there and have the hash. A
// stream with other kinds of files, with names or links that lead outside, or with
// more than MaxBytes is a *Fault.
func Unpack(ctx context.Context, from io.Reader, dir, hash string) (*Snapshot, error) {
	if _, err := os.Lstat(dir); err == nil {
		return nil, fmt.Errorf("unpack code: %s exists already", dir)
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".code-*")
	if err != nil {
		return nil, fmt.Errorf("unpack code: %w", err)
	}
	defer os.RemoveAll(temporary) // without effect once it has its name
	s, err := unpackAll(ctx, from, temporary)
	if err != nil {
		return nil, err
	}
	if got := s.Hash(); got != hash {
		return nil, &Fault{What: fmt.Sprintf("the archive has the hash %s instead of %s", got, hash),
			Advice: "it was damaged on its way, or its files changed: fetch it again"}
	}
	if err := os.Chmod(temporary, 0o755); err != nil {
		return nil, fmt.Errorf("unpack code: %w", err)
	}
	if err := os.Rename(temporary, dir); err != nil {
		return nil, fmt.Errorf("unpack code: %w", err)
	}
	return s, nil
}

func unpackAll(ctx context.Context, from io.Reader, dir string) (*Snapshot, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("unpack code: %w", err)
	}
	defer root.Close()
	in := tar.NewReader(cancellable{ctx, from})
	u := unpacker{root: root, left: MaxBytes}
	for {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("unpack code: %w", err)
		}
		if err := u.unpackFile(h, in); err != nil {
			return nil, err
		}
	}
	if err := u.makeLinks(); err != nil {
		return nil, err
	}
	slices.SortFunc(u.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return &Snapshot{Files: u.files}, nil
}

// unpacker writes below root only: no name and no link of the stream leads it
// elsewhere.
type unpacker struct {
	root  *os.Root
	files []File
	left  int64 // bytes
}

func (u *unpacker) unpackFile(h *tar.Header, in io.Reader) error {
	name := h.Name
	bad := func(what string) error {
		return &Fault{Path: fmt.Sprintf("%q", name), What: what, Advice: "it is not an archive of stoke"}
	}
	switch {
	case !fs.ValidPath(name) || name == ".":
		return bad("is not a name within the folder")
	case unusableName(name) != "":
		return bad(unusableName(name))
	case len(u.files) == MaxFiles:
		return bad(fmt.Sprintf("is file number %d", MaxFiles+1))
	}
	switch h.Typeflag {
	case tar.TypeSymlink: // made later, so that no file is written through it
		u.files = append(u.files, File{Name: name, Link: h.Linkname})
		return nil
	case tar.TypeReg:
	default:
		return bad("is neither a file nor a symbolic link")
	}
	if h.Size > u.left {
		return bad(fmt.Sprintf("makes the archive larger than %d MiB", MaxBytes>>20))
	}
	u.left -= h.Size
	if err := u.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return bad("has a file in place of its folder")
	}
	f := File{Name: name, Size: h.Size, Executable: h.Mode&0o111 != 0}
	mode := fs.FileMode(0o644)
	if f.Executable {
		mode = 0o755
	}
	to, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return bad("is in the archive twice")
	}
	if err != nil {
		return fmt.Errorf("unpack code: %w", err)
	}
	f.Sum, err = writeFile(to, mode, in)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", name, err)
	}
	u.files = append(u.files, f)
	return nil
}

// writeFile writes a file with exactly this mode, whatever the umask is, and
// returns the sum of its contents.
func writeFile(to *os.File, mode fs.FileMode, from io.Reader) (string, error) {
	h := sha256.New()
	_, err := io.Copy(io.MultiWriter(to, h), from)
	err = errors.Join(err, to.Chmod(mode), to.Close())
	return hex.EncodeToString(h.Sum(nil)), err
}

func (u *unpacker) makeLinks() error {
	for _, f := range u.files {
		if f.Link == "" {
			continue
		}
		err := u.root.MkdirAll(path.Dir(f.Name), 0o755)
		if err == nil {
			err = u.root.Symlink(f.Link, f.Name)
		}
		if err != nil {
			return &Fault{Path: f.Name, What: "cannot be made as a link", Advice: "its name is in the archive twice"}
		}
	}
	for _, f := range u.files { // when all are there: a link may lead on to another one
		if f.Link != "" && leadsOutside(u.root, f.Name, f.Link) {
			return &Fault{Path: f.Name, What: fmt.Sprintf("links to %s, outside of the folder", f.Link),
				Advice: "it is not an archive of stoke"}
		}
	}
	return nil
}
