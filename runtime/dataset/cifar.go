package dataset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// cifarKind is one of the two sets of https://www.cs.toronto.edu/~kriz/cifar.html.
// A record is its labels, then the planes of red, green and blue. The last label
// is used.
type cifarKind struct {
	name    string
	folder  string // of the archive
	files   map[Split][]string
	labels  int // bytes of a record before its planes
	classes int
	names   string // file with the name of each class
}

var cifarKinds = []cifarKind{{
	name: "CIFAR-10", folder: "cifar-10-batches-bin", labels: 1, classes: 10, names: "batches.meta.txt",
	files: map[Split][]string{
		Train: {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
		Test:  {"test_batch.bin"},
	},
}, {
	name: "CIFAR-100", folder: "cifar-100-binary", labels: 2, classes: 100, names: "fine_label_names.txt",
	files: map[Split][]string{Train: {"train.bin"}, Test: {"test.bin"}},
}}

const (
	cifarSide  = 32
	cifarPlane = cifarSide * cifarSide
)

func (k cifarKind) recordBytes() int { return k.labels + 3*cifarPlane }

// findCIFAR returns the set whose files are in a folder, or in the archive's
// folder in it.
func findCIFAR(folder string) (cifarKind, string, error) {
	if status, err := os.Stat(folder); err != nil {
		return cifarKind{}, "", fmt.Errorf("the dataset's folder: %w", err)
	} else if !status.IsDir() {
		return cifarKind{}, "", fmt.Errorf("%s is not a folder: unpack the archive, and give the folder with its files", folder)
	}
	var found []cifarKind
	var places []string
	for _, k := range cifarKinds {
		for _, place := range []string{folder, filepath.Join(folder, k.folder)} {
			if _, err := os.Stat(filepath.Join(place, k.files[Train][0])); err == nil {
				found, places = append(found, k), append(places, place)
			}
		}
	}
	switch len(found) {
	case 0:
		return cifarKind{}, "", fmt.Errorf("%s has no file data_batch_1.bin (CIFAR-10) or train.bin (CIFAR-100): "+
			"want the files of the binary version, unpacked", folder)
	case 1:
		return found[0], places[0], nil
	}
	return cifarKind{}, "", fmt.Errorf("%s has %s in %s and %s in %s: give a folder with one of them",
		folder, found[0].name, places[0], found[1].name, places[1])
}

func openCIFAR(_ context.Context, from spec.Origin) (opened, error) {
	kind, folder, err := findCIFAR(from.Path)
	if err != nil {
		return opened{}, err
	}
	train, err := newCIFARSplit(kind, folder, Train, from.Train)
	if err != nil {
		return opened{}, err
	}
	test, err := newCIFARSplit(kind, folder, Test, from.Test)
	if err != nil {
		return opened{}, err
	}
	return opened{train: train, test: test, classes: kind.classNames(folder)}, nil
}

// classNames reads the names of the classes, or none where their file is missing
// or does not have one for each class.
func (k cifarKind) classNames(folder string) []string {
	in, err := openInput(filepath.Join(folder, k.names))
	if err != nil {
		return nil
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxNames))
	names := strings.Fields(string(text))
	if err != nil || len(names) != k.classes {
		return nil
	}
	return names
}

// cifarSplit reads the files of one split, one after the other.
type cifarSplit struct {
	kind  cifarKind
	about Info
	files []string
	in    *input // of the first file, nil before it is opened
	next  int64  // record of that file
	body  []byte
}

// newCIFARSplit checks that each file has whole records.
func newCIFARSplit(kind cifarKind, folder string, split Split, most int64) (*cifarSplit, error) {
	s := &cifarSplit{kind: kind, body: make([]byte, kind.recordBytes())}
	s.about = Info{Type: model.U8, Shape: []int{cifarSide, cifarSide, 3}, Classes: kind.classes}
	for _, name := range kind.files[split] {
		file := filepath.Join(folder, name)
		in, err := openInput(file)
		if err != nil {
			return nil, fmt.Errorf("%s needs the file %s: %w", kind.name, name, err)
		}
		in.Close()
		size := int64(kind.recordBytes())
		if in.most == 0 || in.most%size != 0 {
			return nil, fmt.Errorf("%s has %d bytes: want a multiple of %d, the size of a record of %s: it is truncated or another file",
				file, in.most, size, kind.name)
		}
		s.files, s.about.Records = append(s.files, file), s.about.Records+in.most/size
	}
	s.about.Records = limit(most, s.about.Records)
	return s, nil
}

func (s *cifarSplit) info() Info { return s.about }

func (s *cifarSplit) fill(ctx context.Context, features, labels []byte) error {
	size := s.about.FeatureBytes()
	for i := range len(labels) / 4 {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.read(); err != nil {
			return err
		}
		label := s.body[s.kind.labels-1]
		if int(label) >= s.kind.classes {
			return fmt.Errorf("%s: record %d has label %d: want 0 to %d, the classes of %s",
				s.files[0], s.next-1, label, s.kind.classes-1, s.kind.name)
		}
		binary.LittleEndian.PutUint32(labels[4*i:], uint32(label))
		planes, out := s.body[s.kind.labels:], features[i*size:(i+1)*size]
		for p := range cifarPlane {
			out[3*p], out[3*p+1], out[3*p+2] = planes[p], planes[cifarPlane+p], planes[2*cifarPlane+p]
		}
	}
	return nil
}

// read reads the next record into body.
func (s *cifarSplit) read() error {
	for len(s.files) > 0 {
		if s.in == nil {
			in, err := openInput(s.files[0])
			if err != nil {
				return err
			}
			s.in, s.next = in, 0
		}
		_, err := io.ReadFull(s.in, s.body)
		switch {
		case err == nil:
			s.next++
			return nil
		case !errors.Is(err, io.EOF):
			return fmt.Errorf("%s: record %d: %w", s.files[0], s.next, truncated(err))
		}
		s.close() // it was only read
		s.files, s.in = s.files[1:], nil
	}
	return errors.New("the files of CIFAR have become shorter while they were read")
}

// finish has nothing to check: the sizes of all files were.
func (s *cifarSplit) finish(context.Context) error { return nil }

func (s *cifarSplit) close() error {
	if s.in == nil {
		return nil
	}
	return s.in.Close()
}
