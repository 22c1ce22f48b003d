package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/stokehq/stoke/runtime/spec"
)

// places are a folder and a bucket, each below a prefix that others share.
func places(t *testing.T) map[string]*Place {
	t.Helper()
	b := memblob.OpenBucket(nil)
	t.Cleanup(func() { b.Close() })
	if err := b.WriteAll(context.Background(), "other/step-1/manifest.json", []byte("{}"), nil); err != nil {
		t.Fatal(err)
	}
	return map[string]*Place{
		"folder": Folder(filepath.Join(t.TempDir(), "not-there-yet")),
		"bucket": inBucket(b, "runs/one", "mem://"),
	}
}

func sequence(from, to int, add float32) []float32 {
	v := make([]float32, to-from)
	for i := range v {
		v[i] = float32(from+i) + add
	}
	return v
}

// save writes a checkpoint of n values and one slot, by two servers.
func save(t *testing.T, p *Place, name string, term int64, n int) Manifest {
	t.Helper()
	m := Manifest{Step: 7, Term: term, Run: "hash", Records: 10, Ledger: []spec.EpochLedger{{Ranges: [][2]int64{{0, 4}}}}}
	for i, span := range [][2]int{{0, n / 3}, {n / 3, n}} {
		part, err := p.Save(t.Context(), name, fmt.Sprintf("server-%d-term-%d.f32", i, term), span[0],
			[][]float32{sequence(span[0], span[1], 0), sequence(span[0], span[1], 0.5)})
		if err != nil {
			t.Fatal(err)
		}
		m.Parts = append(m.Parts, part)
	}
	if err := p.Finish(t.Context(), name, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Whatever spans wrote a checkpoint, others can read it: more servers, fewer,
// and those without slots.
func TestSaveAndLoad(t *testing.T) {
	const n = 2*chunk + 1001
	for name, p := range places(t) {
		t.Run(name, func(t *testing.T) {
			saved := save(t, p, "step-7", 1, n)
			m, err := p.Manifest(t.Context(), "step-7")
			if err != nil || m.Checksum != saved.Checksum || len(m.Parts) != 2 || m.Ledger[0].Ranges[0][1] != 4 {
				t.Fatalf("%+v, %v", m, err)
			}
			for _, span := range [][2]int{{0, n}, {0, 10}, {n/3 - 5, n/3 + 5}, {n - 1, n}, {chunk, 2 * chunk}} {
				for slots := range 2 {
					vectors := make([][]float32, 1+slots)
					for i := range vectors {
						vectors[i] = make([]float32, span[1]-span[0])
					}
					if err := p.Load(t.Context(), "step-7", m.Parts, span[0], span[1], vectors); err != nil {
						t.Fatal(err)
					}
					for i, v := range vectors {
						if !slices.Equal(v, sequence(span[0], span[1], float32(i)/2)) {
							t.Errorf("vector %d of [%d, %d) is not what was saved", i, span[0], span[1])
						}
					}
				}
			}
			if err := p.Load(t.Context(), "step-7", m.Parts[:1], 0, n, [][]float32{make([]float32, n)}); !errors.Is(err, ErrDamaged) {
				t.Errorf("half of a checkpoint was loaded: %v", err)
			}
			if err := p.Load(t.Context(), "step-7", m.Parts, 0, 1, [][]float32{{0}, {0}, {0}}); !errors.Is(err, ErrDamaged) {
				t.Errorf("a second slot was loaded: %v", err)
			}
		})
	}
}

// A checkpoint begins to exist with its manifest and ends with it.
func TestCompleteOrAbsent(t *testing.T) {
	for name, p := range places(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			names := func(want ...string) {
				t.Helper()
				if got, err := p.Names(ctx, "step-"); err != nil || !slices.Equal(got, want) {
					t.Errorf("checkpoints %q, want %q (%v)", got, want, err)
				}
			}
			names()
			if _, err := p.Manifest(ctx, "step-7"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a manifest of nothing: %v", err)
			}
			// Parts alone are nothing, nor is what was never closed.
			if _, err := p.Save(ctx, "step-3", "server-0.f32", 0, [][]float32{{1, 2}}); err != nil {
				t.Fatal(err)
			}
			open, err := p.Create(ctx, "step-4", "server-0.f32")
			if err != nil {
				t.Fatal(err)
			}
			if err := open.Write(make([]float32, 3*chunk)); err != nil {
				t.Fatal(err)
			}
			names()
			open.Abort()
			save(t, p, "step-7", 1, 300)
			save(t, p, "step-8", 1, 300)
			save(t, p, "final", 1, 300)
			names("step-7", "step-8")
			if err := p.Clean(ctx, "step-"); err != nil {
				t.Fatal(err)
			}
			left, err := p.list(ctx, "")
			if err != nil || len(left) != 9 {
				t.Errorf("%v is left, want three checkpoints of two parts (%v)", left, err)
			}
			// One that takes another's place leaves nothing of it.
			m := save(t, p, "final", 2, 300)
			if got, err := p.list(ctx, "final/"); err != nil || len(got) != 3 {
				t.Errorf("%v is left of two final models (%v)", got, err)
			}
			if ok, err := p.Complete(ctx, "final", m); !ok || err != nil {
				t.Errorf("the second one is not complete: %v", err)
			}
			for range 2 { // removing what is gone already is no error
				if err := p.Remove(ctx, "step-7"); err != nil {
					t.Fatal(err)
				}
			}
			names("step-8")
			if err := p.remove(ctx, "step-8/server-0-term-1.f32"); err != nil {
				t.Fatal(err)
			}
			if m, err = p.Manifest(ctx, "step-8"); err != nil {
				t.Fatal(err)
			}
			if ok, err := p.Complete(ctx, "step-8", m); ok || err != nil {
				t.Errorf("complete without its first part (%v)", err)
			}
		})
	}
}

