//go:build cgo && linux

package main

import (
	"io"
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the processor time of this process.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// newPipe returns a pipe that ends when the second one is closed.
func newPipe(t *testing.T) (io.Reader, io.Closer) {
	t.Helper()
	in, out := io.Pipe()
	t.Cleanup(func() { out.Close() })
	return in, out
}
