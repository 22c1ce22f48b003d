package pjrt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

// litter allocates memory of a size, so that memory which was collected too
// early is written again.
func litter(size int) {
	runtime.GC()
	for range 64 {
		runtime.KeepAlive(bytes.Repeat([]byte{0xaa}, size))
	}
}

// TestCopiesKeepTheirMemory drops all that a copy needs while it runs: the
// double copies late, from a thread.
func TestCopiesKeepTheirMemory(t *testing.T) {
	c := startClient(t, Options{})
	const size = 64 << 10
	want := slices.Repeat([]byte{7}, size)
	for range 20 {
		b, done := func() (*Buffer, *Event) {
			b, done, err := c.BeginUpload(U8, []int64{size}, slices.Clone(want))
			if err != nil {
				t.Fatal(err)
			}
			return b, done
		}()
		ready := make(chan error, 1)
		if err := done.OnReady(func(err error) { ready <- err }); err != nil {
			t.Fatal(err)
		}
		done = nil
		litter(size)
		if err := <-ready; err != nil {
			t.Fatal(err)
		}
		got := make([]byte, size)
		down := must(b.BeginDownload(got))(t)
		if err := down.Wait(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatal("the upload read memory that was collected")
		}
		func() { // a download that the caller forgets
			if _, err := b.BeginDownload(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}()
		fresh := [][]byte{}
		runtime.GC()
		for range 8 {
			fresh = append(fresh, make([]byte, size))
		}
		if err := b.Download(got); err != nil { // the device does one after the other
			t.Fatal(err)
		}
		for _, f := range fresh {
			if slices.Max(f) != 0 {
				t.Fatal("the download wrote to memory that was collected")
			}
		}
		for o := range c.open {
			if o.kind == "event" {
				closeAll(t, &Event{o})
			}
		}
		closeAll(t, b)
	}
}

// Close of an event whose copy reads Go's memory waits for the copy.
func TestCloseOfACopyWaits(t *testing.T) {
	c := startClient(t, Options{})
	data := floats(1, 2, 3)
	b, done, err := c.BeginUpload(F32, []int64{3}, data)
	if err != nil {
		t.Fatal(err)
	}
	closeAll(t, done)
	clear(data)
	got := make([]byte, 12)
	if err := b.Download(got); err != nil || !slices.Equal(got, floats(1, 2, 3)) {
		t.Errorf("got %v, %v", got, err)
	}
	closeAll(t, b)

	// The result of a download that nobody wants is no error of Close.
	e := must(c.Compile("double:exhaust ", nil))(t)
	a := must(c.Upload(F32, []int64{1}, floats(1)))(t)
	out := must(e.Execute(a))(t)
	closeAll(t, must(out[0].BeginDownload(got))(t), out[0], a, e)
}

func TestUploadReadsDuringTheCall(t *testing.T) {
	c := startClient(t, Options{})
	data := floats(1, 2, 3)
	b := must(c.Upload(F32, []int64{3}, data))(t)
	clear(data)
	got := make([]byte, 20) // longer than the buffer
	if err := b.Download(got); err != nil || !slices.Equal(got[:12], floats(1, 2, 3)) {
		t.Errorf("got %v, %v", got, err)
	}
	wants(t, b.Download(make([]byte, 8)), "INVALID_ARGUMENT: the host memory has 8 bytes, and the buffer 12")
	wants(t, b.Download(nil), "no memory is given")
	closeAll(t, b)
}

func TestSizesAreChecked(t *testing.T) {
	c := startClient(t, Options{})
	for _, test := range []struct {
		t    Type
		dims []int64
		n    int
		want string
	}{
		{F32, []int64{3}, 8, "has 12 bytes, and 8 are given"},
		{F32, []int64{2, 2}, 17, "has 16 bytes, and 17 are given"},
		{F32, nil, 8, "has 4 bytes, and 8 are given"},
		{U8, []int64{-1}, 0, "does not fit"},
		{U8, []int64{1 << 40, 1 << 40}, 100, "does not fit 100 bytes"},
		{U8, []int64{4}, 0, "has 4 bytes, and 0 are given"},
		{99, []int64{1}, 4, "elements of type 99"},
	} {
		_, err := c.Upload(test.t, test.dims, make([]byte, test.n))
		wants(t, err, test.want)
	}
	for _, dims := range [][]int64{nil, {1}, {1, 1}, {0}, {0, 5}, {5, 0}} {
		n := 4
		if slices.Contains(dims, 0) {
			n = 0
		}
		b, err := c.Upload(F32, dims, make([]byte, n))
		if err != nil {
			t.Errorf("%v: %v", dims, err)
			continue
		}
		closeAll(t, b)
	}
}

// TestFreedMemoryIsUnmapped frees more memory than a process without it may have.
func TestFreedMemoryIsUnmapped(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("pinned memory is for Linux only")
	}
	c := startClient(t, Options{})
	mapped := func() (pages int) {
		t.Helper()
		text, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(string(text), &pages); err != nil {
			t.Fatal(err)
		}
		return pages
	}
	before := mapped()
	for range 40 {
		if err := c.FreePinned(must(c.Pinned(256 << 20))(t)); err != nil {
			t.Fatal(err)
		}
	}
	must(c.Pinned(1 << 30))(t) // freed with the client
	closeAll(t, c)
	if grown := (mapped() - before) * os.Getpagesize(); grown > 768<<20 {
		t.Errorf("%d bytes stay mapped", grown)
	}
}

func TestPinnedMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("pinned memory is for Linux only")
	}
	c := startClient(t, Options{})
	arena := must(c.Pinned(10000))(t)
	if len(arena) != 10000 || slices.Max(arena) != 0 {
		t.Errorf("got %d bytes, of at most %d", len(arena), slices.Max(arena))
	}
	copy(arena, floats(1, 2))
	b, done, err := c.BeginUpload(F32, []int64{2}, arena[:8])
	if err != nil {
		t.Fatal(err)
	}
	wants(t, c.FreePinned(arena), "a copy uses the memory")
	if err := errors.Join(done.Wait(), b.Download(arena[16:24])); err != nil || !slices.Equal(arena[16:24], floats(1, 2)) {
		t.Errorf("got %v, %v", arena[16:24], err)
	}
	closeAll(t, b)

	wants(t, c.Pin(arena), "pinned already")
	wants(t, c.Unpin(arena), "not pinned")
	other := must(c.Pinned(1))(t)
	if err := c.FreePinned(other); err != nil {
		t.Error(err)
	}
	wants(t, c.FreePinned(other), "not pinned")
	wants(t, c.Pin(nil), "no memory")
	wants(t, c.Unpin(nil), "no memory")
	_, err = c.Pinned(0)
	wants(t, err, "0 bytes")

	mapped := must(mapMemory(4096))(t)
	defer syscall.Munmap(mapped)
	if err := c.Pin(mapped); err != nil {
		t.Error(err)
	}
	wants(t, c.Close(), "pinned region × 1")
	if err := c.Unpin(mapped); err != nil {
		t.Error(err)
	}
	wants(t, c.Unpin(mapped), "not pinned")
	for range 70 { // the double's device knows 64 regions
		if _, err = c.Pinned(1); err != nil {
			break
		}
	}
	if !IsExhausted(err) {
		t.Errorf("got %v, want that no more regions can be pinned", err)
	}
	closeAll(t, c) // frees arena
}
