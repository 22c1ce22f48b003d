//go:build e2e && linux

package lab

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Package is a Debian package that the lab makes itself.
type Package struct {
	Name, Version string
	// Fields are further ones of its control file, such as "Depends",
	// "Conflicts", "Provides".
	Fields map[string]string
	// Files are its contents by path. What begins with "#!" is executable; a path
	// that ends in a slash is a folder; "-> target" is a link.
	Files map[string]string
	// Conffiles are those of Files that apt asks about when people changed them.
	Conffiles []string
	// Scripts are preinst, postinst, prerm, postrm, triggers and so on.
	Scripts map[string]string
	// All says that it is for all architectures.
	All bool
}

func (p Package) architecture() string {
	if p.All {
		return "all"
	}
	return runtime.GOARCH
}

// file is the package's file name; a colon, of an epoch, is left out as Debian
// does.
func (p Package) file() string {
	version := p.Version
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	return p.Name + "_" + version + "_" + p.architecture() + ".deb"
}

// control is the package's control file.
func (p Package) control() string {
	var b strings.Builder
	size := 0
	for _, content := range p.Files {
		size += len(content)
	}
	fmt.Fprintf(&b, "Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: stoke <lab@example.org>\nInstalled-Size: %d\nPriority: optional\nSection: misc\n",
		p.Name, p.Version, p.architecture(), size/1024+1)
	for _, name := range slices.Sorted(maps.Keys(p.Fields)) {
		fmt.Fprintf(&b, "%s: %s\n", name, p.Fields[name])
	}
	b.WriteString("Description: stand-in for tests\n It does what the tests of stoke need of the package of this name.\n")
	return b.String()
}

// build makes the package: deb(5), an ar archive of two compressed tars.
func (p Package) build() ([]byte, error) {
	control := map[string]string{"control": p.control()}
	if len(p.Conffiles) > 0 {
		control["conffiles"] = strings.Join(p.Conffiles, "\n") + "\n"
	}
	maps.Copy(control, p.Scripts)
	meta, err := archive(control)
	if err != nil {
		return nil, err
	}
	data, err := archive(p.Files)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, member := range []struct {
		name    string
		content []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", meta}, {"data.tar.gz", data}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", member.name, 0, 0, 0, "100644", len(member.content))
		b.Write(member.content)
		if len(member.content)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

// archive makes a compressed tar of files, with the folders that they are in.
func archive(files map[string]string) ([]byte, error) {
	var b bytes.Buffer
	level, size := gzip.DefaultCompression, 0
	for _, content := range files {
		if size += len(content); size > 16<<20 {
			level = gzip.NoCompression // it goes no further than the lab's network
		}
	}
	z, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	made := map[string]bool{".": true}
	folder := func(name string) error {
		for i, c := range name + "/" {
			if dir := name[:min(i, len(name))]; c == '/' && dir != "" && !made[dir] {
				made[dir] = true
				if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./" + dir + "/", Mode: 0o755}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := files[name]
		clean := strings.TrimPrefix(path.Clean(name), "/")
		if strings.HasSuffix(name, "/") {
			if err := folder(clean); err != nil {
				return nil, err
			}
			continue
		}
		if dir := path.Dir(clean); dir != "." {
			if err := folder(dir); err != nil {
				return nil, err
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "./" + clean, Mode: 0o644, Size: int64(len(content))}
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			h.Typeflag, h.Linkname, h.Size, content = tar.TypeSymlink, target, 0, ""
		} else if strings.HasPrefix(content, "#!") || strings.HasPrefix(content, "\x7fELF") {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(content)); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}
