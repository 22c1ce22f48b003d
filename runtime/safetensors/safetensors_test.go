package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// file returns a file with a header and so many bytes behind it.
func file(header string, data ...byte) []byte {
	text := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	return append(text, data...)
}

func open(text []byte) (*File, error) { return Open(bytes.NewReader(text), int64(len(text))) }

// all returns the values of a tensor.
func all(t *testing.T, f *File, of Tensor) (values []float32) {
	t.Helper()
	if err := f.Read(of, func(v []float32) error { values = append(values, v...); return nil }); err != nil {
		t.Fatal(err)
	}
	return values
}

func TestWrittenIsRead(t *testing.T) {
	tensors := []Tensor{
		{Name: "conv1/weight", Shape: []int{3, 1, 2}}, {Name: "a \"name\" <with> ü", Shape: []int{}}, {Name: "empty", Shape: []int{0, 4}},
		{Name: "big", Shape: []int{chunk + 7}},
	}
	metadata := map[string]string{"model": `{"name":"x"}`, "step": "7"}
	want := make([]float32, 6+1+chunk+7)
	for i := range want {
		want[i] = float32(i) / 8
	}
	want[0], want[1] = float32(math.Inf(1)), float32(math.Copysign(0, -1))
	var out bytes.Buffer
	w, err := NewWriter(&out, tensors, metadata)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(want[:3]), w.Write(want[3:])); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Close(); err != nil || n != int64(out.Len()) {
		t.Fatalf("%d bytes of %d, %v", n, out.Len(), err)
	}
	if w.Write(want[:1]) == nil {
		t.Error("a value too many is written")
	}
	f, err := open(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(metadata, f.Metadata); diff != "" {
		t.Error(diff)
	}
	if f.data%8 != 0 {
		t.Errorf("values begin at byte %d", f.data)
	}
	var got []float32
	for i, is := range f.Tensors {
		if is.Name != tensors[i].Name || is.Type != "F32" || !cmp.Equal(is.Shape, tensors[i].Shape) {
			t.Errorf("tensor %+v, want %+v", is, tensors[i])
		}
		got = append(got, all(t, f, is)...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWriterMissesValues(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, []Tensor{{Name: "a", Shape: []int{2}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write([]float32{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err == nil {
		t.Error("a file without one of its values is whole")
	}
	if _, err := NewWriter(&out, []Tensor{{Name: "a", Shape: []int{2}}, {Name: "a", Shape: []int{1}}}, nil); err == nil {
		t.Error("two tensors have one name")
	}
}

func TestReadTypes(t *testing.T) {
	f, err := open(file(`{"h":{"dtype":"F16","shape":[7],"data_offsets":[24,38]},"d":{"dtype":"F64","shape":[],"data_offsets":[0,8]},`+
		`"i":{"dtype":"I64","shape":[1],"data_offsets":[8,16]},"b":{"dtype":"BF16","shape":[2,2],"data_offsets":[16,24]}}   `,
		0, 0, 0, 0, 0, 0, 0xf8, 0x3f, // 1.5
		1, 0, 0, 0, 0, 0, 0, 0,
		0x80, 0x3f, 0x00, 0xc0, 0, 0, 0x80, 0x7f, // 1 -2 0 Inf
		0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00, 0xff, 0x03, 0x00, 0x80, 0x00, 0xfc, 0xff, 0x7b)) // 1 -2 2^-24 largest subnormal -0 -Inf 65504
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]float32{
		"d": {1.5}, "b": {1, -2, 0, float32(math.Inf(1))},
		"h": {1, -2, 0x1p-24, 1023 * 0x1p-24, float32(math.Copysign(0, -1)), float32(math.Inf(-1)), 65504},
	}
	for _, is := range f.Tensors {
		if is.Name == "i" {
			err := f.Read(is, func([]float32) error { return nil })
			if err == nil || !strings.Contains(err.Error(), "type I64") {
				t.Errorf("integers are read: %v", err)
			}
			continue
		}
		got := all(t, f, is)
		if diff := cmp.Diff(want[is.Name], got); diff != "" {
			t.Errorf("%s: %s", is.Name, diff)
		}
	}
	if nan := half(0x7e00); !math.IsNaN(float64(nan)) {
		t.Errorf("NaN is %v", nan)
	}
}

func TestHostileFiles(t *testing.T) {
	const good = `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	four := []byte{0, 0, 0, 0}
	if _, err := open(file(good, four...)); err != nil {
		t.Fatal(err)
	}
	with := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	for name, tt := range map[string]struct {
		text []byte
		want string
	}{
		"nothing":            {nil, "0 bytes"},
		"short":              {[]byte{1, 2, 3}, "3 bytes"},
		"header too long":    {append(binary.LittleEndian.AppendUint64(nil, 1<<40), good...), "more than 100000000"},
		"header beyond file": {append(binary.LittleEndian.AppendUint64(nil, 1<<20), good...), "more than the file"},
		"no object":          {file(`[]`), "not a JSON object"},
		"cut off":            {file(good[:len(good)-1], four...), "not a JSON object"},
		"not UTF-8":          {file("{\"a\xff\":1}"), "not UTF-8"},
		"goes on":            {file(good+"{}", four...), "more than one"},
		"unknown type":       {file(with("F32", "F3"), four...), `type "F3" is unknown`},
		"no type":            {file(with(`"dtype":"F32",`, ""), four...), "lacks dtype"},
		"no shape":           {file(with(`"shape":[1],`, ""), four...), "lacks dtype, shape"},
		"one offset":         {file(with("[0,4]", "[0]"), four...), "two data_offsets"},
		"unknown member":     {file(with(`"shape"`, `"strides":1,"shape"`), four...), "strides"},
		"fraction":           {file(with("[1]", "[1.5]"), four...), `tensor "a"`},
		"negative shape":     {file(with("[1]", "[-1]"), four...), "shape is [-1]"},
		"overflowing shape":  {file(with("[1]", "[4294967296,4294967296]"), four...), "its shape is"},
		"negative offset":    {file(with("[0,4]", "[-4,0]"), four...), "data_offsets are"},
		"backward offsets":   {file(with("[0,4]", "[4,0]"), four...), "data_offsets are"},
		"other size":         {file(with("[1]", "[2]"), four...), "has 8 bytes"},
		"a hole at first":    {file(with("[0,4]", "[4,8]"), 0, 0, 0, 0, 0, 0, 0, 0), "begins at byte 4"},
		"an overlap":         {file(good[:len(good)-1]+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, four...), "begins at byte 0"},
		"bytes missing":      {file(good, 0, 0, 0), "the file has 3"},
		"bytes left":         {file(good, 0, 0, 0, 0, 0), "the file has 5"},
		"twice":              {file(good[:len(good)-1]+`,"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, four...), `has "a" twice`},
		"metadata numbers":   {file(with("{", `{"__metadata__":{"a":1},`), four...), "metadata"},
	} {
		_, err := open(tt.text)
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// A file that is accepted has the tensors that its bytes are, and is the same once
// it is written again.
func FuzzOpen(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"__metadata__":{"x":"y"}}`, 0, 0, 128, 63))
	f.Add(file(`{"a":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]},"b":{"dtype":"BOOL","shape":[0],"data_offsets":[4,4]}}  `, 0, 60, 0, 192))
	f.Fuzz(func(t *testing.T, text []byte) {
		is, err := open(text)
		if err != nil {
			return
		}
		covered := is.data
		var floats []Tensor
		var values []float32
		for _, of := range is.Tensors {
			covered += of.to - of.from
			n := 0
			err := is.Read(of, func(v []float32) error { n += len(v); values = append(values, v...); return nil })
			if decoderOf(of.Type) != nil {
				if err != nil || n != of.Len() {
					t.Fatalf("%+v: %d values, %v", of, n, err)
				}
				floats = append(floats, of)
			}
		}
		if covered != int64(len(text)) {
			t.Fatalf("%d bytes of %d", covered, len(text))
		}
		var out bytes.Buffer
		w, err := NewWriter(&out, floats, is.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(values); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := open(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		var got []float32
		for _, of := range again.Tensors {
			got = append(got, all(t, again, of)...)
		}
		for i := range values {
			if math.Float32bits(values[i]) != math.Float32bits(got[i]) {
				t.Fatalf("value %d is %v, was %v", i, got[i], values[i])
			}
		}
	})
}
