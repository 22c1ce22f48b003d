package worker

import (
	"context"
	"slices"
	"testing"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/workload"
)

// numbered is a source whose records have their number in each byte of
// features and target.
type numbered struct {
	dataset.Source
	about dataset.Info
}

func (s numbered) Info() dataset.Info { return s.about }

func (s numbered) Read(_ context.Context, records []int64, features, labels []byte) error {
	for _, buffer := range [][]byte{features, labels} {
		size := len(buffer) / len(records)
		for i := range buffer {
			buffer[i] = byte(records[i/size])
		}
	}
	return nil
}

func readOf(t *testing.T, about dataset.Info, s spec.Spec, l wire.Lease) *part {
	t.Helper()
	source := numbered{about: about}
	w := &worker{Options: Options{Spec: s, Workload: &workload.Workload{Train: source, Test: source}}, micro: 2, group: 1}
	p := new(part)
	if err := (&session{worker: w}).readPart(t.Context(), &batch{Lease: l}, p, l.Start, l.End); err != nil {
		t.Fatal(err)
	}
	return p
}

// A micro-batch has the targets of its records, of their type and shape, and
// zeros behind the last one.
func TestTargets(t *testing.T) {
	about := dataset.Info{Records: 9, Type: model.U8, Shape: []int{3}, Classes: 2}
	for _, c := range []struct {
		target dataset.Target
		want   model.DType
		shape  []int
		size   int
	}{
		{dataset.Target{}, model.I32, []int{2}, 4},
		{dataset.Target{Type: model.U8, Shape: []int{3}}, model.U8, []int{2, 3}, 3},
		{dataset.Target{Type: model.F32, Shape: []int{1, 2}}, model.F32, []int{2, 1, 2}, 8},
	} {
		about.Target = c.target
		p := readOf(t, about, spec.Default(), wire.Lease{Contribution: spec.Contribution{Start: 1, End: 4, Epoch: 2}})
		order := ledger.NewOrder(0, 2, about.Records, 0)
		var records []byte
		for at := range int64(3) {
			records = append(records, byte(order.RecordAt(1+at)))
		}
		records = append(records, 0)
		if len(p.batches) != 2 {
			t.Fatalf("%d micro-batches", len(p.batches))
		}
		for i, m := range p.batches {
			in := m.Inputs[1]
			var want []byte
			for _, r := range records[2*i : 2*i+2] {
				want = append(want, slices.Repeat([]byte{r}, c.size)...)
			}
			if in.Type != c.want || !slices.Equal(in.Shape, c.shape) || !slices.Equal(in.Data, want) {
				t.Errorf("%v: micro-batch %d has %v of %v: %v, want %v", c.target, i, in.Type, in.Shape, in.Data, want)
			}
		}
	}
}

// Pictures of training records are changed, each in its own way in each epoch;
// test records are not.
func TestAugmentedBatches(t *testing.T) {
	about := dataset.Info{Records: 200, Type: model.U8, Shape: []int{4, 4}, Classes: 2}
	s := spec.Default()
	s.Augmentation.Crop = 3
	augmenter, err := dataset.NewAugmenter(&s, about)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []wire.Lease{
		{Contribution: spec.Contribution{Start: 3, End: 14}},
		{Contribution: spec.Contribution{Start: 3, End: 14, Epoch: 1}},
		{Contribution: spec.Contribution{Start: 3, End: 14}, Evaluate: true},
	} {
		w := &worker{Options: Options{Spec: s, Workload: &workload.Workload{
			Train: numbered{about: about}, Test: numbered{about: about}, Augmenter: augmenter,
		}}, micro: 4, group: 1}
		p := new(part)
		if err := (&session{worker: w}).readPart(t.Context(), &batch{Lease: l}, p, l.Start, l.End); err != nil {
			t.Fatal(err)
		}
		for i, record := range p.records[:11] {
			want := slices.Repeat([]byte{byte(record)}, 16)
			if !l.Evaluate {
				augmenter.Apply(want, l.Epoch, record, nil)
			}
			if got := p.features[16*i : 16*i+16]; !slices.Equal(got, want) {
				t.Errorf("epoch %d, evaluated %v: record %d is %v, want %v", l.Epoch, l.Evaluate, record, got, want)
			}
		}
	}
}

// A batch has whole micro-batches, never of two leaves or more than the replica takes.
func TestBatchesOfMicroBatches(t *testing.T) {
	about := dataset.Info{Records: 100, Type: model.U8, Shape: []int{3}, Classes: 2}
	for _, c := range []struct {
		group, first, leaf, records int
		want                        []int
	}{
		{1, 0, 0, 6, []int{2, 2, 2}},
		{4, 0, 0, 22, []int{8, 8, 6}},
		{4, 0, 3, 14, []int{6, 6, 2}},
		{4, 2, 3, 14, []int{2, 6, 6}},
		{4, 5, 6, 16, []int{2, 8, 4, 2}},
	} {
		p := &part{features: make([]byte, 3*c.records), labels: make([]byte, 4*c.records), records: make([]int64, c.records), weights: make([]float32, c.records)}
		p.slice(about, 2, 1, 1, c.group, c.first, c.leaf)
		var got []int
		for _, b := range p.batches {
			got = append(got, len(b.Weights))
			if len(b.Inputs[0].Data) != 3*len(b.Weights) || len(b.Inputs[1].Data) != 4*len(b.Weights) || b.Inputs[1].Shape[0] != len(b.Weights) {
				t.Errorf("%+v: a batch has %d and %d bytes", c, len(b.Inputs[0].Data), len(b.Inputs[1].Data))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: batches of %v records", c, got)
		}
	}
}

// A leaf is cut into the same batches wherever it lies in a lease.
func TestLeavesAreCutAlike(t *testing.T) {
	about := dataset.Info{Records: 100_000, Type: model.U8, Shape: []int{28, 28}, Classes: 2}
	for _, c := range []struct{ micro, group, leaf int }{{32, 16, 8}, {32, 16, 3}, {64, 16, 40}, {64, 4, 7}, {8, 16, 100}} {
		s := &session{worker: &worker{Options: Options{Spec: spec.Default(), Workload: &workload.Workload{
			Train: numbered{about: about}, Test: numbered{about: about},
		}}, micro: c.micro, group: c.group}}
		b := newBatch()
		leaf := int64(c.leaf * c.micro)
		b.Lease = wire.Lease{Contribution: spec.Contribution{Start: 64, End: 64 + 5*leaf}, Leaf: leaf}
		b.parts = make(chan *part, cap(b.spare))
		go s.read(t.Context(), b)
		var cuts [][]int
		at := int64(0)
		for p := range b.parts {
			if p.err != nil {
				t.Fatal(p.err)
			}
			for _, m := range p.batches {
				if at%leaf == 0 {
					cuts = append(cuts, nil)
				}
				cuts[len(cuts)-1] = append(cuts[len(cuts)-1], len(m.Weights))
				at += int64(len(m.Weights))
			}
			b.spare <- p
		}
		if at != 5*leaf || len(cuts) != 5 {
			t.Fatalf("%+v: %d records in %d leaves", c, at, len(cuts))
		}
		for _, cut := range cuts[1:] {
			if !slices.Equal(cut, cuts[0]) {
				t.Errorf("%+v: leaves are cut into %v", c, cuts)
				break
			}
		}
	}
}
