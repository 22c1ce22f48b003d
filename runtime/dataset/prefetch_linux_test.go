package dataset

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stokehq/stoke/runtime/spec"
)

// Records that are prefetched come into the page cache, more than the kernel reads
// of one call too; the others stay on the disk.
func TestPrefetch(t *testing.T) {
	const records = 15000
	text, dir := filepath.Join(t.TempDir(), "text"), filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(text, bytes.Repeat([]byte("0123456789abcdef"), 500*(records+100)/16), 0o600); err != nil {
		t.Fatal(err)
	}
	from := spec.Origin{Format: spec.FormatText, Path: text, Train: records, Text: &spec.Text{Length: 500, TestShare: 0.001}}
	if _, err := Prepare(t.Context(), from, dir, nil); err != nil {
		t.Fatal(err)
	}
	s, err := openFile(filepath.Join(dir, "train.rio"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.mapped != nil {
		s.mapped.short = false
	}
	if err := s.open.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(s.open.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	const start, end = 3000, 12001
	record, page := int64(storedRecord(s.about)), int64(os.Getpagesize())
	first, last := (s.first+start*record)/page, (s.first+end*record-1)/page
	before := cached(t, s.open)
	if before[first] || before[last] {
		t.Skip("the file system keeps all pages in memory")
	}
	s.Prefetch(start, end)
	late := time.After(time.Minute)
	for at := first; at <= last; {
		if pages := cached(t, s.open); pages[at] {
			at++
			continue
		}
		select {
		case <-time.After(time.Millisecond): // the kernel reads meanwhile
		case <-late:
			t.Fatalf("page %d of %d to %d is not in memory", at, first, last)
		}
	}
	if pages := cached(t, s.open); pages[first/2] || pages[(last+int64(len(pages)))/2] {
		t.Error("records were read that were not prefetched")
	}
	for _, none := range [][2]int64{{-5, 0}, {records, 2 * records}, {7, 7}, {9, 3}} {
		s.Prefetch(none[0], none[1])
	}
}

// cached returns which pages of a file are in the page cache.
func cached(t *testing.T, f *os.File) []bool {
	t.Helper()
	status, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	all, err := unix.Mmap(int(f.Fd()), 0, int(status.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(all)
	in := make([]byte, (len(all)+os.Getpagesize()-1)/os.Getpagesize())
	if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&all[0])), uintptr(len(all)), uintptr(unsafe.Pointer(&in[0]))); e != 0 {
		t.Fatal(e)
	}
	pages := make([]bool, len(in))
	for i, b := range in {
		pages[i] = b&1 == 1
	}
	return pages
}
