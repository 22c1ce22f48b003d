package pjrt

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
)

// TestEverythingAtOnce drives one client from many goroutines while the
// collector never rests: steps with donated arguments, uploads from memory that
// is dropped at once, callbacks from the device's thread, refused programs, deep
// stacks and objects that are closed while others use them.
func TestEverythingAtOnce(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	c := startClient(t, Options{})
	e := must(c.Compile("double:addto ", nil))(t)
	var group sync.WaitGroup
	errs := make(chan error, 100)
	begin := func(n int, f func() error) {
		group.Go(func() {
			for range n {
				if err := f(); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	for g := range 4 {
		begin(20, func() error { return sumUp(c, e, float32(g+1)) })
	}
	shared := must(c.Upload(F32, []int64{1}, floats(1)))(t)
	begin(300, func() error {
		called := make(chan error, 1)
		ready, err := shared.Ready()
		if err != nil {
			return err
		}
		return errors.Join(ready.OnReady(func(err error) { called <- err }), <-called)
	})
	begin(100, func() error {
		if _, err := c.Compile("not a program", nil); err == nil {
			return errors.New("a text was accepted")
		}
		return nil
	})
	begin(50, func() error {
		b, err := c.Upload(F32, []int64{1}, floats(1))
		if err != nil {
			return err
		}
		return closeUnderUse(b)
	})
	begin(20, func() error {
		done := make(chan error)
		go func() { done <- callDeep(shared, 500) }()
		return <-done
	})
	begin(100, func() error { runtime.GC(); return nil })
	group.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	closeAll(t, shared, e)
}

// sumUp adds numbers on the device, each uploaded from memory of its own.
func sumUp(c *Client, e *Executable, x float32) error {
	const n = 1000
	sum, err := c.Upload(F32, []int64{n}, make([]byte, 4*n))
	if err != nil {
		return err
	}
	for range 10 {
		b, done, err := c.BeginUpload(F32, []int64{n}, slices.Repeat(floats(x), n))
		if err != nil {
			return err
		}
		if err := done.OnReady(func(error) {}); err != nil {
			return err
		}
		out, err := e.Execute(sum, b)
		if err != nil {
			return err
		}
		if err := errors.Join(sum.Close(), b.Close()); err != nil {
			return err
		}
		sum = out[0]
	}
	got := make([]byte, 4*n)
	if err := errors.Join(sum.Download(got), sum.Close()); err != nil {
		return err
	}
	if want := slices.Repeat(floats(10*x), n); !slices.Equal(got, want) {
		return fmt.Errorf("got %v…, want %v", got[:4], want[:4])
	}
	return nil
}

// closeUnderUse closes a buffer and an event while other goroutines use them:
// each gets its result or ErrClosed.
func closeUnderUse(b *Buffer) error {
	ready, err := b.Ready()
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	var wrong []error
	count := 0
	for _, f := range []func() error{ready.Wait, ready.Close, ready.Wait, b.Close, b.Wait, b.Close, func() error { return b.Download(make([]byte, 4)) }} {
		group.Go(func() {
			err := f()
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, ErrClosed) {
				count++
			} else if err != nil {
				wrong = append(wrong, err)
			}
		})
	}
	group.Wait()
	if count < 3 { // two of three on the event, one of two Closes of the buffer
		wrong = append(wrong, fmt.Errorf("%d calls found their object closed, want 3 or more", count))
	}
	return errors.Join(wrong...)
}

// callDeep calls the plugin at many depths of a growing stack.
func callDeep(b *Buffer, n int) error {
	if n == 0 {
		return nil
	}
	var room [64]byte
	if n%100 == 0 {
		if _, err := b.Donated(); err != nil {
			return err
		}
	}
	err := callDeep(b, n-1)
	runtime.KeepAlive(&room)
	return err
}
