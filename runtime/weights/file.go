package weights

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/stokehq/stoke/runtime/safetensors"
)

// file are weights in a safetensors file.
type file struct {
	in      *os.File
	tensors *safetensors.File
}

func openFile(path string) (*Weights, error) {
	in, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	f := &file{in: in}
	info, err := in.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a file")
	}
	if err == nil {
		f.tensors, err = safetensors.Open(in, info.Size())
	}
	if err != nil {
		in.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	w := &Weights{Path: path, source: f}
	for _, t := range f.tensors.Tensors {
		w.Tensors = append(w.Tensors, Tensor{t.Name, t.Shape, t.Type})
	}
	return w, nil
}

func (f *file) hash(ctx context.Context) (string, error) {
	if _, err := f.in.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	h := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if _, err := io.CopyN(h, f.in, 16<<20); errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), nil
		} else if err != nil {
			return "", err
		}
	}
}

func (f *file) read(ctx context.Context, places map[string]int, take func(at int, values []float32) error) error {
	for _, t := range f.tensors.Tensors {
		at, ok := places[t.Name]
		if !ok {
			continue
		}
		err := f.tensors.Read(t, func(values []float32) error {
			at += len(values)
			return errors.Join(ctx.Err(), take(at-len(values), values))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *file) close() error { return f.in.Close() }

// skips reports whether a pattern names a variable.
func skips(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok && err == nil {
			return true
		}
	}
	return false
}
