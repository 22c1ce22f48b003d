package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

func embedded(number protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), message)
}

// exampleOf writes a tf.train.Example: values are []byte, []float32 or []int64.
func exampleOf(features map[string]any) []byte {
	var entries []byte
	for name, values := range features {
		var list, packed []byte
		kind := protowire.Number(bytesFeature)
		switch v := values.(type) {
		case []byte:
			list = embedded(1, v)
		case []float32:
			kind = protowire.Number(floatFeature)
			for _, x := range v {
				packed = protowire.AppendFixed32(packed, math.Float32bits(x))
			}
			list = embedded(1, packed)
		case []int64:
			kind = protowire.Number(intFeature)
			for _, x := range v { // not packed, as proto2 writes it
				list = protowire.AppendVarint(protowire.AppendTag(list, 1, protowire.VarintType), uint64(x))
			}
		}
		entries = append(entries, embedded(1, append(embedded(1, []byte(name)), embedded(2, embedded(kind, list))...))...)
	}
	return embedded(1, entries)
}

// chunkOf writes a chunk of RecordIO.
func chunkOf(compressor uint32, records ...[]byte) []byte {
	var body bytes.Buffer
	w := io.WriteCloser(nopCloser{&body})
	switch compressor {
	case 1:
		w = snappy.NewBufferedWriter(&body)
	case 2:
		w = gzip.NewWriter(&body)
	}
	for _, r := range records {
		w.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(r))))
		w.Write(r)
	}
	w.Close()
	return chunkHead(crc32.ChecksumIEEE(body.Bytes()), compressor, uint32(len(records)), body.Bytes())
}

func chunkHead(sum, compressor, records uint32, body []byte) []byte {
	var b []byte
	for _, n := range []uint32{chunkMagic, sum, compressor, uint32(len(body)), records} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return append(b, body...)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// tfRecords writes a TFRecord file.
func tfRecords(records ...[]byte) []byte {
	var b []byte
	for _, r := range records {
		length := binary.LittleEndian.AppendUint64(nil, uint64(len(r)))
		b = append(b, length...)
		b = binary.LittleEndian.AppendUint32(b, maskedSum(length))
		b = append(b, r...)
		b = binary.LittleEndian.AppendUint32(b, maskedSum(r))
	}
	return b
}

// mnistExample is a record as ElasticDL writes it of MNIST.
func mnistExample(value float32, label int64) []byte {
	pixels := make([]float32, 28*28)
	for i := range pixels {
		pixels[i] = float32(i%200) + value
	}
	return exampleOf(map[string]any{"image": pixels, "label": []int64{label}, "name": []byte("digit")})
}

func TestElasticDLRecords(t *testing.T) {
	for compressor := range uint32(3) {
		dir := folder(t, map[string][]byte{
			"train/data-00000": append(chunkOf(compressor, mnistExample(1, 3), mnistExample(2, 9)), chunkOf(compressor, mnistExample(3, 0))...),
			"train/data-00001": chunkOf(2-compressor, mnistExample(55, 5)),
			"train/.crc":       []byte("x"), "train/_SUCCESS": {},
			"test/data-00000": chunkOf(compressor, mnistExample(7, 7)),
		})
		about, pixels, labels := load(t, spec.Origin{Format: "tf-examples", Path: dir}, Train)
		want := Info{Records: 4, Type: model.U8, Shape: []int{28, 28}, Classes: 10, Hash: about.Hash}
		if diff := cmp.Diff(want, about); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int32{3, 9, 0, 5}, labels); diff != "" {
			t.Error(diff)
		}
		for i, first := range []byte{1, 2, 3, 55} {
			if p := pixels[784*i:]; p[0] != first || p[783] != first+183 {
				t.Errorf("compressor %d: record %d begins with %v", compressor, i, p[:3])
			}
		}
	}
}

func TestTFRecords(t *testing.T) {
	color := func(v byte, label int64) []byte {
		return exampleOf(map[string]any{"raw": bytes.Repeat([]byte{v, v + 1, v + 2}, 32*32), "class": []int64{label}})
	}
	dir := folder(t, map[string][]byte{
		"train-00000-of-00002.tfrecord":  tfRecords(color(1, 1), color(2, 0)),
		"train-00001-of-00002.tfrecord":  tfRecords(color(3, 2)),
		"test-00000.tfrecord.gz":         compress(t, tfRecords(color(4, 2))),
		"validation-00000-of-1.tfrecord": []byte("not read"),
	})
	from := spec.Origin{Format: "tf-examples", Path: dir, Example: &spec.Example{Image: "raw", Label: "class"}}
	about, pixels, labels := load(t, from, Train)
	if about.Type != model.U8 || !cmp.Equal(about.Shape, []int{32, 32, 3}) || about.Classes != 3 || !cmp.Equal(labels, []int32{1, 0, 2}) {
		t.Errorf("info %+v, labels %v", about, labels)
	}
	if !bytes.Equal(pixels[3*1024:3*1024+4], []byte{2, 3, 4, 2}) {
		t.Errorf("record 1 begins with %v", pixels[3*1024:3*1024+4])
	}
	from.Example.Shape, from.Example.Type, from.Train = []int{3, 1024}, "f32", 1
	about, pixels, _ = load(t, from, Train)
	if about.Records != 1 || about.Type != model.F32 || !cmp.Equal(about.Shape, []int{3, 1024}) || !bytes.Equal(pixels[4:8], []byte{0, 0, 0, 0x40}) {
		t.Errorf("info %+v, the second value is %x", about, pixels[4:8])
	}
}

