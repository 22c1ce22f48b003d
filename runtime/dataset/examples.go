package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// exampleFile is a series of files with one tf.train.Example for each record.
type exampleFiles struct {
	paths        []string
	image, label string // names of the features
	in           *messages
	features     map[string]*feature
}

// exampleSurvey is what a first reading of a split finds out.
type exampleSurvey struct {
	records int64
	values  int  // of a record
	pixels  bool // all values are whole numbers from 0 to 255
	classes int
	numbers int // of a target of numbers; 0: the labels are classes
}

// exampleSplit is one split of such files.
type exampleSplit struct {
	*exampleFiles
	about Info
}

func openExamples(ctx context.Context, from spec.Origin) (opened, error) {
	var o spec.Example
	if from.Example != nil {
		o = *from.Example
	}
	if o.Image == "" {
		o.Image = "image"
	}
	if o.Label == "" {
		o.Label = "label"
	}
	switch {
	case o.Image == o.Label:
		return opened{}, fmt.Errorf("example image and label are both %q: want two features", o.Image)
	case o.Type != "" && o.Type != "u8" && o.Type != "f32":
		return opened{}, fmt.Errorf("example type %q: want \"u8\", \"f32\" or nothing", o.Type)
	}
	var splits [2]*exampleSplit
	var found [2]exampleSurvey
	for i, split := range []Split{Train, Test} {
		paths, err := listExamples(from.Path, split)
		if err != nil {
			return opened{}, err
		}
		found[i] = exampleSurvey{pixels: true}
		if i == 1 {
			found[1].values, found[1].numbers = found[0].values, found[0].numbers
		}
		if err := found[i].read(ctx, newExampleFiles(paths, o)); err != nil {
			return opened{}, err
		}
		if found[i].records == 0 {
			return opened{}, fmt.Errorf("%s: the files of the %s split have no records", paths[0], split)
		}
		splits[i] = &exampleSplit{exampleFiles: newExampleFiles(paths, o)}
	}
	about, err := found[0].describe(o, found[0].pixels && found[1].pixels)
	if err != nil {
		return opened{}, fmt.Errorf("%s: %w", from.Path, err)
	}
	for i, most := range []int64{from.Train, from.Test} {
		splits[i].about = about
		splits[i].about.Records = limit(most, found[i].records)
	}
	return opened{train: splits[0], test: splits[1]}, nil
}

// listExamples returns the files of a split: all files in the folder of its name,
// or the files whose names begin with its name.
func listExamples(folder string, split Split) ([]string, error) {
	prefix := string(split)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("the dataset's folder: %w", err)
	}
	if status, err := os.Stat(filepath.Join(folder, prefix)); err == nil && status.IsDir() {
		folder, prefix = filepath.Join(folder, prefix), ""
		if entries, err = os.ReadDir(folder); err != nil {
			return nil, err
		}
	}
	var paths []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			continue
		}
		path := filepath.Join(folder, name)
		if status, err := os.Stat(path); err != nil {
			return nil, err
		} else if status.Mode().IsRegular() {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no files of the %s split: want a folder %[2]s, or files whose names begin with %[2]s", folder, split)
	}
	return paths, nil
}

func newExampleFiles(paths []string, o spec.Example) *exampleFiles {
	return &exampleFiles{
		paths: paths, image: o.Image, label: o.Label,
		features: map[string]*feature{o.Image: new(feature), o.Label: new(feature)},
	}
}

