package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// program writes a file that has the header of a static program.
func program(t *testing.T, machine elf.Machine, content string) string {
	t.Helper()
	header := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Ehsize: 64, Phentsize: 56, Shentsize: 64}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS], header.Ident[elf.EI_DATA], header.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	var text bytes.Buffer
	if err := binary.Write(&text, binary.LittleEndian, header); err != nil {
		t.Fatal(err)
	}
	text.WriteString(content)
	name := filepath.Join(t.TempDir(), "stoke-trainer")
	if err := os.WriteFile(name, text.Bytes(), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

// put writes files below a folder: name → content; a name that ends in ! is executable.
func put(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, content := range files {
		mode := fs.FileMode(0o600)
		if rest, ok := strings.CutSuffix(name, "!"); ok {
			name, mode = rest, 0o700
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// basic is a specification with a trainer alone.
func basic(t *testing.T) Spec {
	t.Helper()
	return Spec{Platform: v1.Platform{OS: "linux", Architecture: "amd64"}, Trainer: program(t, elf.EM_X86_64, "trainer"), TrainerVersion: "1.2.3"}
}

// build collects and builds, which must work; the contents stay open for the test.
func build(t *testing.T, spec Spec, base v1.Image) *Image {
	t.Helper()
	c, err := Collect(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	b, err := c.Build(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// refused expects a mistake of an argument, from Collect or from Build.
func refused(t *testing.T, spec Spec, argument, summary, part string) {
	t.Helper()
	c, err := Collect(spec)
	if err == nil {
		defer c.Close()
		_, err = c.Build(t.Context(), nil)
	}
	var m *Mistake
	if !errors.As(err, &m) {
		t.Fatalf("want a mistake, got %v", err)
	}
	if m.Argument != argument || m.Summary != summary || !strings.Contains(m.Detail, part) {
		t.Errorf("got %+v, want %q at %s with %q", m, summary, argument, part)
	}
	if n := len(strings.Fields(m.Summary)); n > 8 {
		t.Errorf("summary %q has %d words", m.Summary, n)
	}
}

// found is one member of a flattened image.
type found struct {
	kind    byte
	mode    int64
	link    string
	content string
}

// unpack flattens an image: what a container would see.
func unpack(t *testing.T, img v1.Image) map[string]found {
	t.Helper()
	all := make(map[string]found)
	flat := mutate.Extract(img)
	defer flat.Close()
	r := tar.NewReader(flat)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.ModTime.Unix() != 0 {
			t.Errorf("%s belongs to %d:%d %q %q and is of %s", h.Name, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(h.Name, "/")] = found{h.Typeflag, h.Mode, h.Linkname, string(content)}
	}
}
