package dataset

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// album is the pictures of one split, in a folder or in a zip file. Only their
// names are in memory.
type album struct {
	path     string // of the split's folder, or of the zip file
	source   io.Closer
	root     *os.Root // the dataset's folder
	split    string   // name of the split's folder in root
	pictures []picture
}

// picture is the place of one picture.
type picture struct {
	class, file string
	entry       *zip.File // of a zip file
	label       int32
}

// name returns the path of a picture for people.
func (a *album) name(p *picture) string {
	if p.entry != nil {
		return a.path + ": " + p.entry.Name
	}
	return filepath.Join(a.path, p.class, p.file)
}

func (a *album) errorf(p *picture, format string, args ...any) error {
	return fmt.Errorf("%s: %w", a.name(p), fmt.Errorf(format, args...))
}

// open opens a picture.
func (a *album) open(p *picture) (io.ReadCloser, error) {
	if p.entry == nil {
		return a.root.Open(path.Join(a.split, p.class, p.file))
	}
	switch {
	case p.entry.Flags&1 != 0:
		return nil, errors.New("it is encrypted")
	case p.entry.UncompressedSize64 > maxPictureBytes:
		return nil, fmt.Errorf("it claims %d bytes: want at most %d", p.entry.UncompressedSize64, maxPictureBytes)
	}
	return p.entry.Open()
}

func (a *album) close() error { return a.source.Close() }

// openAlbum finds a split: in a folder, its folder or its zip file; in a zip
// file, its folder.
func openAlbum(ctx context.Context, from string, split Split) (*album, error) {
	status, err := os.Stat(from)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the dataset's path: %w", err)
	case status.IsDir():
		root, err := os.OpenRoot(from)
		if err != nil {
			return nil, err
		}
		return openRootAlbum(ctx, root, split)
	case !status.Mode().IsRegular() || !strings.EqualFold(filepath.Ext(from), ".zip"):
		return nil, fmt.Errorf("%s is neither a folder nor a .zip file", from)
	}
	file, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	return openZipAlbum(ctx, from, file, string(split))
}

func openRootAlbum(ctx context.Context, root *os.Root, split Split) (*album, error) {
	a := &album{path: filepath.Join(root.Name(), string(split)), root: root, source: root, split: string(split)}
	status, err := root.Stat(a.split)
	if err == nil && status.IsDir() {
		if err := a.list(ctx); err != nil {
			root.Close()
			return nil, err
		}
		return a, nil
	}
	defer root.Close()
	name := a.split + ".zip"
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		status, err = root.Stat(name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s has neither a folder %s nor a file %s", root.Name(), split, name)
	case err != nil:
		return nil, linkError(a.path, err)
	case !status.Mode().IsRegular():
		return nil, fmt.Errorf("%s.zip is not a regular file", a.path)
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	return openZipAlbum(ctx, a.path+".zip", file, "")
}

// linkError is about a file that was listed, but cannot be reached: mostly
// since a link leads out of the dataset's folder.
func linkError(name string, err error) error {
	return fmt.Errorf("%s: only links to files in the dataset's folder are followed: %w", name, err)
}

// hidden reports whether a file or folder is ignored: editors, file managers and
// macOS write them.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || name == "__MACOSX" }

func isPicture(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".png", ".jpg", ".jpeg":
		return true
	}
	return false
}

// list finds the pictures of a folder, each in the folder of its class.
func (a *album) list(ctx context.Context) error {
	return a.eachFile(a.split, func(class string, mode fs.FileMode) error {
		if !mode.IsDir() {
			if isPicture(class) {
				return misplaced(filepath.Join(a.path, class))
			}
			return nil
		}
		before := len(a.pictures)
		err := a.eachFile(path.Join(a.split, class), func(file string, mode fs.FileMode) error {
			p := picture{class: class, file: file}
			switch {
			case mode.IsDir():
				return a.errorf(&p, "it is a folder in the folder of a class: move its pictures up")
			case !isPicture(file):
				return nil
			case !mode.IsRegular():
				return a.errorf(&p, "it is not a regular file")
			}
			a.pictures = append(a.pictures, p)
			return ctx.Err()
		})
		if err == nil && len(a.pictures) == before {
			err = emptyClass(filepath.Join(a.path, class))
		}
		return err
	})
}

// misplaced is about a picture outside of the folders of classes.
func misplaced(name string) error {
	return fmt.Errorf("%s is in no folder of a class: pictures are in %s/CLASS and %s/CLASS", name, Train, Test)
}

func emptyClass(name string) error {
	return fmt.Errorf("%s: the folder of a class has no picture (.png, .jpg or .jpeg): add some, or remove it", name)
}

// eachFile calls do with the names in a folder, sorted, and the kinds of the
// files that they lead to.
func (a *album) eachFile(folder string, do func(name string, mode fs.FileMode) error) error {
	f, err := a.root.Open(folder)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	for _, e := range entries {
		if hidden(e.Name()) {
			continue
		}
		mode := e.Type()
		if mode&fs.ModeSymlink != 0 {
			status, err := a.root.Stat(path.Join(folder, e.Name()))
			if err != nil {
				return linkError(filepath.Join(a.root.Name(), folder, e.Name()), err)
			}
			mode = status.Mode()
		}
		if err := do(e.Name(), mode); err != nil {
			return err
		}
	}
	return nil
}

// classes returns the names of the classes, sorted.
func (a *album) classes() []string {
	var names []string
	for i := range a.pictures {
		if c := a.pictures[i].class; len(names) == 0 || names[len(names)-1] != c {
			names = append(names, c)
		}
	}
	return names
}

// number gives pictures the labels of their classes.
func (a *album) number(classes []string) {
	for i := range a.pictures {
		n, _ := slices.BinarySearch(classes, a.pictures[i].class)
		a.pictures[i].label = int32(n)
	}
}
