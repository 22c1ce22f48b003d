package state

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"syscall"
)

// maxBehind is how many bytes may wait to be written before callers that do
// not ask for durability wait too.
const maxBehind = 4 << 20

// log writes frames to a store behind its callers' backs: while one batch is
// being written, the next one gathers, so that many records share one sync.
type log struct {
	store Store
	ctx   context.Context // never ends
	wake  chan struct{}
	done  chan struct{}
	once  sync.Once

	mu     sync.Mutex
	next   *batch // gathers
	spare  []byte // for the batch after
	failed error  // why the store could not be written; from then on batches only gather

	size    int64  // of the journal; with unsaved, the writing goroutine's until done is closed
	unsaved []byte // what should follow but could not be written
}

// batch is frames that are written together.
type batch struct {
	buf     []byte
	durable bool
	done    chan struct{} // closed when it was written, or could not be
	err     error         // valid once done is closed
}

func startLog(ctx context.Context, s Store, size int64) *log {
	l := &log{
		store: s, ctx: ctx, size: size,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		next: &batch{done: make(chan struct{})},
	}
	go l.write()
	return l
}

// add puts a frame into the batch that gathers. Calls come one at a time, in
// the order of their sequence numbers, and not after stop. The returned
// function waits until the frame was written, if it is durable or too much is
// waiting already, and returns the first error so far.
func (l *log) add(seq uint64, k kind, payload []byte, durable bool) (wait func() error) {
	l.mu.Lock()
	b := l.next
	b.buf = appendFrame(b.buf, seq, k, payload)
	b.durable = b.durable || durable
	full := len(b.buf) > maxBehind
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	if !durable && !full {
		return l.failure
	}
	return func() error {
		<-b.done
		return b.err
	}
}

// failure is why the store could not be written, nil if it could.
func (l *log) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// write is the log's goroutine.
func (l *log) write() {
	defer close(l.done)
	for range l.wake {
		l.flush()
	}
	l.flush()
}

// flush writes what has gathered.
func (l *log) flush() {
	l.mu.Lock()
	b, err := l.next, l.failed
	if len(b.buf) == 0 {
		l.mu.Unlock()
		return
	}
	l.next = &batch{buf: l.spare, done: make(chan struct{})}
	l.spare = nil
	l.mu.Unlock()
	if err == nil {
		err = l.store.Append(l.ctx, l.size, b.buf, b.durable)
	}
	if err == nil {
		l.size += int64(len(b.buf))
	} else {
		l.unsaved = append(l.unsaved, b.buf...)
		l.mu.Lock()
		l.failed = err
		l.mu.Unlock()
	}
	b.err = err
	close(b.done)
	l.mu.Lock()
	l.spare = b.buf[:0]
	l.mu.Unlock()
}

// stop ends the goroutine, tries once more to write what could not be
// written, and returns the journal's size. It may be called again after an
// error.
func (l *log) stop(ctx context.Context) (int64, error) {
	l.once.Do(func() { close(l.wake) })
	<-l.done
	if err := l.append(ctx, len(l.unsaved)); err != nil {
		l.fill(ctx, err)
		return l.size, err
	}
	return l.size, nil
}

// append writes the first n bytes of what could not be written.
func (l *log) append(ctx context.Context, n int) error {
	if err := l.store.Append(ctx, l.size, l.unsaved[:n], true); err != nil {
		return err
	}
	l.size += int64(n)
	l.unsaved = l.unsaved[n:]
	return nil
}

// fill writes as many records as a full disk has room for, in steps that halve.
// Types without outside effect do not wait for the disk, so that what is left
// may be a lot, all of it announced as done.
func (l *log) fill(ctx context.Context, err error) {
	var ends []int
	for at := 0; at < len(l.unsaved); {
		at += headLen + int(binary.LittleEndian.Uint32(l.unsaved[at:])) + tailLen
		ends = append(ends, at)
	}
	done, start := 0, 0
	for step := len(ends) / 2; step > 0 && isFull(err); step /= 2 {
		if e := l.append(ctx, ends[done+step-1]-start); e != nil {
			err = e
			continue
		}
		done += step
		start = ends[done-1]
	}
}

// isFull reports whether an error may not occur for a smaller write.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
