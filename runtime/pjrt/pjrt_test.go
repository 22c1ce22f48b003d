package pjrt

import (
	"encoding/binary"
	"errors"
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
