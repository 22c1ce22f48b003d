package pjrt

import (
	"errors"
	"fmt"
	"sync"
)

// object is one of the plugin's objects with its life: how many calls use it
// now, and whether it is closed. The plugin's part is freed once, when it is
// closed and no call uses it.
type object struct {
	client  *Client
	kind    string // in messages
	destroy function
	memory  []byte // what an event's copy reads or writes

	mu     sync.Mutex
	handle handle
	uses   int
	closed bool
}

// use lends the handle to a call, which calls release afterwards.
func (o *object) use() (handle, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, fmt.Errorf("the %s is %w", o.kind, ErrClosed)
	}
	o.uses++
	return o.handle, nil
}

// release ends a use. The last use of a closed object frees it.
func (o *object) release() error {
	o.mu.Lock()
	o.uses--
	last := o.closed && o.uses == 0
	o.mu.Unlock()
	if last {
		return o.free()
	}
	return nil
}

// end closes the object: it is freed now, or by the last call that uses it.
func (o *object) end() error {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return fmt.Errorf("the %s is %w", o.kind, ErrClosed)
	}
	o.closed = true
	last := o.uses == 0
	o.mu.Unlock()
	if last {
		return o.free()
	}
	return nil
}

func (o *object) free() error {
	err := call(o.client.plugin, o.destroy, &objectArgs{object: o.handle})
	o.client.forget(o)
	if err != nil {
		return fmt.Errorf("free the %s: %w", o.kind, err)
	}
	return nil
}

// lend lends the handle to a function.
func (o *object) lend(f func(handle) error) error {
	h, err := o.use()
	if err != nil {
		return err
	}
	return errors.Join(f(h), o.release())
}
