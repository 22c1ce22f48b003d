package process

import "runtime"

// Thread calls functions on one thread of the operating system until Close. On
// Linux a child gets its death signal when the thread that started it ends, and
// inherits the thread's settings.
type Thread struct{ requests chan func() }

// NewThread returns a thread that has called prepare; nil: it need not.
func NewThread(prepare func()) *Thread {
	t := &Thread{make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its settings
		if prepare != nil {
			prepare()
		}
		for f := range t.requests {
			f()
		}
	}()
	return t
}

// Close ends the thread after the call that runs.
func (t *Thread) Close() { close(t.requests) }

// Do calls a function on the thread, and returns its error.
func (t *Thread) Do(f func() error) error {
	done := make(chan error)
	t.requests <- func() { done <- f() }
	return <-done
}
