package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// spread unpacks an archive into a folder, and returns the names in order.
func spread(t *testing.T, a Archive) (dir string, names []string) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Open(string(a))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := tar.NewReader(f)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir, names
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		put(t, dir, map[string]string{h.Name: string(content)})
	}
}

func TestArchiveIsALayoutAndLoadsIntoDocker(t *testing.T) {
	spec := basic(t)
	spec.Files = map[string]string{"/app": put(t, t.TempDir(), map[string]string{"a": "a"})}
	for _, docker := range []bool{false, true} {
		b := build(t, spec, nil)
		if docker { // of a manifest in Docker's format
			b.Image = mutate.ConfigMediaType(mutate.MediaType(b.Image, types.DockerManifestSchema2), types.DockerConfigJSON)
			digest, err := b.Image.Digest()
			if err != nil {
				t.Fatal(err)
			}
			b.Digest = digest.String()
		}
		a := Archive(filepath.Join(t.TempDir(), "image.tar"))
		label := Label{Owner: "image-1", Digest: b.Digest, Tag: "registry.example.com/team/trainer:1"}
		if err := a.Write(t.Context(), b.Image, label, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := a.Label(); err != nil || got != label {
			t.Errorf("label is %+v, %v", got, err)
		}
		if err := a.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		dir, _ := spread(t, a)
		index, err := layout.ImageIndexFromPath(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Error(err)
		}
		loaded, err := tarball.ImageFromPath(string(a), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(loaded); err != nil {
			t.Error(err)
		}
		want, _ := b.Image.ConfigName()
		if got, err := loaded.ConfigName(); err != nil || got != want {
			t.Errorf("docker would load %s, %v; want %s", got, err, want)
		}
	}
}

func TestArchiveThatIsNotAsItWas(t *testing.T) {
	b := build(t, basic(t), nil)
	a := Archive(filepath.Join(t.TempDir(), "image.tar"))
	if err := a.Write(t.Context(), b.Image, Label{"image-1", b.Digest, "trainer:1"}, nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(string(a))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-2048] ^= 1
	for name, content := range map[string][]byte{"cut": whole[:len(whole)/2], "cut late": whole[:len(whole)-1500], "flipped": flipped} {
		if err := os.WriteFile(string(a), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := a.Verify(t.Context()); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, content := range map[string]string{"empty": "", "text": "hello", "zeros": string(make([]byte, 4096))} {
		if err := os.WriteFile(string(a), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Label(); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v", name, err)
		}
		if err := a.Remove("image-1"); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(string(a)); err != nil {
			t.Errorf("%s: somebody else's file is gone", name)
		}
	}
}

func TestArchiveIsRemovedByItsOwnerAlone(t *testing.T) {
	b := build(t, basic(t), nil)
	a := Archive(filepath.Join(t.TempDir(), "image.tar"))
	if err := a.Write(t.Context(), b.Image, Label{"image-1", b.Digest, "trainer:1"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Remove("image-2"); err != nil {
		t.Error(err)
	}
	if _, err := a.Label(); err != nil {
		t.Errorf("another owner removed it: %v", err)
	}
	for range 2 {
		if err := a.Remove("image-1"); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(string(a)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestInterruptedArchiveLeavesNothing(t *testing.T) {
	b := build(t, basic(t), nil)
	dir := t.TempDir()
	a := Archive(filepath.Join(dir, "image.tar"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Write(ctx, b.Image, Label{"image-1", b.Digest, "trainer:1"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancel: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	// What a kill left is replaced by the owner's next attempt.
	put(t, dir, map[string]string{".image.tar.image-1.new": "half"})
	if err := a.Write(t.Context(), b.Image, Label{"image-1", b.Digest, "trainer:1"}, nil); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}