// next reads the features of the next record, or returns io.EOF.
func (f *exampleFiles) next() (image, label *feature, err error) {
	for len(f.paths) > 0 {
		if f.in == nil {
			if f.in, err = openMessages(f.paths[0]); err != nil {
				return nil, nil, err
			}
		}
		text, err := f.in.read()
		if errors.Is(err, io.EOF) {
			f.close() // it was only read
			f.paths, f.in = f.paths[1:], nil
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if err := parseExample(text, f.features); err != nil {
			return nil, nil, f.errorf("%w", err)
		}
		return f.features[f.image], f.features[f.label], nil
	}
	return nil, nil, io.EOF
}

// errorf returns an error about the last record, or about its chunk, where the
// chunk is damaged.
func (f *exampleFiles) errorf(format string, args ...any) error {
	if f.in.chunk != nil && errors.Is(f.in.chunk.check(), errSum) {
		return f.in.chunkError(errSum)
	}
	return fmt.Errorf("%s: record %d: %w", f.in.path, f.in.next-1, fmt.Errorf(format, args...))
}

func (f *exampleFiles) close() error {
	if f.in == nil {
		return nil
	}
	return f.in.close()
}

// read reads all records. values and numbers are of the training split, or
// zero.
func (s *exampleSurvey) read(ctx context.Context, files *exampleFiles) error {
	defer files.close()
	first := s.values == 0
	for ; ; s.records++ {
		if s.records%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		image, label, err := files.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if first && s.records == 0 {
			s.values = image.len()
			if label.kind == floatFeature {
				s.numbers = label.len()
			}
		}
		if err := s.add(image, label, files); err != nil {
			return files.errorf("%w", err)
		}
	}
}

// add checks one record.
func (s *exampleSurvey) add(image, label *feature, files *exampleFiles) error {
	if image.kind == bytesFeature && isEncoded(image.text) {
		return fmt.Errorf("feature %q is a PNG or JPEG file: want its values, decoded, or the pictures in folders (format images)",
			files.image)
	}
	if n := image.len(); n == 0 || n != s.values {
		return fmt.Errorf("feature %q has %d values, and has %d in the first record: want as many, at least one",
			files.image, n, s.values)
	}
	if err := image.check(files.image); err != nil {
		return err
	}
	for i := 0; s.pixels && i < image.len(); i++ {
		v := image.value(i)
		s.pixels = v == math.Trunc(v) && v >= 0 && v <= 255
	}
	if s.numbers > 0 {
		if label.kind != floatFeature || label.len() != s.numbers {
			return fmt.Errorf("feature %q has %d %s: want %d floats, as in the first record",
				files.label, label.len(), label.kind, s.numbers)
		}
		return label.check(files.label)
	}
	if label.kind != intFeature || label.len() != 1 || label.ints[0] < 0 || label.ints[0] >= maxClasses {
		return fmt.Errorf("feature %q is not one class: want an integer from 0 to %d, or floats in all records",
			files.label, maxClasses-1)
	}
	s.classes = max(s.classes, int(label.ints[0])+1)
	return nil
}

// isEncoded reports whether bytes are a picture's file.
func isEncoded(text []byte) bool {
	return bytes.HasPrefix(text, []byte("\x89PNG\r\n")) || bytes.HasPrefix(text, []byte("\xff\xd8\xff"))
}

// pictureShapes is the default shapes by the number of values: of the pictures
// of MNIST and CIFAR.
var pictureShapes = map[int][]int{28 * 28: {28, 28}, 32 * 32 * 3: {32, 32, 3}}

func (s exampleSurvey) describe(o spec.Example, pixels bool) (Info, error) {
	shape := o.Shape
	if len(shape) == 0 {
		shape = pictureShapes[s.values]
	}
	about, err := describeValues(shape, o.Type, s.values, pixels)
	about.Classes = s.classes
	if s.numbers > 0 {
		about.Classes, about.Target = 0, Target{Type: model.F32, Shape: []int{s.numbers}}
	}
	return about, err
}

func (s *exampleSplit) info() Info { return s.about }

func (s *exampleSplit) fill(ctx context.Context, features, labels []byte) error {
	size, target := s.about.FeatureBytes(), s.about.TargetBytes()
	for i := range len(labels) / target {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		path := s.paths
		image, label, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%s: it has become shorter while it was read", path[len(path)-1])
		case err != nil:
			return err
		case image.len()*s.about.Type.Size() != size || max(1, label.len()*4) != target || s.about.Classes > 0 && len(label.ints) == 0:
			return s.errorf("it has changed while it was read")
		}
		s.put(image, features[i*size:])
		if s.about.Classes > 0 {
			binary.LittleEndian.PutUint32(labels[i*target:], uint32(label.ints[0]))
			continue
		}
		for j, v := range label.floats {
			binary.LittleEndian.PutUint32(labels[i*target+4*j:], math.Float32bits(v))
		}
	}
	return nil
}

// put writes the values of a record.
func (s *exampleSplit) put(image *feature, out []byte) {
	for i := range image.len() {
		if s.about.Type == model.U8 {
			out[i] = byte(image.value(i))
		} else {
			binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(float32(image.value(i))))
		}
	}
}

// finish has nothing to check: the first reading saw all files.
func (s *exampleSplit) finish(context.Context) error { return nil }
