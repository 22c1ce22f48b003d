package dataset

import (
	"archive/zip"
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// openZipAlbum lists the pictures of a zip file, which it closes on an error.
// folder is the one of the split, or "" where the file has only that split.
func openZipAlbum(ctx context.Context, name string, file *os.File, folder string) (*album, error) {
	a := &album{path: name, source: file}
	if err := a.listZip(ctx, file, folder); err != nil {
		file.Close()
		return nil, err
	}
	return a, nil
}

// listZip reads the directory of a zip file. Names are only names: .. and a
// leading / mean nothing, since no file is written by them.
func (a *album) listZip(ctx context.Context, file *os.File, folder string) error {
	status, err := file.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(file, status.Size())
	if err != nil {
		return fmt.Errorf("%s: read the directory of the zip file: %w", a.path, err)
	}
	depth := 1
	if folder != "" {
		depth = 2
	}
	lead := leadingFolder(z.File, depth)
	empty := make(map[string]bool)
	for i, f := range z.File {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		parts := zipParts(f)
		if lead != "" && len(parts) > 0 {
			parts = parts[1:]
		}
		if folder != "" {
			if len(parts) < 2 || parts[0] != folder {
				continue
			}
			parts = parts[1:]
		}
		isFolder := strings.HasSuffix(f.Name, "/")
		switch shown := !isFolder && isPicture(f.Name); {
		case shown && len(parts) == 2:
			empty[parts[0]] = false
			a.pictures = append(a.pictures, picture{class: parts[0], file: parts[1], entry: f})
		case shown && len(parts) > 0:
			return misplaced(a.path + ": " + f.Name)
		case len(parts) > 1 || isFolder && len(parts) == 1:
			if _, known := empty[parts[0]]; !known {
				empty[parts[0]] = true
			}
		}
	}
	return a.sortZip(empty)
}

// sortZip sorts the pictures by class and name; each class has some, and each
// picture is there once.
func (a *album) sortZip(empty map[string]bool) error {
	first := ""
	for class, is := range empty {
		if is && (first == "" || class < first) {
			first = class
		}
	}
	if first != "" {
		return emptyClass(a.path + ": " + first)
	}
	slices.SortFunc(a.pictures, func(x, y picture) int {
		return cmp.Or(strings.Compare(x.class, y.class), strings.Compare(x.file, y.file))
	})
	for i := 1; i < len(a.pictures); i++ {
		if x, y := &a.pictures[i-1], &a.pictures[i]; x.class == y.class && x.file == y.file {
			return a.errorf(y, "the zip file has two pictures of this name")
		}
	}
	return nil
}

// zipParts returns the folders and the name of an entry, or nothing if one of
// them is hidden.
func zipParts(f *zip.File) []string {
	name := strings.TrimPrefix(path.Clean("/"+f.Name), "/")
	if name == "" {
		return nil
	}
	parts := strings.Split(name, "/")
	if slices.ContainsFunc(parts, hidden) {
		return nil
	}
	return parts
}

// leadingFolder returns the folder that all pictures have above the depth that
// is expected of them, or "".
func leadingFolder(files []*zip.File, depth int) string {
	lead := ""
	for _, f := range files {
		parts := zipParts(f)
		if strings.HasSuffix(f.Name, "/") || !isPicture(f.Name) || len(parts) == 0 {
			continue
		}
		if len(parts) != depth+2 || lead != "" && parts[0] != lead {
			return ""
		}
		lead = parts[0]
	}
	return lead
}
