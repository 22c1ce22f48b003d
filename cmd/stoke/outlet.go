package main

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// outlet is the standard output. It remembers the first thing that could not
// be written: most of what is printed has nobody who would look, and a
// pipeline must learn that it has half of it.
type outlet struct {
	file *os.File

	mu  sync.Mutex
	err error
}

// Write implements io.Writer.
func (o *outlet) Write(text []byte) (int, error) {
	n, err := o.file.Write(text)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// lost is what went wrong with the standard output, nil for nothing. A reader
// who has gone is no mistake.
func (o *outlet) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, syscall.EPIPE) {
		return nil
	}
	return o.err
}
