package dataset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// idxNames are the four files of MNIST and its siblings, without what may
// vary in their names.
var idxNames = map[Split][2]string{
	Train: {"train-images?idx3-ubyte", "train-labels?idx1-ubyte"},
	Test:  {"t10k-images?idx3-ubyte", "t10k-labels?idx1-ubyte"},
}

// idxFile is an IDX file of unsigned bytes: a header with dimensions, then
// the elements of the last dimension first. See
// http://yann.lecun.com/exdb/mnist/.
type idxFile struct {
	path  string
	shape []int64
	body  io.Reader
	file  io.Closer
}

func (f *idxFile) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", f.path, fmt.Errorf(format, args...))
}

// openIDXFile reads the header and checks what it claims against the size of
// the file, so that nothing is ever allocated on its word.
func openIDXFile(path string, dimensions int) (*idxFile, error) {
	in, err := openInput(path)
	if err != nil {
		return nil, err
	}
	f := &idxFile{path: path, body: in, file: in}
	if err := f.header(dimensions, in.most, in.exact); err != nil {
		in.Close()
		return nil, err
	}
	return f, nil
}

// header reads the header of a file that has most bytes, or, where exact is
// false (compressed), at most that many.
func (f *idxFile) header(dimensions int, most int64, exact bool) error {
	var magic [4]byte
	if _, err := io.ReadFull(f.body, magic[:]); err != nil {
		return f.errorf("read header: %w", truncated(err))
	}
	if magic[0] != 0 || magic[1] != 0 || magic[2] != 8 || int(magic[3]) != dimensions {
		return f.errorf("it starts with %x, want 00 00 08 %02x: an IDX file of bytes with %d dimensions", magic, dimensions, dimensions)
	}
	claimed := int64(4 + 4*dimensions)
	elements := int64(1)
	for range dimensions {
		var b [4]byte
		if _, err := io.ReadFull(f.body, b[:]); err != nil {
			return f.errorf("read header: %w", truncated(err))
		}
		d := int64(binary.BigEndian.Uint32(b[:]))
		if d == 0 {
			return f.errorf("its header says %v × 0: it has no elements", f.shape)
		}
		if elements > most/d {
			return f.errorf("its header claims %v × %d elements, more than a file of this size can hold: it is truncated "+
				"or corrupt", f.shape, d)
		}
		elements *= d
		f.shape = append(f.shape, d)
	}
	claimed += elements
	if exact && claimed != most || claimed > most {
		return f.errorf("its header claims %v elements, so %d bytes, but it has %d", f.shape, claimed, most)
	}
	return nil
}

// end checks that nothing follows the elements.
func (f *idxFile) end() error {
	var b [1]byte
	switch _, err := io.ReadFull(f.body, b[:]); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return f.errorf("after its elements: %w", err)
	}
	return f.errorf("it continues after the %v elements that its header claims", f.shape)
}

// truncated turns an early end into words.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the data ends early: the file is truncated")
	}
	return err
}

// idxSplit is a pair of an images file and one of their labels. The labels
// were read once before, for the number of classes; they are not kept: what a
// compressed file holds may be a thousand times its size.
type idxSplit struct {
	images, labels *idxFile
	about          Info
	next           int64
	buffer         []byte
}

func openIDX(ctx context.Context, from spec.Origin) (opened, error) {
	train, err := openIDXSplit(ctx, from.Path, Train)
	if err != nil {
		return opened{}, err
	}
	test, err := openIDXSplit(ctx, from.Path, Test)
	if err != nil {
		train.close()
		return opened{}, err
	}
	o := opened{train: train, test: test}
	if !slices.Equal(train.about.Shape, test.about.Shape) {
		o.close()
		return opened{}, fmt.Errorf("%s: training images are %v, test images %v", from.Path, train.about.Shape, test.about.Shape)
	}
	test.about.Classes = train.about.Classes
	train.about.Records = limit(from.Train, train.about.Records)
	test.about.Records = limit(from.Test, test.about.Records)
	return o, nil
}