// Labels that are floats are numbers.
func TestExamplesOfNumbers(t *testing.T) {
	record := func(x, y float32) []byte {
		return exampleOf(map[string]any{"image": []int64{int64(x), -2}, "label": []float32{y, 0.5}})
	}
	dir := folder(t, map[string][]byte{"train": tfRecords(record(1, -1), record(3, 2)), "test.rio": chunkOf(1, record(5, 6))})
	about, features, targets := loadTargets(t, spec.Origin{Format: "tf-examples", Path: dir}, Train)
	want := Info{Records: 2, Type: model.F32, Shape: []int{2}, Target: Target{model.F32, []int{2}}, Hash: about.Hash}
	if diff := cmp.Diff(want, about); diff != "" {
		t.Error(diff)
	}
	floats := func(b []byte) (v []float32) {
		for i := 0; i < len(b); i += 4 {
			v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(b[i:])))
		}
		return v
	}
	if !cmp.Equal(floats(features), []float32{1, -2, 3, -2}) || !cmp.Equal(floats(targets), []float32{-1, 0.5, 2, 0.5}) {
		t.Errorf("features %v, targets %v", floats(features), floats(targets))
	}
}

func examplesWith(t testing.TB, train []byte) spec.Origin {
	t.Helper()
	good := exampleOf(map[string]any{"image": []float32{1, 2}, "label": []int64{0}})
	dir := folder(t, map[string][]byte{"train.tfrecord": append([]byte{}, train...), "test.tfrecord": tfRecords(good)})
	return spec.Origin{Format: "tf-examples", Path: dir}
}

