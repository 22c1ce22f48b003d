package dataset

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/stokehq/stoke/runtime/spec"
)

// blockBytes is about how much of a split is in memory at a time.
const blockBytes = 1 << 22

const (
	maxNames    = 1 << 17 // bytes of all names of classes in a manifest
	maxManifest = 1 << 20 // bytes: JSON may write one byte as six
)

// Inspect checks everything that Prepare would, without writing: it reads (or
// draws) every record. The manifest is the one that Prepare will return.
func Inspect(ctx context.Context, from spec.Origin) (Manifest, error) {
	return run(ctx, from, nil, func(Split, Info) (writer, error) { return discard{}, nil })
}

// Prepare reads an origin and writes dir/train.rio, dir/test.rio and
// dir/manifest.json: all of them, or nothing. dir is made; an earlier prepared
// dataset there is replaced, anything else is left alone and an error. A
// preparation that was killed leaves a hidden folder beside dir, which the
// next one reuses. progress, when not nil, hears of records done.
func Prepare(ctx context.Context, from spec.Origin, dir string, progress func(done, total int64)) (Manifest, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Manifest{}, fmt.Errorf("prepare dataset: %w", err)
	}
	if err := replaceable(dir); err != nil {
		return Manifest{}, fmt.Errorf("prepare dataset: %w", err)
	}
	work, err := claim(dir)
	if err != nil {
		return Manifest{}, fmt.Errorf("prepare dataset: %w", err)
	}
	defer work.Close()
	m, err := run(ctx, from, progress, func(split Split, i Info) (writer, error) {
		return create(filepath.Join(work.Name(), string(split)+".rio"), i)
	})
	if err == nil {
		err = publish(work, dir, m)
	}
	if err != nil {
		os.RemoveAll(work.Name())
		return Manifest{}, fmt.Errorf("prepare dataset: %w", err)
	}
	return m, nil
}

