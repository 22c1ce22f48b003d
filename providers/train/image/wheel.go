package image

import (
	"archive/tar"
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// wheel is an archive of a Python package, opened.
type wheel struct {
	name    string // of its file
	path    string
	stamp   string
	is      wheelName
	file    *zip.ReadCloser
	info    string            // its folder NAME-VERSION.dist-info
	sums    map[string]string // by RECORD: name in the archive → hash, see record.go
	members []member
	entries []entry
}

// member is one file of a wheel and what becomes of it.
type member struct {
	*zip.File
	entry int // index in entries
}

// openWheels opens all wheels of the folder, in the order of their names.
func openWheels(spec *Spec) (all []*wheel, err error) {
	defer func() {
		if err != nil {
			for _, w := range all {
				err = errors.Join(err, w.file.Close())
			}
		}
	}()
	files, err := os.ReadDir(spec.Wheels)
	if err != nil {
		return nil, (&walk{argument: "wheels"}).unreadable(spec.Wheels, err)
	}
	by := make(map[string]string)
	for _, f := range files {
		if filepath.Ext(f.Name()) != ".whl" {
			continue // an index or a list of requirements may lie beside them
		}
		w, err := openWheel(spec, f.Name())
		if err != nil {
			return all, err
		}
		all = append(all, w)
		if other := by[w.is.normal()]; other != "" {
			return all, mistake("wheels", "", "A package is there twice", "Both %s and %s hold %s. Leave one of them in the folder.", other, w.name, w.is.normal())
		}
		by[w.is.normal()] = w.name
	}
	if len(all) == 0 {
		return nil, mistake("wheels", "", "There are no wheels", "%s has no file *.whl. Fill it with pip download, or leave wheels out.", spec.Wheels)
	}
	return all, nil
}

func unusable(name, format string, args ...any) error {
	return mistake("wheels", "", "Wheel cannot be used", "%s: %s.", name, fmt.Sprintf(format, args...))
}

func openWheel(spec *Spec, name string) (w *wheel, err error) {
	w = &wheel{name: name, path: filepath.Join(spec.Wheels, name)}
	if w.is, err = parseWheelName(name); err != nil {
		return nil, unusable(name, "%s", err)
	}
	if err := w.is.fits(spec.Python, spec.Platform.Architecture); err != nil {
		return nil, mistake("wheels", "", "Wheel does not fit the image", "%s: %s.", name, err)
	}
	info, err := os.Stat(w.path)
	if err != nil {
		return nil, (&walk{argument: "wheels"}).unreadable(w.path, err)
	}
	w.stamp = fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
	if w.file, err = zip.OpenReader(w.path); err != nil {
		return nil, unusable(name, "%s", plainError(err))
	}
	if err := w.unpack(spec); err != nil {
		return nil, errors.Join(err, w.file.Close())
	}
	return w, nil
}

// unpack finds the place in the image of each file, by PEP 427.
func (w *wheel) unpack(spec *Spec) error {
	if err := w.find(); err != nil {
		return err
	}
	if err := w.readRecord(); err != nil {
		return err
	}
	to, err := schemeOf(spec)
	if err != nil {
		return err
	}
	seen := make(map[string]bool, len(w.file.File))
	for _, f := range w.file.File {
		if strings.HasSuffix(f.Name, "/") {
			continue // folders come with their files
		}
		if err := w.check(f, seen); err != nil {
			return err
		}
		at, err := w.place(f.Name, to)
		if err != nil {
			return unusable(w.name, "%s", err)
		}
		mode := permission(f.Mode())
		script := strings.HasPrefix(f.Name, w.data()+"scripts/")
		if script {
			mode = 0o755
		}
		w.members = append(w.members, member{f, len(w.entries)})
		w.entries = append(w.entries, entry{name: at, kind: tar.TypeReg, mode: mode, size: int64(f.UncompressedSize64),
			from: f.Name, of: "wheels", inside: w.name, open: f.Open})
		if script {
			if err := w.rewrite(f, &w.entries[len(w.entries)-1]); err != nil {
				return err
			}
		}
	}
	commands, err := w.commands(to)
	w.entries = append(w.entries, commands...)
	return err
}

// check refuses names that lead out of the folder and files without a hash.
func (w *wheel) check(f *zip.File, seen map[string]bool) error {
	switch {
	case path.IsAbs(f.Name) || strings.ContainsAny(f.Name, "\\\x00") || path.Clean(f.Name) != f.Name:
		return unusable(w.name, "it holds a file with the name %q", f.Name)
	case !f.Mode().IsRegular():
		return unusable(w.name, "%s is not a plain file", f.Name)
	case seen[f.Name]:
		return unusable(w.name, "%s is in it twice", f.Name)
	}
	seen[f.Name] = true
	if _, err := cleanImagePath("/" + f.Name); err != nil {
		return unusable(w.name, "%s: %s", f.Name, err)
	}
	if _, listed := w.sums[f.Name]; !listed && !w.unlisted(f.Name) {
		return unusable(w.name, "%s is not in its RECORD", f.Name)
	}
	return nil
}

// find takes the folder dist-info, and refuses formats that came later.
func (w *wheel) find() error {
	for _, f := range w.file.File {
		folder, rest, _ := strings.Cut(f.Name, "/")
		if rest != "WHEEL" || !strings.HasSuffix(folder, ".dist-info") {
			continue
		}
		if w.info != "" {
			return unusable(w.name, "it has two folders dist-info")
		}
		w.info = folder
	}
	stem := strings.TrimSuffix(w.info, ".dist-info")
	name, version, _ := strings.Cut(stem, "-")
	if w.info == "" || (wheelName{distribution: name}).normal() != w.is.normal() || version != w.is.version {
		return unusable(w.name, "it has no folder %s-%s.dist-info with a file WHEEL", w.is.distribution, w.is.version)
	}
	text, err := w.text("WHEEL")
	if err != nil {
		return err
	}
	version = field(text, "Wheel-Version")
	if major, _, _ := strings.Cut(version, "."); major != "1" {
		return unusable(w.name, "its format is of version %q; this stoke reads 1.x", version)
	}
	return nil
}

// field reads a line "Name: value".
func field(text, name string) string {
	m := regexp.MustCompile(`(?mi)^` + name + `:[ \t]*(.*?)\r?$`).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}

// maxText bounds what is read of a wheel into memory: RECORD of the largest
// packages has a few megabytes.
const maxText = 64 << 20

// text reads a file of dist-info.
func (w *wheel) text(name string) (string, error) {
	f, err := w.file.Open(w.info + "/" + name)
	if err != nil {
		return "", unusable(w.name, "%s/%s: %s", w.info, name, plainError(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxText+1))
	switch {
	case err != nil:
		return "", unusable(w.name, "%s/%s: %s", w.info, name, err)
	case len(data) > maxText:
		return "", unusable(w.name, "%s/%s is larger than %d bytes", w.info, name, maxText)
	}
	return string(data), nil
}

// verify reads the wheel as a whole for its hash, and each of its files, which
// must be what RECORD says.
func (w *wheel) verify(ctx context.Context) (string, error) {
	for _, m := range w.members {
		if err := w.verifyMember(ctx, m); err != nil {
			return "", err
		}
	}
	f, err := os.Open(w.path)
	if err != nil {
		return "", (&walk{argument: "wheels"}).unreadable(w.path, err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, interruptible{ctx, f}); err != nil {
		return "", fmt.Errorf("read %s: %w", w.path, err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
