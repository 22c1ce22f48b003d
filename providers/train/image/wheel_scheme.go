package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/stokehq/stoke/runtime/pattern"
)

// scheme says where the kinds of files of a wheel go in the image, without the
// first slash.
type scheme struct {
	packages string // importable: purelib and platlib
	prefix   string // what scripts, data and headers lie below; "" if packages does not tell
	python   string // 3.12
}

var packagesText = pattern.New(`^(.+)/lib/python3(?:\.[0-9]+)?/(?:site|dist)-packages$`)

func schemeOf(spec *Spec) (scheme, error) {
	packages := spec.SitePackages
	if packages == "" {
		packages = "/usr/local/lib/python" + spec.Python + "/site-packages"
	}
	at, err := cleanImagePath(packages)
	if err != nil {
		return scheme{}, mistake("site_packages", "", "Path in the image is malformed", "%q: %s.", packages, err)
	}
	s := scheme{packages: at, python: spec.Python}
	if m := packagesText.FindStringSubmatch(at); m != nil {
		s.prefix = m[1]
	}
	return s, nil
}

// data is the folder of a wheel's files that are not importable.
func (w *wheel) data() string { return strings.TrimSuffix(w.info, ".dist-info") + ".data/" }

// place is where a file of the wheel goes.
func (w *wheel) place(name string, to scheme) (string, error) {
	rest, special := strings.CutPrefix(name, w.data())
	if !special {
		return path.Join(to.packages, name), nil
	}
	kind, rest, _ := strings.Cut(rest, "/")
	if kind == "purelib" || kind == "platlib" {
		return path.Join(to.packages, rest), nil
	}
	if to.prefix == "" {
		return "", fmt.Errorf("it has files besides packages, and site_packages does not end in /lib/python%s/site-packages, which would say where they go", to.python)
	}
	switch kind {
	case "scripts":
		return path.Join(to.prefix, "bin", rest), nil
	case "data":
		return path.Join(to.prefix, rest), nil
	case "headers":
		return path.Join(to.prefix, "include", "python"+to.python, w.is.distribution, rest), nil
	}
	return "", fmt.Errorf("%s: unknown kind of files %q", name, kind)
}

// interpreter begins a script, wherever the base has its Python.
const interpreter = "#!/usr/bin/env python3\n"

// rewrite gives a script that begins with #!python the interpreter of the image.
func (w *wheel) rewrite(f fileOpener, e *entry) error {
	from, err := f.Open()
	if err != nil {
		return unusable(w.name, "%s: %s", e.from, err)
	}
	defer from.Close()
	begin := make([]byte, len("#!python"))
	if _, err := io.ReadFull(from, begin); err != nil || string(begin) != "#!python" {
		return nil // a program, or a script of something else: left as it is
	}
	rest, err := io.ReadAll(io.LimitReader(from, maxText+1))
	if err != nil || len(rest) > maxText {
		return unusable(w.name, "%s cannot be read, or is larger than %d bytes", e.from, maxText)
	}
	_, rest, _ = bytes.Cut(rest, []byte("\n"))
	e.setContent(append([]byte(interpreter), rest...))
	return nil
}

// fileOpener is a file of an archive.
type fileOpener interface {
	Open() (io.ReadCloser, error)
}

var (
	section    = pattern.New(`^\[(.+)\]$`)
	consoleRef = pattern.New(`^([A-Za-z0-9_.-]+)\s*=\s*([A-Za-z_][\w.]*)\s*:\s*([A-Za-z_][\w.]*)\s*(?:\[.*\])?$`)
)

// commands makes the scripts that entry_points.txt promises under
// console_scripts. Without a place for them they are left out: python3 -m does
// the same.
func (w *wheel) commands(to scheme) ([]entry, error) {
	if _, listed := w.sums[w.info+"/entry_points.txt"]; !listed || to.prefix == "" {
		return nil, nil
	}
	text, err := w.text("entry_points.txt")
	if err != nil {
		return nil, err
	}
	var made []entry
	group := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := section.FindStringSubmatch(line); m != nil {
			group = strings.TrimSpace(m[1])
			continue
		}
		if group != "console_scripts" || line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		m := consoleRef.FindStringSubmatch(line)
		if m == nil || usable(m[1]) != nil {
			return nil, unusable(w.name, "entry_points.txt has the line %q under console_scripts", line)
		}
		first, _, _ := strings.Cut(m[3], ".")
		e := entry{name: path.Join(to.prefix, "bin", m[1]), kind: tar.TypeReg, mode: 0o755, from: "entry_points.txt", of: "wheels", inside: w.name}
		e.setContent([]byte(interpreter + "import sys\nfrom " + m[2] + " import " + first + "\nsys.exit(" + m[3] + "())\n"))
		made = append(made, e)
	}
	return made, nil
}
