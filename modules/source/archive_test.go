package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// item is an entry of an archive to be made.
type item struct {
	name, text, link string
	kind             byte // of tar; 0 is a file, or a link where there is one
	mode             int64
}

func (e item) header() *tar.Header {
	h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: e.mode, Size: int64(len(e.text))}
	switch {
	case h.Typeflag == tar.TypeXGlobalHeader:
		return &tar.Header{Typeflag: h.Typeflag, PAXRecords: map[string]string{"comment": "a commit"}}
	case h.Typeflag != 0:
	case e.link != "":
		h.Typeflag = tar.TypeSymlink
	case strings.HasSuffix(e.name, "/"):
		h.Typeflag = tar.TypeDir
	default:
		h.Typeflag = tar.TypeReg
	}
	if h.Mode == 0 {
		h.Mode = 0o644
	}
	return h
}

func tarOf(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range items {
		if err := w.WriteHeader(e.header()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gz(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range items {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		text := e.text
		switch {
		case e.kind == tar.TypeChar:
			h.SetMode(fs.ModeDevice | 0o600)
		case e.link != "":
			h.SetMode(fs.ModeSymlink | 0o777)
			text = e.link
		case e.mode != 0:
			h.SetMode(fs.FileMode(e.mode))
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpacked unpacks content in a folder whose neighbours are watched.
func unpacked(t testing.TB, kind string, content []byte, l limits) (string, error) {
	t.Helper()
	around := t.TempDir()
	archive := filepath.Join(around, "archive")
	if err := os.WriteFile(archive, content, 0o600); err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(around, "in", "to")
	if err := os.Mkdir(filepath.Dir(into), 0o755); err != nil {
		t.Fatal(err)
	}
	err := unpack(t.Context(), kind, archive, into, l)
	for dir, want := range map[string][]string{around: {"archive", "in"}, filepath.Dir(into): {"to"}} {
		entries, readErr := os.ReadDir(dir)
		if readErr != nil {
			t.Fatal(readErr)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if !slices.Equal(names, want) {
			t.Fatalf("beside the folder there is %q", names)
		}
	}
	if now, readErr := os.ReadFile(archive); readErr != nil || !bytes.Equal(now, content) {
		t.Fatal("the file beside the folder has changed")
	}
	return into, err
}

var good = []item{
	{name: "./", kind: tar.TypeDir, mode: 0o777},
	{name: "main.tf", text: "locals {}\n"},
	{name: "a/b/c.sh", text: "#!/bin/sh\n", mode: 0o4755},
	{name: "a/empty/"},
	{name: "link", link: "a/b/c.sh"},
	{name: "a/up", link: "../main.tf"},
	{name: ".git/config", text: "[core]\n\tfsmonitor = evil\n"},
	{name: "main.tf", text: "locals {\n}\n"},
}

func TestUnpack(t *testing.T) {
	plain := tarOf(t, append([]item{{name: "pax_global_header", kind: tar.TypeXGlobalHeader}}, good...)...)
	kinds := map[string][]byte{"tar": plain, "tar.gz": gz(t, plain), "zip": zipOf(t, good[1:]...), "tar.bz2": bz2(t)}
	if _, err := exec.LookPath("xz"); err == nil {
		kinds["tar.xz"] = xz(t, plain)
	}
	for kind, content := range kinds {
		t.Run(kind, func(t *testing.T) {
			dir, err := unpacked(t, kind, content, usual)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(dir, "main.tf"))
			if err != nil || string(text) != "locals {\n}\n" {
				t.Errorf("%q, %v", text, err)
			}
			if kind == "tar.bz2" {
				return
			}
			if _, err := os.Lstat(filepath.Join(dir, ".git")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("there is .git: %v", err)
			}
			if info, err := os.Stat(filepath.Join(dir, "link")); err != nil || info.Mode() != 0o755 {
				t.Errorf("link: %v, %v", info, err)
			}
			if text, err := os.ReadFile(filepath.Join(dir, "a/up")); err != nil || string(text) != "locals {\n}\n" {
				t.Errorf("a/up: %q, %v", text, err)
			}
		})
	}
}

// bz2 is tar with main.tf; the standard library packs no bzip2.
func bz2(t testing.TB) []byte {
	t.Helper()
	content, err := base64.StdEncoding.DecodeString(bz2Text)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func xz(t testing.TB, content []byte) []byte {
	t.Helper()
	cmd := exec.Command("xz", "--stdout")
	cmd.Stdin = bytes.NewReader(content)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What archives do to whoever trusts them.
func TestUnpackHostile(t *testing.T) {
	file := item{name: "x", text: "x"}
	tests := map[string]struct {
		items []item
		want  string
		tar   bool // only tar can say it
	}{
		"up":                  {items: []item{{name: "../evil", text: "x"}}, want: "leads out"},
		"up later":            {items: []item{file, {name: "a/../../evil", text: "x"}}, want: "leads out"},
		"absolute":            {items: []item{{name: "/tmp/evil", text: "x"}}, want: "leads out"},
		"folder up":           {items: []item{{name: "../evil/"}}, want: "leads out"},
		"link up":             {items: []item{{name: "l", link: "../archive"}}, want: "leads out"},
		"link absolute":       {items: []item{{name: "l", link: "/etc/passwd"}}, want: "leads out"},
		"write through link":  {items: []item{{name: "l", link: ".."}, {name: "l/evil", text: "x"}}, want: "leads out"},
		"chain of links":      {items: []item{{name: "a", link: "."}, {name: "b", link: "a/a/a/../../archive"}}, want: "leads out"},
		"write through chain": {items: []item{{name: "a", link: "."}, {name: "b", link: "a/a/../.."}, {name: "b/evil", text: "x"}}, want: ""},
		"link over file":      {items: []item{file, {name: "x", link: "../archive"}}, want: "leads out"},
		"file over link":      {items: []item{{name: "d", link: "."}, {name: "d", text: "x"}, {name: "d/evil", text: "x"}}, want: ""},
		"file under file":     {items: []item{file, {name: "x/y", text: "y"}}, want: ""},
		"file over folder":    {items: []item{{name: "x/y", text: "y"}, file}, want: "a folder and a file"},
		"device":              {items: []item{{name: "null", kind: tar.TypeChar}}, want: "neither a file"},
		"fifo":                {items: []item{{name: "pipe", kind: tar.TypeFifo}}, want: "neither a file", tar: true},
		"hard link up":        {items: []item{{name: "h", link: "../../archive", kind: tar.TypeLink}}, want: "leads out", tar: true},
		"hard link absolute":  {items: []item{{name: "h", link: "/etc/passwd", kind: tar.TypeLink}}, want: "leads out", tar: true},
		"hard link to link":   {items: []item{{name: "l", link: "x"}, {name: "h", link: "l", kind: tar.TypeLink}}, want: "not a file before it", tar: true},
		"loop":                {items: []item{{name: "l", link: "l"}}, want: "leads out"},
		"too many":            {items: []item{{name: "1/"}, {name: "2/"}, {name: "3/"}, {name: "4/"}, {name: "5/"}, {name: "6/"}}, want: "too many entries"},
		"too large":           {items: []item{{name: "z", text: strings.Repeat("\x00", 5000)}}, want: "too large"},
		"too large together":  {items: []item{{name: "y", text: strings.Repeat("\x00", 900)}, {name: "z", text: strings.Repeat("\x00", 900)}}, want: "too large"},
		"no name":             {items: []item{{name: strings.Repeat("x/", 3000) + "y", text: "x"}}, want: "no possible name"},
	}
	for name, test := range tests {
		kinds := map[string][]byte{"tar": tarOf(t, test.items...)}
		if !test.tar {
			kinds["zip"] = zipOf(t, test.items...)
		}
		for kind, content := range kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				_, err := unpacked(t, kind, content, limits{bytes: 1000, files: 5})
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %q", err, test.want)
				}
			})
		}
	}
}

func TestUnpackDamaged(t *testing.T) {
	plain := tarOf(t, item{name: "x", text: strings.Repeat("text that is long enough ", 100)})
	packed := map[string][]byte{"tar": plain, "tar.gz": gz(t, plain), "zip": zipOf(t, good[1:]...), "tar.bz2": bz2(t)}
	for kind, content := range packed {
		for name, damaged := range map[string][]byte{
			"half": content[:len(content)/2], "empty": {}, "page": []byte("<!doctype html><title>Sign in</title>" + strings.Repeat(" ", 2000)),
			"other": gz(t, []byte("no tar")),
		} {
			_, err := unpacked(t, kind, damaged, usual)
			empty := kind == "tar" && name == "empty" // which is a tar of nothing
			if !empty && (err == nil || !strings.Contains(err.Error(), "archive")) {
				t.Errorf("%s of %s: %v", name, kind, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	for kind, content := range packed {
		if err := os.WriteFile(filepath.Join(dir, "a"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := unpack(ctx, kind, filepath.Join(dir, "a"), filepath.Join(dir, kind), usual); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", kind, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	plain := tarOf(f, good...)
	f.Add("tar", plain)
	f.Add("tar.gz", gz(f, plain))
	f.Add("zip", zipOf(f, good[1:]...))
	f.Add("tar.bz2", bz2(f))
	f.Add("tar", tarOf(f, item{name: "a", link: "."}, item{name: "b", link: "a/a/../.."}, item{name: "b/x", text: "x"}))
	f.Fuzz(func(t *testing.T, kind string, content []byte) {
		if kind == "tar.xz" {
			return // another program's work
		}
		dir, err := unpacked(t, kind, content, limits{bytes: 1 << 20, files: 1000})
		if err != nil {
			return
		}
		// No link that stays leads out.
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		walk := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type()&fs.ModeSymlink != 0 {
				rest, _ := filepath.Rel(dir, path)
				if _, err := root.Stat(rest); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: %v", rest, err)
				}
			}
			return err
		})
		if walk != nil {
			t.Error(walk)
		}
	})
}

// bz2Text is the output of tar -cj for a file main.tf.
const bz2Text = "QlpoOTFBWSZTWSWzSKIAAHX7hMqQAMBAAW2AACBpJ54KAACACCAAdQyiPUAAG1AxqCSpiGgGgANNH3mtrGoQPnASIQeQsqoL5kkDAlJo6LPYupRKoRCjd+WYRaniPvMnfM7yU+BWEuijIITZZWkkH4u5IpwoSBLZpFEA"
