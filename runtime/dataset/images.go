package dataset

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// imageSplit is one split of pictures where each class has a folder.
type imageSplit struct {
	*album
	about    Info
	next     int
	decoders []decoder
}

// openImages lists the pictures of both splits and reads their headers. The
// folders of the training split settle the classes, its first picture the size.
func openImages(ctx context.Context, from spec.Origin) (opened, error) {
	var albums [2]*album
	for i, split := range []Split{Train, Test} {
		a, err := openAlbum(ctx, from.Path, split)
		if err != nil {
			if i == 1 {
				albums[0].close()
			}
			return opened{}, err
		}
		albums[i] = a
	}
	o, err := newImageSplits(ctx, from, albums[0], albums[1])
	if err != nil {
		albums[0].close()
		albums[1].close()
	}
	return o, err
}

func newImageSplits(ctx context.Context, from spec.Origin, train, test *album) (opened, error) {
	for _, a := range []*album{train, test} {
		if len(a.pictures) == 0 {
			return opened{}, fmt.Errorf("%s has no pictures: want a folder of PNG or JPEG files for each class", a.path)
		}
	}
	classes := train.classes()
	if len(classes) == 1 {
		return opened{}, fmt.Errorf("%s has the pictures of one class, %q: want a folder for each of at least two", train.path, classes[0])
	}
	for _, name := range test.classes() {
		if _, ok := slices.BinarySearch(classes, name); !ok {
			return opened{}, fmt.Errorf("%s: class %q has no training pictures: %s has no such folder", test.path, name, train.path)
		}
	}
	var want pictureHead
	for _, a := range []*album{train, test} {
		var err error
		if want, err = a.survey(ctx, want, train); err != nil {
			return opened{}, err
		}
	}
	about := Info{Type: model.U8, Shape: []int{want.height, want.width}, Classes: len(classes)}
	if !want.grey {
		about.Shape = append(about.Shape, want.channels())
	}
	splits := [2]*imageSplit{}
	for i, a := range []*album{train, test} {
		a.number(classes)
		shuffle(a.pictures, from.Seed, uint64(i))
		// Decoders of large pictures are few: each has a picture in memory.
		n := min(max(1, maxPixels/(want.width*want.height)), runtime.GOMAXPROCS(0))
		splits[i] = &imageSplit{album: a, about: about, decoders: make([]decoder, n)}
		for j := range splits[i].decoders {
			splits[i].decoders[j].want = want
		}
	}
	splits[0].about.Records = limit(from.Train, int64(len(train.pictures)))
	splits[1].about.Records = limit(from.Test, int64(len(test.pictures)))
	return opened{train: splits[0], test: splits[1], classes: classes}, nil
}

// survey reads the headers of all pictures: they have one size, which is want's
// unless that is zero, and are grey if all of the training split are.
func (a *album) survey(ctx context.Context, want pictureHead, train *album) (pictureHead, error) {
	grey := want.width == 0 || want.grey
	for i := range a.pictures {
		p := &a.pictures[i]
		if i%256 == 0 && ctx.Err() != nil {
			return want, ctx.Err()
		}
		h, err := a.readHead(p)
		switch {
		case err != nil:
			return want, a.errorf(p, "%w", err)
		case want.width == 0:
			want = h
		case h.width != want.width || h.height != want.height:
			return want, a.errorf(p, "it is %s pixels (width × height), but %s is %s: bring all pictures to one size first",
				h, train.name(&train.pictures[0]), want)
		case a != train && grey && !h.grey:
			return want, a.errorf(p, "it is in colour, but all training pictures are grey: make it grey first")
		}
		grey = grey && h.grey
	}
	if a == train {
		want.grey = grey
	}
	return want, nil
}

func (a *album) readHead(p *picture) (pictureHead, error) {
	file, err := a.open(p)
	if err != nil {
		return pictureHead{}, err
	}
	defer file.Close()
	return readPictureHead(bufio.NewReader(io.LimitReader(file, maxPictureBytes)))
}

// shuffle brings the pictures into a random order that depends on their number,
// the seed and the split only: files come class by class, and neighbouring
// records must be of all classes.
func shuffle(pictures []picture, seed, split uint64) {
	state := model.Mix(seed ^ model.Mix(split+model.Golden))
	for i := len(pictures) - 1; i > 0; i-- {
		state += model.Golden
		j, _ := bits.Mul64(model.Mix(state), uint64(i)+1)
		pictures[i], pictures[j] = pictures[j], pictures[i]
	}
}

func (s *imageSplit) info() Info { return s.about }

// fill decodes pictures on all processors. The first picture with an
// error decides which error is returned, so that each run returns the same.
func (s *imageSplit) fill(ctx context.Context, features, labels []byte) error {
	size, n := s.about.FeatureBytes(), len(labels)/4
	failed := make([]error, len(s.decoders))
	first := make([]int, len(s.decoders))
	var decoding sync.WaitGroup
	for w := range s.decoders {
		decoding.Go(func() {
			// A decoder stops at its first error: those before it are decoded.
			for i := w; i < n && failed[w] == nil && ctx.Err() == nil; i += len(s.decoders) {
				p := &s.pictures[s.next+i]
				binary.LittleEndian.PutUint32(labels[4*i:], uint32(p.label))
				first[w], failed[w] = i, s.decode(&s.decoders[w], p, features[i*size:(i+1)*size])
			}
		})
	}
	decoding.Wait()
	s.next += n
	var err error
	at := n
	for w, e := range failed {
		if e != nil && first[w] < at {
			at, err = first[w], e
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

func (s *imageSplit) decode(d *decoder, p *picture, out []byte) error {
	file, err := s.open(p)
	if err != nil {
		return s.errorf(p, "%w", err)
	}
	defer file.Close()
	if err := d.decode(file, out); err != nil {
		return s.errorf(p, "%w", err)
	}
	return nil
}

// finish has nothing to check: each header was read, and pictures beyond a limit
// are not decoded.
func (s *imageSplit) finish(context.Context) error { return nil }