func openIDXSplit(ctx context.Context, folder string, split Split) (*idxSplit, error) {
	var paths [2]string
	for i, name := range idxNames[split] {
		var err error
		if paths[i], err = findIDX(folder, name); err != nil {
			return nil, err
		}
	}
	s := &idxSplit{buffer: make([]byte, 1<<16)}
	classes, err := s.survey(ctx, paths[1])
	if err != nil {
		return nil, err
	}
	labels := s.labels
	if s.images, err = openIDXFile(paths[0], 3); err != nil {
		labels.file.Close()
		return nil, err
	}
	shape := s.images.shape
	if shape[0] != labels.shape[0] {
		s.close()
		return nil, s.images.errorf("it has %d images, but %s has %d labels", shape[0], paths[1], labels.shape[0])
	}
	if shape[1] > maxDimension || shape[2] > maxDimension {
		s.close()
		return nil, s.images.errorf("images of %d × %d are too large", shape[1], shape[2])
	}
	s.about = Info{
		Records: shape[0], Type: model.U8,
		Shape: []int{int(shape[1]), int(shape[2])}, Classes: classes,
	}
	return s, ctx.Err()
}

// survey reads all labels, says how many classes they are of, and opens their
// file again.
func (s *idxSplit) survey(ctx context.Context, path string) (classes int, err error) {
	labels, err := openIDXFile(path, 1)
	if err != nil {
		return 0, err
	}
	defer labels.file.Close()
	for left := labels.shape[0]; left > 0; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := io.ReadFull(labels.body, s.buffer[:min(left, int64(len(s.buffer)))])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, labels.errorf("its header claims %d labels, but it has %d: it is truncated", labels.shape[0], labels.shape[0]-left+int64(n))
		}
		if err != nil {
			return 0, labels.errorf("read labels: %w", err)
		}
		classes = max(classes, int(slices.Max(s.buffer[:n]))+1)
		left -= int64(n)
	}
	if err := labels.end(); err != nil {
		return 0, err
	}
	s.labels, err = openIDXFile(path, 1)
	return classes, err
}

// findIDX finds a file by its usual spellings.
func findIDX(folder, name string) (string, error) {
	for _, separator := range []string{"-", "."} {
		for _, end := range []string{"", ".gz"} {
			path := filepath.Join(folder, strings.Replace(name, "?", separator, 1)+end)
			if status, err := os.Stat(path); err == nil && status.Mode().IsRegular() {
				return path, nil
			}
		}
	}
	if status, err := os.Stat(folder); err != nil {
		return "", fmt.Errorf("the dataset's folder: %w", err)
	} else if !status.IsDir() {
		return "", fmt.Errorf("%s is not a folder: want the folder with the four IDX files", folder)
	}
	return "", fmt.Errorf("%s has no file %s (or with .gz)", folder, strings.Replace(name, "?", "-", 1))
}

func (s *idxSplit) info() Info { return s.about }

func (s *idxSplit) fill(_ context.Context, features, labels []byte) error {
	if n, err := io.ReadFull(s.images.body, features); err != nil {
		return s.images.errorf("its header claims %d images, but it ends in image %d: %w", s.images.shape[0], s.next+int64(n/s.about.FeatureBytes()), truncated(err))
	}
	for len(labels) > 0 {
		n := min(len(labels)/4, len(s.buffer))
		if _, err := io.ReadFull(s.labels.body, s.buffer[:n]); err != nil {
			return s.labels.errorf("it has become shorter while it was read: %w", truncated(err))
		}
		for i, l := range s.buffer[:n] {
			binary.LittleEndian.PutUint32(labels[4*i:], uint32(l))
		}
		labels, s.next = labels[4*n:], s.next+int64(n)
	}
	return nil
}

// finish reads what a limit left, so that a damaged file is always found.
func (s *idxSplit) finish(ctx context.Context) error {
	rest := (s.images.shape[0] - s.next) * int64(s.about.FeatureBytes())
	for rest > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(s.images.body, s.buffer[:min(rest, int64(len(s.buffer)))])
		if err != nil {
			return s.images.errorf("its header claims %d images: %w", s.images.shape[0], truncated(err))
		}
		rest -= int64(n)
	}
	return s.images.end()
}

func (s *idxSplit) close() error {
	return errors.Join(s.images.file.Close(), s.labels.file.Close())
}
