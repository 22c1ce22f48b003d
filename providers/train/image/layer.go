package image

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
)

// epoch is the time of everything in an image.
var epoch = time.Unix(0, 0).UTC()

// level is the compression of layers. Another one gives an image another digest, and so may
// another version of the library.
const level = 6

// layer is a v1.Layer that is written from its files whenever it is read, so
// that none of it is ever held in memory.
type layer struct {
	ctx     context.Context // of the build: a read of the layer has none of its own
	entries []entry
	kind    types.MediaType
	digest  v1.Hash
	diff    v1.Hash
	size    int64
}

// newLayer reads all of its files once, for the digests. The entries have their
// sums.
func newLayer(ctx context.Context, entries []entry, kind types.MediaType) (*layer, error) {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	l := &layer{ctx: ctx, entries: entries, kind: kind}
	packed, plain := sha256.New(), sha256.New()
	size := new(counter)
	z, err := gzip.NewWriterLevel(io.MultiWriter(packed, size), level)
	if err != nil {
		return nil, err
	}
	if err := l.write(io.MultiWriter(z, plain)); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	l.digest = v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(packed.Sum(nil))}
	l.diff = v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(plain.Sum(nil))}
	l.size = int64(*size)
	return l, nil
}

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// write writes the layer as a tar file: the same bytes for the same contents.
func (l *layer) write(to io.Writer) error {
	w := tar.NewWriter(to)
	for i := range l.entries {
		e := &l.entries[i]
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Linkname: e.link, Mode: e.mode, ModTime: epoch}
		switch e.kind {
		case tar.TypeReg:
			h.Size = e.size
		case tar.TypeDir:
			h.Name += "/"
		}
		if err := w.WriteHeader(h); err != nil {
			return fmt.Errorf("write layer: %s: %w", e.name, err)
		}
		if e.kind != tar.TypeReg {
			continue
		}
		sum := sha256.New()
		n, err := e.copy(l.ctx, io.MultiWriter(&truncatingWriter{w, e.size}, sum))
		switch {
		case n != e.size && l.ctx.Err() == nil:
			return e.changed()
		case err != nil:
			return fmt.Errorf("write layer: %w", err)
		case hex.EncodeToString(sum.Sum(nil)) != e.sum:
			return e.changed()
		}
	}
	return w.Close()
}

// truncatingWriter drops what a tar writer would refuse as too long: whoever reads counts.
type truncatingWriter struct {
	to   io.Writer
	left int64
}

func (w *truncatingWriter) Write(p []byte) (int, error) {
	n := min(int64(len(p)), w.left)
	w.left -= n
	if _, err := w.to.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Digest is that of the compressed layer.
func (l *layer) Digest() (v1.Hash, error) { return l.digest, nil }

// DiffID is the digest of the uncompressed layer.
func (l *layer) DiffID() (v1.Hash, error) { return l.diff, nil }

// Size is that of the compressed layer, in bytes.
func (l *layer) Size() (int64, error) { return l.size, nil }

// MediaType fits the image's manifest.
func (l *layer) MediaType() (types.MediaType, error) { return l.kind, nil }

// Uncompressed writes the layer to whoever reads.
func (l *layer) Uncompressed() (io.ReadCloser, error) { return stream(l.write), nil }

// Compressed writes the compressed layer to whoever reads.
func (l *layer) Compressed() (io.ReadCloser, error) {
	return stream(func(to io.Writer) error {
		z, err := gzip.NewWriterLevel(to, level)
		if err != nil {
			return err
		}
		if err := l.write(z); err != nil {
			return err
		}
		return z.Close()
	}), nil
}

// stream turns a function that writes into a reader. Closing it ends the
// function and waits for that.
func stream(write func(io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	s := &streaming{PipeReader: r, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		buffered := bufio.NewWriterSize(w, 64<<10)
		err := write(buffered)
		if err == nil {
			err = buffered.Flush()
		}
		w.CloseWithError(err) // nil is the end of the file
	}()
	return s
}

type streaming struct {
	*io.PipeReader
	done chan struct{}
}

// Close ends the writer too.
func (s *streaming) Close() error {
	err := s.PipeReader.Close()
	<-s.done
	return err
}
