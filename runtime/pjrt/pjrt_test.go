package pjrt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/pjrt/pjrttest"
)

// double is a loaded plugin double.
type double struct {
	*Plugin
	path string
}

// openDouble loads a new double with a fault, or "" for none.
func openDouble(t testing.TB, fault string) (double, error) {
	t.Helper()
	t.Setenv("STOKE_DOUBLE", fault)
	path := pjrttest.Build(t)
	p, err := Open(path)
	return double{p, path}, err
}

// startClient starts a client of a double. When the test ends all must be
// closed, and no error of the plugin's left.
func startClient(t testing.TB, o Options) *Client {
	t.Helper()
	d, err := openDouble(t, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		count, err := loadSymbol(d.path, "double_errors")
		if err != nil {
			t.Fatal(err)
		}
		if n := invoke(count, nil); n != 0 {
			t.Errorf("%d errors of the plugin's were not freed", n)
		}
	})
	return c
}

func floats(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// must returns a value, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// wants checks that an error has a text in it.
func wants(t testing.TB, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got error %v, want one with %q", err, text)
	}
}

func closeAll(t testing.TB, list ...interface{ Close() error }) {
	t.Helper()
	for _, c := range list {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAProgramRuns(t *testing.T) {
	c := startClient(t, Options{MemoryFraction: 0.5, VisibleDevices: []int64{3}})
	e := must(c.Compile("double:both ", nil))(t)
	a := must(c.Upload(F32, []int64{2, 2}, floats(1, 2, 3, 4)))(t)
	b, done, err := c.BeginUpload(F32, []int64{2, 2}, floats(10, 20, 30, 40))
	if err != nil {
		t.Fatal(err)
	}
	out := must(e.Execute(a, b))(t)
	if err := done.Wait(); err != nil {
		t.Error(err)
	}
	for i, want := range [][]byte{floats(11, 22, 33, 44), floats(-9, -18, -27, -36)} {
		got := make([]byte, 16)
		if err := out[i].Download(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("output %d is %v, %v, want %v", i, got, err, want)
		}
	}
	closeAll(t, a, b, out[0], out[1], e)
}

func TestOptionsArrive(t *testing.T) {
	c := startClient(t, Options{MemoryFraction: 0.5, VisibleDevices: []int64{3, 5}})
	name, version, err := c.Platform()
	if name != "double" || version != "double 1: preallocate=0 memory_fraction=0.5 visible_devices=[3][5]" || err != nil {
		t.Errorf("got %q, %q, %v", name, version, err)
	}
	if kind, err := c.Kind(); kind != "Double 1" || err != nil {
		t.Errorf("got %q, %v", kind, err)
	}
	if used, limit, err := c.Memory(); used != 0 || limit != 32<<20 || err != nil {
		t.Errorf("got %d of %d, %v", used, limit, err)
	}
	attributes, err := c.plugin.Attributes()
	if err != nil || attributes["xla_version"] != int64(2) || attributes["libraries"] != false ||
		!slices.Equal(attributes["stablehlo_current_version"].([]int64), []int64{1, 20, 0}) {
		t.Errorf("got %v, %v", attributes, err)
	}
	if major, minor := c.plugin.Version(); major != 0 || minor != 115 {
		t.Errorf("got version %d.%d", major, minor)
	}

	flags := map[string]any{"text": "x", "yes": true, "no": false, "int": -1, "int64": int64(300), "float": 0.5}
	e := must(c.Compile("double:options ", flags))(t)
	data := must(e.Serialize())(t)
	loaded := must(c.Deserialize(data))(t)
	want := "\x1a\x0f\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x01\x28\x01" + "\x20\x01" + // device -1, 1 replica, 1 partition; portable
		"\x3a\x12\x0a\x05float\x12\x09\x21\x00\x00\x00\x00\x00\x00\xe0\x3f" +
		"\x3a\x12\x0a\x03int\x12\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" +
		"\x3a\x0c\x0a\x05int64\x12\x03\x18\xac\x02" +
		"\x3a\x08\x0a\x02no\x12\x02\x10\x00" +
		"\x3a\x0b\x0a\x04text\x12\x03\x0a\x01x" +
		"\x3a\x09\x0a\x03yes\x12\x02\x10\x01"
	for _, e := range []*Executable{e, loaded} {
		out := must(e.Execute())(t)
		got := make([]byte, 2048)
		if err := out[0].Download(got); err != nil || strings.TrimRight(string(got), "\x00") != strings.TrimRight(want, "\x00") {
			t.Errorf("got %q, %v, want %q", strings.TrimRight(string(got), "\x00"), err, want)
		}
		closeAll(t, out[0])
	}
	if m, err := loaded.Memory(); err != nil || m != (ProgramMemory{1, 2, 3, 4, 5}) {
		t.Errorf("got %v, %v", m, err)
	}
	closeAll(t, e, loaded)

	_, err = c.Compile("double:options ", map[string]any{"x": float32(1)})
	wants(t, err, "the flag x is a float32")
	data[0] ^= 1
	_, err = c.Deserialize(data)
	wants(t, err, "load a compiled program: INTERNAL: Could not deserialize")
}

func TestErrorsHaveCodes(t *testing.T) {
	c := startClient(t, Options{MemoryFraction: 0.25}) // 16 MiB
	_, err := c.Compile("not a program", nil)
	wants(t, err, "compile: UNKNOWN: MLIR: error: unexpected text: not a program")
	add, exhaust := must(c.Compile("double:add ", nil))(t), must(c.Compile("double:exhaust ", nil))(t)
	a := must(c.Upload(F32, []int64{1}, floats(1)))(t)
	_, err = add.Execute(a)
	var failed *Error
	if !errors.As(err, &failed) || failed.Code != InvalidArgument {
		t.Errorf("got %v, want code %d", err, InvalidArgument)
	}
	other := startClient(t, Options{})
	foreign := must(other.Upload(F32, []int64{1}, floats(1)))(t)
	_, err = add.Execute(a, foreign)
	wants(t, err, "argument 1 of the run: it belongs to another client")
	closeAll(t, foreign)
	_, err = add.Execute(a, nil)
	wants(t, err, "argument 1 of the run: it is nil")

	// Out of memory of a run is an error of its outputs, and of all that is
	// computed from them.
	out := must(exhaust.Execute(a))(t)
	sum := must(add.Execute(a, out[0]))(t)
	called := make(chan error, 1)
	if err := must(sum[0].Ready())(t).OnReady(func(err error) { called <- err }); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{out[0].Wait(), sum[0].Wait(), sum[0].Download(make([]byte, 4)), <-called} {
		if !IsExhausted(err) || !strings.Contains(err.Error(), "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4.16GiB.") {
			t.Errorf("got %v, want that the memory is exhausted", err)
		}
	}
	_, err = c.Upload(U8, []int64{17 << 20}, make([]byte, 17<<20))
	if !IsExhausted(err) {
		t.Errorf("got %v, want that the memory is exhausted", err)
	}
	for _, message := range []string{
		"Failed to determine best cudnn convolution algorithm for: %c. Original error: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.",
		"Failed to load in-memory CUBIN (compiled for a different GPU?).: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
	} {
		if !IsExhausted(fmt.Errorf("compile: %w", &Error{Code: Internal, Message: message})) {
			t.Errorf("%s: want that the memory is exhausted", message)
		}
	}
	if IsExhausted(nil) || IsExhausted(failed) {
		t.Error("another error is taken for exhausted memory")
	}
	closeAll(t, a, out[0], sum[0], add, exhaust)
}

func TestDonation(t *testing.T) {
	c := startClient(t, Options{})
	e := must(c.Compile("double:addto ", nil))(t)
	sum, one := must(c.Upload(F32, []int64{1}, floats(0)))(t), must(c.Upload(F32, []int64{1}, floats(1)))(t)
	for range 100 {
		out := must(e.Execute(sum, one))(t)
		if donated := must(sum.Donated())(t); !donated {
			t.Fatal("the argument is not donated")
		}
		wants(t, sum.Wait(), "deleted or donated")
		_, err := e.Execute(sum, one)
		wants(t, err, "deleted or donated")
		closeAll(t, sum)
		sum = out[0]
	}
	got := make([]byte, 4)
	if err := sum.Download(got); err != nil || !slices.Equal(got, floats(100)) {
		t.Errorf("got %v, %v", got, err)
	}
	if must(one.Donated())(t) || must(sum.Donated())(t) {
		t.Error("another buffer is donated")
	}
	closeAll(t, sum, one, e)
}
