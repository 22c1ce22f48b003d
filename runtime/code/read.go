package code

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// Read takes a snapshot of a folder. Errors that the user can mend are a *Fault:
// links that lead outside, devices, sockets, files that cannot be read, files that
// change while they are read, and more than MaxBytes.
func Read(ctx context.Context, dir string) (*Snapshot, error) {
	root, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	r := reader{root: root, left: MaxBytes}
	if r.ignore, err = readIgnore(root); err != nil {
		return nil, err
	}
	if err := r.readFolder(ctx, "."); err != nil {
		return nil, err
	}
	if len(r.files) == 0 {
		return nil, &Fault{What: dir + " has no files", Advice: "name the folder of the program's code, or check its " + ignoreFile}
	}
	slices.SortFunc(r.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return &Snapshot{Files: r.files}, nil
}

func openFolder(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Fault{What: dir + " does not exist", Advice: "make the folder, or correct its name"}
	case err == nil && !info.IsDir():
		return nil, &Fault{What: dir + " is not a folder", Advice: "name the folder that has the program's code"}
	case err != nil:
		return nil, fmt.Errorf("read code: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil, &Fault{What: dir + " cannot be read", Advice: "give yourself the right to read it"}
	}
	if err != nil {
		return nil, fmt.Errorf("read code: %w", err)
	}
	return root, nil
}

func readIgnore(root *os.Root) (ignore, error) {
	info, err := root.Lstat(ignoreFile)
	if errors.Is(err, fs.ErrNotExist) {
		return parseIgnore("")
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > 1<<20) {
		return nil, &Fault{Path: ignoreFile, What: "is not a file of patterns", Advice: "make it a text file of less than 1 MiB"}
	}
	text, err := root.ReadFile(ignoreFile)
	if err != nil {
		return nil, &Fault{Path: ignoreFile, What: "cannot be read", Advice: "give yourself the right to read it"}
	}
	return parseIgnore(string(text))
}

// reader walks a folder. It opens all names below root, so that a link that is
// put into the folder while it is read does not lead outside either.
type reader struct {
	root   *os.Root
	ignore ignore
	files  []File
	left   int64 // bytes
}

func (r *reader) readFolder(ctx context.Context, dir string) error {
	entries, err := fs.ReadDir(r.root.FS(), dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &Fault{Path: dir, What: "cannot be read", Advice: "give yourself the right to read the folder, " + ignoreAdvice}
	case errors.Is(err, fs.ErrNotExist):
		return editedFault(dir)
	case err != nil:
		return fmt.Errorf("read code: %w", err)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.readEntry(ctx, path.Join(dir, e.Name()), e); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) readEntry(ctx context.Context, name string, e fs.DirEntry) error {
	if r.ignore.matches(name, e.IsDir()) {
		return nil
	}
	if reason := unusableName(name); reason != "" {
		return &Fault{Path: fmt.Sprintf("%q", name), What: reason, Advice: "rename it, " + ignoreAdvice}
	}
	if e.IsDir() {
		return r.readFolder(ctx, name)
	}
	if len(r.files) == MaxFiles {
		return &Fault{What: fmt.Sprintf("the folder has more than %d files", MaxFiles),
			Advice: "put data elsewhere, or leave it out by a line in " + ignoreFile}
	}
	var f File
	var err error
	switch mode := e.Type(); {
	case mode.IsRegular():
		f, err = r.readFile(ctx, name)
	case mode&fs.ModeSymlink != 0:
		f, err = r.readLink(name)
	default:
		return &Fault{Path: name, What: "is a " + kindOf(mode) + ", not a file", Advice: "move it elsewhere, " + ignoreAdvice}
	}
	if err != nil {
		return err
	}
	r.files = append(r.files, f)
	return nil
}

// unusableName returns why a name cannot be part of a snapshot, which is kept as
// JSON and shown to people.
func unusableName(name string) string {
	if !utf8.ValidString(name) {
		return "has a name that is not UTF-8"
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return "has a control character in its name"
	}
	return ""
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// readLink keeps links within the folder. The target may be missing.
func (r *reader) readLink(name string) (File, error) {
	target, err := r.root.Readlink(name)
	if err != nil {
		return File{}, editedFault(name)
	}
	outside := &Fault{Path: name, What: fmt.Sprintf("is a link to %s, outside of the folder", target),
		Advice: "put a copy of the target into the folder, " + ignoreAdvice}
	if path.IsAbs(target) {
		outside.What = fmt.Sprintf("is a link to the absolute name %s", target)
		outside.Advice = "make the link relative, " + ignoreAdvice
		return File{}, outside
	}
	if reason := unusableName(target); reason != "" {
		return File{}, &Fault{Path: name, What: "links to a file that " + reason, Advice: "rename that file, " + ignoreAdvice}
	}
	if leadsOutside(r.root, name, target) {
		return File{}, outside
	}
	return File{Name: name, Link: target}, nil
}

// leadsOutside reports whether a link leads outside of the root, at any step of
// the way. The target may be missing, and the link may lead to itself.
func leadsOutside(root *os.Root, name, target string) bool {
	if path.IsAbs(target) || !isWithin(path.Join(path.Dir(name), target)) {
		return true
	}
	_, err := root.Stat(name)
	return err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ELOOP)
}

func isWithin(name string) bool { return name != ".." && !strings.HasPrefix(name, "../") }

func (r *reader) readFile(ctx context.Context, name string) (File, error) {
	f, err := openFile(r.root, name)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return File{}, fmt.Errorf("read code: %w", err)
	}
	if !before.Mode().IsRegular() {
		return File{}, editedFault(name)
	}
	if before.Size() > r.left {
		return File{}, &Fault{What: fmt.Sprintf("the folder has more than %d MiB of files (%s has %d)", MaxBytes>>20, name, before.Size()),
			Advice: "put data into a dataset or the image, or leave it out by a line in " + ignoreFile}
	}
	r.left -= before.Size()
	sum, err := hashFile(ctx, io.Discard, f, name, before)
	if err != nil {
		return File{}, err
	}
	return File{Name: name, Executable: before.Mode()&0o111 != 0, Size: before.Size(), Sum: sum}, nil
}

func openFile(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0) // a pipe in place of the file has no writer
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, &Fault{Path: name, What: "cannot be read", Advice: "give yourself the right to read it, " + ignoreAdvice}
	case errors.Is(err, fs.ErrNotExist):
		return nil, editedFault(name)
	case err != nil:
		return nil, fmt.Errorf("read code: %w", err)
	}
	return f, nil
}

// hashFile copies a file and returns the sum of its contents. A file that
// changes at the same time is a *Fault with Edited.
func hashFile(ctx context.Context, to io.Writer, f *os.File, name string, before fs.FileInfo) (string, error) {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(h, to), io.LimitReader(cancellable{ctx, f}, before.Size()))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	after, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	if n != before.Size() || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return "", editedFault(name)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// cancellable ends with the context's error.
type cancellable struct {
	ctx context.Context
	r   io.Reader
}

func (c cancellable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
