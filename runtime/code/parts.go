package code

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/stokehq/stoke/runtime/durable"
)

// PartBytes is the most bytes that a part of a snapshot has.
const PartBytes = 768 << 10

// PartName returns the name of a part, counted from 0. Names sort in the order of parts.
func PartName(n int) string { return fmt.Sprintf("part-%03d", n) }

// Parts packs a snapshot, compresses it, and returns it in parts by name, for places
// that take small objects only.
func (s *Snapshot) Parts(ctx context.Context, dir string) (map[string][]byte, error) {
	var all bytes.Buffer
	compressed := gzip.NewWriter(&all)
	if err := s.Pack(ctx, dir, compressed); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, fmt.Errorf("compress code: %w", err)
	}
	parts := make(map[string][]byte)
	for part := range slices.Chunk(all.Bytes(), PartBytes) {
		parts[PartName(len(parts))] = part
	}
	return parts, nil
}

// Join writes the archive of a snapshot from the parts of it in a folder, unless the
// archive exists. An archive that does not have the hash is an error.
func Join(ctx context.Context, dir, hash, to string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	var parts []io.Reader
	for n := 0; ; n++ {
		file, err := os.Open(filepath.Join(dir, PartName(n)))
		if errors.Is(err, os.ErrNotExist) && n > 0 {
			break
		}
		if err != nil {
			return fmt.Errorf("join code: %w", err)
		}
		defer file.Close()
		parts = append(parts, file)
	}
	plain, err := gzip.NewReader(io.MultiReader(parts...))
	if err != nil {
		return fmt.Errorf("join code: %w", err)
	}
	draft, err := durable.Create(to)
	if err != nil {
		return fmt.Errorf("join code: %w", err)
	}
	defer draft.Abort()
	check, err := os.MkdirTemp(filepath.Dir(to), ".check-*")
	if err != nil {
		return fmt.Errorf("join code: %w", err)
	}
	defer os.RemoveAll(check)
	stream := io.TeeReader(plain, draft)
	if _, err := Unpack(ctx, stream, filepath.Join(check, "code"), hash); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(stream, MaxBytes)); err != nil { // the padding of the archive
		return fmt.Errorf("join code: %w", err)
	}
	if err := draft.Commit(); err != nil {
		return fmt.Errorf("join code: %w", err)
	}
	return nil
}