// failing is a storage that stops working after some calls, as a full disk or
// a lost network does: objects that were not committed by then are not there.
type failing struct {
	storage
	left *int
}

var errFailed = errors.New("no space left on device")

func (f failing) step() error {
	if *f.left--; *f.left < 0 {
		return errFailed
	}
	return nil
}

func (f failing) put(ctx context.Context, key string) (object, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	o, err := f.storage.put(ctx, key)
	return failingObject{o, f}, err
}

func (f failing) remove(ctx context.Context, key string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.storage.remove(ctx, key)
}

type failingObject struct {
	object
	failing
}

func (o failingObject) Write(p []byte) (int, error) {
	if err := o.step(); err != nil {
		return 0, err
	}
	return o.object.Write(p)
}

func (o failingObject) commit() error {
	if err := o.step(); err != nil {
		return err
	}
	return o.object.commit()
}

// Wherever writing a checkpoint fails, that one is absent and the one before
// it is as it was; wherever replacing or removing one fails, it is whole or
// absent.
func TestFailureAtAnyWrite(t *testing.T) {
	for name, p := range places(t) {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			real := p.storage
			old := save(t, p, "step-1", 1, 300)
			save(t, p, "final", 1, 300)
			write := func(name string, term int64) error {
				m := old
				m.Term, m.Parts = term, nil
				for i, span := range [][2]int{{0, 100}, {100, 300}} {
					part, err := p.Save(ctx, name, fmt.Sprintf("server-%d-term-%d.f32", i, term), span[0], [][]float32{sequence(span[0], span[1], 0)})
					if err != nil {
						return err
					}
					m.Parts = append(m.Parts, part)
				}
				return p.Finish(ctx, name, &m)
			}
			jobs := map[string]func() error{
				"step-2": func() error { return write("step-2", 2) },
				"final":  func() error { return write("final", 2) },
				"step-1": func() error { return p.Remove(ctx, "step-1") },
			}
			for target, job := range jobs {
				steps := 0
				for done := false; !done; steps++ {
					left := steps
					p.storage = failing{real, &left}
					err := job()
					p.storage = real
					if done = err == nil; !done && !errors.Is(err, errFailed) {
						t.Fatal(err)
					}
					found, lerr := p.Names(ctx, "")
					if lerr != nil {
						t.Fatal(lerr)
					}
					for _, name := range found {
						m, merr := p.Manifest(ctx, name)
						if merr != nil {
							t.Fatal(merr)
						}
						n := m.Parts[len(m.Parts)-1].To
						if lerr := p.Load(ctx, name, m.Parts, 0, n, [][]float32{make([]float32, n)}); lerr != nil {
							t.Errorf("%s after %d steps of writing %s: %v", name, steps, target, lerr)
						}
					}
					if target != "step-1" && !slices.Contains(found, "step-1") {
						t.Fatalf("an older checkpoint is gone after %d steps of writing %s", steps, target)
					}
				}
				if steps < 4 {
					t.Errorf("%s: only %d steps failed", target, steps)
				}
				if target == "step-1" {
					save(t, p, "step-1", 1, 300)
				}
			}
		})
	}
}

