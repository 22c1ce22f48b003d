package code

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

func TestHostileArchives(t *testing.T) {
	file := func(name string) *tar.Header {
		return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 1, Mode: 0o644}
	}
	link := func(name, to string) *tar.Header {
		return &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
	}
	large := file("a")
	large.Size = MaxBytes + 1
	for name, headers := range map[string][]*tar.Header{
		"absolute":               {file("/tmp/x")},
		"parent":                 {file("../x")},
		"parent inside":          {file("a/../../x")},
		"folder itself":          {file(".")},
		"control character":      {file("a\nb")},
		"device":                 {{Typeflag: tar.TypeChar, Name: "a", Devmajor: 1, Devminor: 3}},
		"pipe":                   {{Typeflag: tar.TypeFifo, Name: "a"}},
		"hard link":              {{Typeflag: tar.TypeLink, Name: "a", Linkname: "/etc/passwd"}},
		"folder":                 {{Typeflag: tar.TypeDir, Name: "a/"}},
		"link outside":           {link("a", "../x")},
		"absolute link":          {link("a", "/etc")},
		"link to link outside":   {file("s/x"), link("a/b/d", "../../s"), link("a/b/l", "d/../../x")},
		"file through a link":    {link("a", "b"), file("a/x")},
		"file through a link up": {link("a", ".."), file("a/x")},
		"twice":                  {file("a"), file("a")},
		"file and link":          {file("a"), link("a", "b")},
		"file as a folder":       {file("a"), file("a/b")},
		"size":                   {large},
	} {
		t.Run(name, func(t *testing.T) {
			var archive bytes.Buffer
			w := tar.NewWriter(&archive)
			for _, h := range headers {
				if err := w.WriteHeader(h); err != nil {
					t.Fatal(err)
				}
				if h.Size == 1 {
					w.Write([]byte("x"))
				}
			}
			w.Flush() // a large file is not there in full
			parent := t.TempDir()
			_, err := Unpack(context.Background(), &archive, filepath.Join(parent, "a", "code"), "")
			if err == nil {
				t.Fatal("unpacked below a folder that does not exist")
			}
			if err := os.Mkdir(filepath.Join(parent, "a"), 0o755); err != nil {
				t.Fatal(err)
			}
			archive2 := bytes.NewReader(archive.Bytes())
			s, err := Unpack(context.Background(), archive2, filepath.Join(parent, "a", "code"), "")
			if f := fault(t, err); f.Path == "" {
				t.Errorf("only the hash is wrong: %v", f)
			}
			if s != nil {
				t.Error("a snapshot of a hostile archive")
			}
			var left []string
			filepath.WalkDir(parent, func(path string, _ os.DirEntry, _ error) error {
				left = append(left, path)
				return nil
			})
			if len(left) != 2 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A flipped bit of an archive either is an error or gives
// exactly the files of the hash.
func TestDamagedArchives(t *testing.T) {
	dir := put(t, map[string]string{"a": "hello", "*b": "x", "l": "->a"})
	s := read(t, dir)
	archive := pack(t, s, dir)
	parent := t.TempDir()
	accepted := 0
	for i := 0; i < len(archive); i += 5 { // 5 and 512 have no common divisor: all fields of headers are hit
		damaged := bytes.Clone(archive)
		damaged[i] ^= 0x20
		into := filepath.Join(parent, "code")
		got, err := Unpack(context.Background(), bytes.NewReader(damaged), into, s.Hash())
		if err != nil {
			continue
		}
		accepted++
		if got.Hash() != s.Hash() || read(t, into).Hash() != s.Hash() {
			t.Fatalf("byte %d changes the files", i)
		}
		if err := os.RemoveAll(into); err != nil {
			t.Fatal(err)
		}
	}
	if accepted > len(archive)/10 {
		t.Error("no damage was noticed")
	}
}