// ReadManifest reads the manifest of a prepared folder.
func ReadManifest(dir string) (Manifest, error) {
	name := filepath.Join(dir, "manifest.json")
	f, err := os.Open(name)
	if err != nil {
		return Manifest{}, fmt.Errorf("read manifest: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest))
	if err != nil {
		return Manifest{}, fmt.Errorf("read manifest: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return Manifest{}, fmt.Errorf("read manifest %s: %w", name, err)
	}
	if err := errors.Join(m.Train.validate(), m.Test.validate()); err != nil {
		return Manifest{}, fmt.Errorf("read manifest %s: %w", name, err)
	}
	if n := len(m.ClassNames); n != 0 && n != m.Train.Classes {
		return Manifest{}, fmt.Errorf("read manifest %s: it names %d classes of %d: it was edited", name, n, m.Train.Classes)
	}
	if m.Hash != m.sum() {
		return Manifest{}, fmt.Errorf("read manifest %s: its hash does not match its splits: it was edited", name)
	}
	return m, nil
}

func (m Manifest) sum() string {
	h := sha256.Sum256([]byte(m.Train.Hash + "\n" + m.Test.Hash + "\n"))
	return hashText(h[:])
}

// limitNames returns the names of the classes, or none where they are so long
// that a manifest would no longer be a short text.
func limitNames(names []string) []string {
	size := 0
	for _, name := range names {
		size += len(name)
	}
	if size > maxNames {
		return nil
	}
	return names
}

// writer takes one split's records.
type writer interface {
	write(features, labels []byte) error
	finish(sum []byte) error
	close() error
}

type discard struct{}

func (discard) write(_, _ []byte) error { return nil }
func (discard) finish([]byte) error     { return nil }
func (discard) close() error            { return nil }

// run takes both splits from the origin to writers.
func run(ctx context.Context, from spec.Origin, progress func(done, total int64), to func(Split, Info) (writer, error)) (Manifest, error) {
	o, err := openOrigin(ctx, from)
	if err != nil {
		return Manifest{}, err
	}
	defer o.close()
	m := Manifest{Format: from.Format, ClassNames: limitNames(o.classes)}
	train, test := o.train.info().Records, o.test.info().Records
	report := func(base int64) func(int64) {
		return func(done int64) {
			if progress != nil {
				progress(base+done, train+test)
			}
		}
	}
	if m.Train, err = transfer(ctx, o.train, Train, to, report(0)); err != nil {
		return Manifest{}, err
	}
	if m.Test, err = transfer(ctx, o.test, Test, to, report(train)); err != nil {
		return Manifest{}, err
	}
	m.Hash = m.sum()
	return m, nil
}

func transfer(ctx context.Context, s stream, split Split, to func(Split, Info) (writer, error), report func(int64)) (Info, error) {
	about := s.info()
	w, err := to(split, about)
	if err != nil {
		return Info{}, err
	}
	defer w.close()
	size, label := int64(about.FeatureBytes()), int64(about.TargetBytes())
	most := size // the hash is over blocks: with labels of 4 bytes they keep their size
	if !about.Target.IsZero() {
		most = max(size, label)
	}
	block := min(max(blockBytes/most, 1), about.Records)
	features, labels := make([]byte, block*size), make([]byte, block*label)
	sum := newContentHash(about)
	for done := int64(0); done < about.Records; {
		if err := ctx.Err(); err != nil {
			return Info{}, err
		}
		n := min(block, about.Records-done)
		f, l := features[:n*size], labels[:n*label]
		if err := s.fill(ctx, f, l); err != nil {
			return Info{}, err
		}
		if err := checkLabels(l, done, about, split); err != nil {
			return Info{}, err
		}
		sum.add(f, l)
		if err := w.write(f, l); err != nil {
			return Info{}, err
		}
		done += n
		report(done)
	}
	if err := s.finish(ctx); err != nil {
		return Info{}, err
	}
	about.Hash = sum.text()
	return about, w.finish(sum.sum.Sum(nil))
}

// file writes one stored split.
type file struct {
	f      *os.File
	w      *bufio.Writer
	about  Info
	number int64
	body   []byte
}

func create(name string, i Info) (*file, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	w := &file{f: f, w: bufio.NewWriterSize(f, 1<<20), about: i, body: make([]byte, i.TargetBytes()+i.FeatureBytes())}
	_, err = w.w.Write(head(i))
	return w, err
}

func (w *file) write(features, labels []byte) error {
	size, label := w.about.FeatureBytes(), w.about.TargetBytes()
	for i := range len(labels) / label {
		copy(w.body, labels[i*label:(i+1)*label])
		copy(w.body[label:], features[i*size:(i+1)*size])
		// bufio keeps its first error: finish's Flush reports it.
		w.w.Write(w.body)
		w.w.Write(binary.LittleEndian.AppendUint32(w.w.AvailableBuffer(), checksum(w.number, w.body)))
		w.number++
	}
	return nil
}

func (w *file) finish(sum []byte) error {
	w.w.Write(foot(w.number, sum))
	if err := w.w.Flush(); err != nil {
		return err
	}
	return w.f.Sync()
}

func (w *file) close() error { return w.f.Close() }

// replaceable refuses a dir that holds something else than a prepared dataset.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case "train.rio", "test.rio", "manifest.json":
		default:
			return fmt.Errorf("%s exists and holds %s, so it is not a prepared dataset: choose another folder or empty it", dir, e.Name())
		}
	}
	return nil
}

// claim makes and locks an empty folder next to dir, where the dataset is
// written. Closing the returned folder releases the lock.
func claim(dir string) (*os.File, error) {
	parent, base := filepath.Split(dir)
	if base == "" {
		return nil, fmt.Errorf("%s is not a folder that can be made", dir)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	name := filepath.Join(parent, "."+base+".preparing")
	for {
		if err := os.Mkdir(name, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		f, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // the one before has just published it
		}
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			f.Close()
			return nil, fmt.Errorf("%s is being prepared by another process: wait for it to end", dir)
		}
		// Locked, but is it still the one with that name?
		mine, err1 := f.Stat()
		there, err2 := os.Stat(name)
		if err1 != nil || err2 != nil || !os.SameFile(mine, there) {
			f.Close()
			continue
		}
		entries, err := os.ReadDir(name)
		for _, e := range entries {
			err = errors.Join(err, os.RemoveAll(filepath.Join(name, e.Name())))
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		return f, nil
	}
}

// publish writes the manifest and gives the folder its name.
func publish(work *os.File, dir string, m Manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(work.Name(), "manifest.json"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close(), work.Sync()); err != nil {
		return err
	}
	for _, name := range []string{"manifest.json", "train.rio", "test.rio"} {
		// Without its manifest a folder is no longer a dataset; what is left
		// of it is replaceable, should this be interrupted here.
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(work.Name(), dir); err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}
