package pjrt

import (
	"errors"
	"sync/atomic"
)

// Event is the end of a copy or of a computation. It is over with the first of
// Wait, OnReady and Close.
type Event struct{ *object }

// newEvent makes an event, which keeps the memory of its copy.
func (c *Client) newEvent(h handle, memory []byte) *Event {
	return &Event{c.keep(&object{kind: "event", destroy: eventDestroy, handle: h, memory: memory})}
}

// Wait waits until the event is ready, closes it, and returns the error of the
// copy or computation.
func (e *Event) Wait() error {
	h, err := e.use()
	if err != nil {
		return err
	}
	// Closed first: of two goroutines that wait, one has the event.
	if err := e.end(); err != nil {
		return errors.Join(err, e.release())
	}
	return errors.Join(call(e.client.plugin, eventAwait, &objectArgs{object: h}), e.release())
}

// Close closes the event without its result. An event of a copy waits until the
// copy no longer uses the caller's memory.
func (e *Event) Close() error {
	if e.memory == nil {
		return e.end()
	}
	err := e.Wait()
	var failed *Error
	if errors.As(err, &failed) {
		return nil // the copy's result, which the caller does not want
	}
	return err
}

// OnReady calls f once when the event is ready, with the error of the copy or
// computation, and closes the event. f runs on one of the plugin's threads, or
// before OnReady returns; it must not wait for the device.
func (e *Event) OnReady(f func(error)) error {
	h, err := e.use()
	if err != nil {
		return err
	}
	if err := e.end(); err != nil {
		return errors.Join(err, e.release())
	}
	// The call and its callback both use the event, as the callback may run
	// within the call: the later one frees it.
	var uses atomic.Int32
	uses.Store(2)
	release := func() error {
		if uses.Add(-1) == 0 {
			return e.release()
		}
		return nil
	}
	p := e.client.plugin
	id := p.await(func(err error) { f(errors.Join(err, release())) })
	if err := call(p, eventOnReady, &onReadyArgs{event: h, callback: p.callback, argument: id}); err != nil {
		p.forget(id)
		return errors.Join(err, e.release())
	}
	return release()
}

// await keeps a function until ready is called with the returned number.
func (p *Plugin) await(f func(error)) uintptr {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	p.waiting[p.next] = f
	return p.next
}

func (p *Plugin) forget(id uintptr) func(error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.waiting[id]
	delete(p.waiting, id)
	return f
}

// ready is what the plugin calls for an event of OnReady. The error is ours to
// free.
func (p *Plugin) ready(failed, id uintptr) uintptr {
	p.forget(id)(p.failure(failed))
	return 0
}