func TestExampleRefusals(t *testing.T) {
	example := func(image, label any) []byte { return exampleOf(map[string]any{"image": image, "label": label}) }
	good, second := example([]float32{1, 2}, []int64{0}), example([]float32{3, 4}, []int64{1})
	chunk, record := chunkOf(0, good, second), tfRecords(good, second)
	packed := chunkOf(1, good, second)
	changed := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 1
		return b
	}
	raw := func(records uint32, body []byte) []byte { return chunkHead(crc32.ChecksumIEEE(body), 0, records, body) }
	one := append(binary.LittleEndian.AppendUint32(nil, uint32(len(good))), good...)
	place := fmt.Sprintf("record 1: at byte %d: ", 12+len(good)+4)
	text := embedded(1, []byte("ab"))
	twice := embedded(1, embedded(1, append(embedded(1, []byte("image")), embedded(2, embedded(1, append(text, text...)))...)))
	long := binary.LittleEndian.AppendUint64(nil, maxMessage+1)
	for name, c := range map[string]struct {
		train []byte
		want  string
	}{
		"empty":               {[]byte{}, "train.tfrecord: the file is empty"},
		"text":                {[]byte("hello, world"), "it starts with 68656c6c6f2c20776f726c64: want a chunk"},
		"chunk sum":           {changed(chunk, 30), "record 1: chunk at byte 0: it fails its checksum"},
		"second chunk's sum":  {append(bytes.Clone(chunk), changed(chunk, len(chunk)-1)...), fmt.Sprintf("record 4: chunk at byte %d: it fails its checksum", len(chunk))},
		"snappy":              {changed(packed, 40), "it fails its checksum"},
		"chunk cut":           {chunk[:len(chunk)-1], "chunk at byte 0: the data ends early"},
		"chunk header cut":    {append(bytes.Clone(chunk), chunk[:7]...), fmt.Sprintf("chunk at byte %d: the data ends early", len(chunk))},
		"chunk header":        {append(bytes.Clone(chunk), make([]byte, 20)...), "it starts with 00000000, want 04030201"},
		"compressor":          {chunkHead(0, 7, 1, one), "chunk at byte 0: compressor 7: want 0"},
		"more than it claims": {raw(1, append(bytes.Clone(one), one...)), "its body has more bytes than the records"},
		"less than it claims": {raw(3, one), "record 1: chunk at byte 0: its body ends before the records"},
		"length in a chunk":   {raw(1, []byte{255, 255, 255, 255}), "its length is 4294967295 bytes: want at most"},
		"no chunks' records":  {chunkHead(0, 0, 0, nil), "the files of the train split have no records"},
		"length sum":          {changed(record, 12+len(good)+4), place + "its length fails its checksum"},
		"record sum":          {changed(record, len(record)-1), place + "it fails its checksum"},
		"record cut":          {record[:len(record)-1], place + "the data ends early"},
		"long record":         {binary.LittleEndian.AppendUint32(long, maskedSum(long[:8])), "record 0: at byte 0: its length is 16777217 bytes"},
		"no example":          {tfRecords([]byte("hello")), "record 0: it is not a tf.train.Example"},
		"no feature":          {tfRecords(exampleOf(map[string]any{"image": []float32{1}, "y": []int64{1}})), `it has no values of a feature "label": it has "image", "y"`},
		"class missing":       {tfRecords(good, example([]float32{1, 2}, []int64{})), `record 1: feature "label" is not one class`},
		"negative class":      {tfRecords(good, example([]float32{1, 2}, []int64{-1})), `record 1: feature "label" is not one class`},
		"text as class":       {tfRecords(example([]float32{1, 2}, []byte("cat"))), `feature "label" is not one class`},
		"two classes":         {tfRecords(example([]float32{1, 2}, []int64{1, 2})), `feature "label" is not one class`},
		"numbers and classes": {tfRecords(example([]float32{1, 2}, []float32{1}), good), `record 1: feature "label" has 1 integers: want 1 floats`},
		"other size":          {tfRecords(good, example([]float32{1}, []int64{1})), `record 1: feature "image" has 1 values, and has 2 in the first record`},
		"no values":           {tfRecords(example([]float32{}, []int64{1})), `feature "image" has 0 values`},
		"not finite":          {tfRecords(example([]float32{1, float32(math.Inf(1))}, []int64{1})), `feature "image", value 1: +Inf is not a number`},
		"large integer":       {tfRecords(example([]int64{1, 1<<24 + 1}, []int64{1})), `value 1: 1.6777217e+07 is not a number of 32 bits`},
		"two texts":           {tfRecords(twice), `feature "image": it has several values of bytes: want one`},
		"encoded picture":     {tfRecords(example([]byte("\xff\xd8\xff\xe0JFIF"), []int64{1})), "is a PNG or JPEG file"},
		"one class":           {tfRecords(good, good), "1 classes"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Inspect(context.Background(), examplesWith(t, c.train)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error with %q, got %v", c.want, err)
			}
		})
	}
	for want, from := range map[string]spec.Origin{
		"has no files of the train split": {Path: folder(t, map[string][]byte{"data": record})},
		"has no files of the test split":  {Path: folder(t, map[string][]byte{"train/a": record, "train/b": record})},
		"the dataset's folder":            {Path: filepath.Join(t.TempDir(), "nothing")},
		`example type "u9"`:               {Path: t.TempDir(), Example: &spec.Example{Type: "u9"}},
		`are both "a"`:                    {Path: t.TempDir(), Example: &spec.Example{Image: "a", Label: "a"}},
		"a record has 2 values without its label, but shape [3] has 3": {
			Path: examplesWith(t, record).Path, Example: &spec.Example{Shape: []int{3}}},
		`the options say type "u8"`: {Path: examplesWith(t, tfRecords(example([]float32{1, 0.5}, []int64{1}))).Path, Example: &spec.Example{Type: "u8"}},
	} {
		from.Format = "tf-examples"
		if _, err := Inspect(context.Background(), from); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func FuzzExamples(f *testing.F) {
	good := exampleOf(map[string]any{"image": []float32{1, 2}, "label": []int64{1}})
	for compressor := range uint32(3) {
		f.Add(chunkOf(compressor, good, good))
	}
	f.Add(tfRecords(good, good))
	f.Add(chunkHead(0, 1, math.MaxUint32, []byte("hello")))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Inspect(context.Background(), examplesWith(t, text))
		if err == nil && m.Train.Records > int64(len(text)*deflateRatio) {
			t.Errorf("%d bytes gave %d records", len(text), m.Train.Records)
		}
	})
}

// FuzzExample reads messages without a checksum around them.
func FuzzExample(f *testing.F) {
	f.Add(exampleOf(map[string]any{"image": []float32{1, 2}, "label": []int64{1}}))
	f.Add(exampleOf(map[string]any{"image": []byte("abc"), "label": []float32{1}}))
	f.Add(mnistExample(1, 2))
	f.Fuzz(func(t *testing.T, text []byte) {
		image, label := new(feature), new(feature)
		if parseExample(text, map[string]*feature{"image": image, "label": label}) == nil && image.len()+label.len() > len(text) {
			t.Errorf("%d bytes gave %d values", len(text), image.len()+label.len())
		}
	})
}
