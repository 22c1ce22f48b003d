package dataset

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

const (
	digitSide    = 28
	defaultTrain = 10_000
	defaultTest  = 2_000
	maxDigits    = 50_000_000
	// drawBatch is how many digits a goroutine draws at a time.
	drawBatch = 64
)

// digits draws synthetic digits: record i of a split is a function of the
// seed, the split and i alone, so that goroutines may share the work and a
// larger set begins with the smaller one.
type digits struct {
	seed  uint64
	split Split
	about Info
	next  int64
}

func openDigits(from spec.Origin) (opened, error) {
	if from.Path != "" {
		return opened{}, fmt.Errorf("format %q draws its own images: it takes no path", from.Format)
	}
	draw := func(split Split, n, usual int64) (*digits, error) {
		if n == 0 {
			n = usual
		}
		if n > maxDigits {
			return nil, fmt.Errorf("%d synthetic digits: want at most %d", n, maxDigits)
		}
		return &digits{seed: from.Seed, split: split, about: Info{
			Records: n, Type: model.U8, Shape: []int{digitSide, digitSide}, Classes: 10,
		}}, nil
	}
	train, err := draw(Train, from.Train, defaultTrain)
	if err != nil {
		return opened{}, err
	}
	test, err := draw(Test, from.Test, defaultTest)
	return opened{train: train, test: test}, err
}

func (d *digits) info() Info                   { return d.about }
func (d *digits) finish(context.Context) error { return nil }
func (d *digits) close() error                 { return nil }

func (d *digits) fill(ctx context.Context, features, labels []byte) error {
	n := len(labels) / 4
	starts := make(chan int)
	var drawing sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		drawing.Go(func() {
			p := newPen()
			for start := range starts {
				for i := start; i < min(start+drawBatch, n); i++ {
					label := d.draw(p, d.next+int64(i), features[i*digitSide*digitSide:(i+1)*digitSide*digitSide])
					binary.LittleEndian.PutUint32(labels[4*i:], uint32(label))
				}
			}
		})
	}
	for start := 0; start < n && ctx.Err() == nil; start += drawBatch {
		starts <- start
	}
	close(starts)
	drawing.Wait()
	d.next += int64(n)
	return ctx.Err()
}

// draw draws one record and returns its label. The two halves of the
// generator's state keep the splits' seeds disjoint.
func (d *digits) draw(p *pen, record int64, pixels []byte) int {
	stream := uint64(record) << 1
	if d.split == Test {
		stream |= 1
	}
	source := rand.NewPCG(d.seed, stream)
	// Neighbouring states give neighbouring first numbers.
	for range 4 {
		source.Uint64()
	}
	p.random = source
	label := int(source.Uint64() >> 32 % 10)
	p.digit(label, pixels)
	return label
}