func TestDamageIsSeen(t *testing.T) {
	for _, spoil := range []struct {
		name string
		do   func(t *testing.T, file string)
	}{
		{"a flipped bit", func(t *testing.T, file string) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			at := len(data) / 2
			if i := bytes.Index(data, []byte(`"step": 7`)); i >= 0 {
				at = i + len(`"step": `)
			}
			data[at] ^= 1
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"an end that is missing", func(t *testing.T, file string) {
			if err := os.Truncate(file, 40); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		for _, file := range []string{spec.ManifestFile, "server-1-term-1.f32"} {
			dir := t.TempDir()
			p := Folder(dir)
			m := save(t, p, "step-7", 1, 300)
			spoil.do(t, filepath.Join(dir, "step-7", file))
			_, err := p.Manifest(t.Context(), "step-7")
			if file != spec.ManifestFile {
				if err != nil {
					t.Fatal(err)
				}
				err = p.Load(t.Context(), "step-7", m.Parts, 0, 300, [][]float32{make([]float32, 300)})
			}
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%s in %s: %v", spoil.name, file, err)
			}
		}
	}
}

// A manifest comes from a file that anybody may have written: its names lead
// nowhere else.
func TestNamesLeadNowhereElse(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, make([]byte, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	p := Folder(filepath.Join(dir, "checkpoints"))
	save(t, p, "step-7", 1, 300)
	for _, name := range []string{"../../secret", "..", ".", "", "/etc/passwd", "a/b", `a\b`, strings.Repeat("a", 200)} {
		part := Part{Name: name, To: 1, Vectors: 2}
		if err := p.Load(t.Context(), "step-7", []Part{part}, 0, 1, [][]float32{{0}}); err == nil || !strings.Contains(err.Error(), "not a name") {
			t.Errorf("part %q was read: %v", name, err)
		}
		if _, err := p.Save(t.Context(), "step-7", name, 0, [][]float32{{0}}); err == nil {
			t.Errorf("part %q was written", name)
		}
		if _, err := p.Save(t.Context(), name, "part", 0, [][]float32{{0}}); err == nil {
			t.Errorf("checkpoint %q was written", name)
		}
		if err := p.Remove(t.Context(), name); err == nil {
			t.Errorf("checkpoint %q was removed", name)
		}
	}
	if _, err := os.Stat(secret); err != nil {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"", "relative/folder", "http://host/x", "s3://", "gs:///prefix", "s3:bucket", "mem://x", ":"} {
		if p, err := Open(t.Context(), address); err == nil || !strings.Contains(err.Error(), "place") {
			t.Errorf("%q: %v, %v", address, p, err)
		}
	}
	p, err := Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := p.storage.(folder); !ok {
		t.Errorf("a folder is a %T", p.storage)
	}
}

// The folder around a place is made by none but a run's launcher: when it is
// removed, nothing that is written brings it back.
func TestRemovedFolderStaysAway(t *testing.T) {
	around := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(around, 0o700); err != nil {
		t.Fatal(err)
	}
	p := Folder(filepath.Join(around, "checkpoints"))
	m := save(t, p, "step-7", 1, 300)
	if err := os.RemoveAll(around); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Save(t.Context(), "step-8", "server-0.f32", 0, [][]float32{{1}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part was written: %v", err)
	}
	if err := p.Finish(t.Context(), "step-7", &m); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a manifest was written: %v", err)
	}
	if ok, err := p.Claim(t.Context(), "sha256:x", 1); ok || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a term was claimed: %v", err)
	}
	if _, err := os.Stat(around); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there again: %v", err)
	}
}

// The folder may be a link to another disk.
func TestLinkedFolder(t *testing.T) {
	disk, link := t.TempDir(), filepath.Join(t.TempDir(), "checkpoints")
	if err := os.Symlink(disk, link); err != nil {
		t.Fatal(err)
	}
	save(t, Folder(link), "step-7", 1, 300)
	if found, err := Folder(link).Names(t.Context(), "step-"); err != nil || len(found) != 1 {
		t.Errorf("checkpoints %q behind a link (%v)", found, err)
	}
}
