package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

const (
	defaultLength    = 128
	defaultTextShare = 0.1
	textClasses      = 1 << 8
)

// textSplit reads a text as records of consecutive bytes: the features are some
// bytes, the target of each is the byte that follows it.
type textSplit struct {
	path  string
	about Info
	in    *input
	first int64 // byte of the file
	begun bool
	last  byte // that was read
}

func openText(ctx context.Context, from spec.Origin) (opened, error) {
	var o spec.Text
	if from.Text != nil {
		o = *from.Text
	}
	if o.Length == 0 {
		o.Length = defaultLength
	}
	if o.TestShare == 0 {
		o.TestShare = defaultTextShare
	}
	if o.Length < 1 || o.Length > maxDimension {
		return opened{}, fmt.Errorf("text length %d: want 1 to %d", o.Length, maxDimension)
	}
	if !(o.TestShare > 0 && o.TestShare < 1) {
		return opened{}, fmt.Errorf("text test_share %v: want above 0 and below 1", o.TestShare)
	}
	paths, err := splitFiles(from.Path, ".txt")
	if err != nil {
		return opened{}, err
	}
	train, err := sizeOf(ctx, paths.train)
	if err != nil {
		return opened{}, err
	}
	first, test := int64(0), int64(float64(train)*o.TestShare)
	if paths.test != "" {
		test, err = sizeOf(ctx, paths.test)
	} else {
		paths.test, train = paths.train, train-test
		first = train
	}
	if err != nil {
		return opened{}, err
	}
	a, err := openTextSplit(paths.train, Train, 0, train, o.Length)
	if err != nil {
		return opened{}, err
	}
	b, err := openTextSplit(paths.test, Test, first, test, o.Length)
	if err != nil {
		a.close()
		return opened{}, err
	}
	a.about.Records, b.about.Records = limit(from.Train, a.about.Records), limit(from.Test, b.about.Records)
	return opened{train: a, test: b}, nil
}

// sizeOf returns the number of bytes of a file, which is decompressed for that.
func sizeOf(ctx context.Context, path string) (int64, error) {
	in, err := openInput(path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	size := in.most
	if !in.exact {
		if size, err = io.Copy(io.Discard, untilDone{ctx, in}); err != nil {
			return 0, fmt.Errorf("%s: %w", path, truncated(err))
		}
	}
	if size == 0 {
		return 0, fmt.Errorf("%s: the file is empty", path)
	}
	return size, nil
}

// untilDone reads until its context is done.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (r untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// openTextSplit opens size bytes of a file, from first on.
func openTextSplit(path string, split Split, first, size int64, length int) (*textSplit, error) {
	if size <= int64(length) {
		return nil, fmt.Errorf("%s: the %s split has %d bytes: want at least %d, one record of %d and the byte that follows it",
			path, split, size, length+1, length)
	}
	in, err := openInput(path)
	if err != nil {
		return nil, err
	}
	return &textSplit{path: path, in: in, first: first, about: Info{
		Records: (size - 1) / int64(length), Type: model.U8, Shape: []int{length},
		Classes: textClasses, Target: Target{Type: model.U8, Shape: []int{length}},
	}}, nil
}

func (s *textSplit) info() Info { return s.about }

func (s *textSplit) fill(ctx context.Context, features, labels []byte) error {
	if err := s.begin(ctx); err != nil {
		return s.shorter(err)
	}
	if _, err := io.ReadFull(untilDone{ctx, s.in}, labels); err != nil {
		return s.shorter(err)
	}
	features[0] = s.last
	copy(features[1:], labels)
	s.last = labels[len(labels)-1]
	return nil
}

// begin reads the bytes before the first target, once.
func (s *textSplit) begin(ctx context.Context) error {
	if s.begun {
		return nil
	}
	s.begun = true
	if _, err := io.CopyN(io.Discard, untilDone{ctx, s.in}, s.first); err != nil {
		return err
	}
	var b [1]byte
	_, err := io.ReadFull(s.in, b[:])
	s.last = b[0]
	return err
}

func (s *textSplit) shorter(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: it has become shorter while it was read", s.path)
	}
	return fmt.Errorf("%s: %w", s.path, err)
}

// finish has nothing to check: the sizes were.
func (s *textSplit) finish(context.Context) error { return nil }

func (s *textSplit) close() error { return s.in.Close() }
