package checkpoint

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stokehq/stoke/runtime/spec"
)

// A copy of a checkpoint's files, in their order, is that checkpoint.
func TestFilesAreACopy(t *testing.T) {
	for name, p := range places(t) {
		t.Run(name, func(t *testing.T) {
			saved := save(t, p, "final-term-000001", 1, 3000)
			home := t.TempDir()
			var order []string
			copyTo := func(file string, size int64, in io.Reader) error {
				data, err := io.ReadAll(in)
				if err == nil && int64(len(data)) != size {
					t.Errorf("%s: %d bytes, announced were %d", file, len(data), size)
				}
				order = append(order, file)
				to := filepath.Join(home, "final-term-000001", file)
				if err == nil {
					err = os.MkdirAll(filepath.Dir(to), 0o700)
				}
				if err == nil {
					err = os.WriteFile(to, data, 0o600)
				}
				return err
			}
			if err := p.Files(t.Context(), "final-term-000001", copyTo); err != nil {
				t.Fatal(err)
			}
			if want := []string{saved.Parts[0].Name, saved.Parts[1].Name, spec.ManifestFile}; !slices.Equal(order, want) {
				t.Errorf("order %q, want %q", order, want)
			}
			m, err := Folder(home).Manifest(t.Context(), "final-term-000001")
			if err != nil || m.Checksum != saved.Checksum {
				t.Errorf("manifest %+v, %v", m, err)
			}
			got := [][]float32{make([]float32, 3000)}
			if err := Folder(home).Load(t.Context(), "final-term-000001", m.Parts, 0, 3000, got); err != nil || !slices.Equal(got[0], sequence(0, 3000, 0)) {
				t.Errorf("other values than were saved: %v", err)
			}
		})
	}
}

// A part that is not what the manifest says ends the copy before the manifest.
func TestFilesOfADamagedCheckpoint(t *testing.T) {
	folder := t.TempDir()
	p := Folder(folder)
	m := save(t, p, "final-term-000001", 1, 3000)
	path := filepath.Join(folder, "final-term-000001", m.Parts[1].Name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, spoilt := range map[string][]byte{"turned bit": bytes.Replace(data, data[:4], []byte{1, 2, 3, 4}, 1), "too short": data[4:], "gone": nil} {
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		if spoilt == nil {
			os.Remove(path)
		}
		err := p.Files(t.Context(), "final-term-000001", func(file string, _ int64, in io.Reader) error {
			if file == spec.ManifestFile {
				t.Errorf("%s: the manifest is copied", what)
			}
			_, err := io.Copy(io.Discard, in)
			return err
		})
		if !Unusable(err) || !strings.Contains(err.Error(), m.Parts[1].Name) {
			t.Errorf("%s: %v", what, err)
		}
	}
	full := errors.New("full")
	if err := p.Files(t.Context(), "final-term-000001", func(string, int64, io.Reader) error { return full }); !errors.Is(err, full) {
		t.Errorf("a copy that fails: %v", err)
	}
}

// A term is claimed once, whoever tries, and stays known when earlier claims are
// removed.
func TestTermsAreClaimedOnce(t *testing.T) {
	const run, other = "sha256:0123456789abcdef0123", "sha256:fedcba98765432100123"
	for name, p := range places(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if highest, err := p.Claimed(ctx, run); err != nil || highest != 0 {
				t.Fatalf("term %d, %v", highest, err)
			}
			for term := int64(1); term <= 12; term++ {
				var mu sync.Mutex
				var all sync.WaitGroup
				won := 0
				for range 8 {
					all.Go(func() {
						ok, err := p.Claim(ctx, run, term)
						mu.Lock()
						defer mu.Unlock()
						if err != nil {
							t.Error(err)
						}
						if ok {
							won++
						}
					})
				}
				all.Wait()
				if highest, err := p.Claimed(ctx, run); won != 1 || highest != term || err != nil {
					t.Errorf("%d claimed term %d; the highest is %d (%v)", won, term, highest, err)
				}
			}
			if found, err := p.list(ctx, claims(run)+"/"); err != nil || len(found) > keptClaims+1 {
				t.Errorf("claims %v, %v", found, err)
			}
			if highest, err := p.Claimed(ctx, other); err != nil || highest != 0 {
				t.Errorf("another run's term is %d, %v", highest, err)
			}
			save(t, p, spec.StepName(7, 40), 40, 30) // by one that claimed nothing here
			if highest, err := p.Claimed(ctx, run); err != nil || highest != 40 {
				t.Errorf("behind a checkpoint of term 40, the highest is %d (%v)", highest, err)
			}
			if err := p.Clean(ctx, spec.StepPrefix); err != nil {
				t.Fatal(err)
			}
			if ok, err := p.Claim(ctx, run, 12); ok || err != nil {
				t.Errorf("a claim is cleaned away (%v)", err)
			}
		})
	}
}
