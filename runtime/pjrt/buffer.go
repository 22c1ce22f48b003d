package pjrt

import (
	"errors"
	"fmt"
	"math"
)

// Type is the type of a buffer's elements, as in PJRT_Buffer_Type.
type Type int32

// The types of elements.
const (
	Bool Type = 1
	I32  Type = 4
	I64  Type = 5
	U8   Type = 6
	U32  Type = 8
	U64  Type = 9
	F32  Type = 11
	F64  Type = 12
	BF16 Type = 13
)

// Size returns the bytes of an element; 0 for a type that this package does not
// know.
func (t Type) Size() int {
	switch t {
	case Bool, U8:
		return 1
	case BF16:
		return 2
	case I32, U32, F32:
		return 4
	case I64, U64, F64:
		return 8
	}
	return 0
}

// Buffer is an array on the device.
type Buffer struct{ *object }

func (c *Client) newBuffer(h handle) *Buffer {
	return &Buffer{c.keep(&object{kind: "buffer", destroy: bufferDestroy, handle: h})}
}

// Upload copies an array, dense and row-major, to the device. The caller may
// change data when Upload returns; the plugin copies them first, so that large
// arrays are faster by BeginUpload from pinned memory.
func (c *Client) Upload(t Type, dims []int64, data []byte) (*Buffer, error) {
	b, done, err := c.upload(t, dims, data, immutableOnlyDuringCall)
	if done != nil {
		err = errors.Join(err, done.end())
	}
	return b, err
}

// BeginUpload is an Upload whose copy continues after the call. The caller changes
// data only when the event is ready. The buffer can be an argument at once.
func (c *Client) BeginUpload(t Type, dims []int64, data []byte) (*Buffer, *Event, error) {
	return c.upload(t, dims, data, immutableUntilTransferCompletes)
}

func (c *Client) upload(t Type, dims []int64, data []byte, semantics int32) (b *Buffer, done *Event, err error) {
	if err := checkSize(t, dims, len(data)); err != nil {
		return nil, nil, err
	}
	err = c.use(func() error {
		args := fromHostArgs{
			client: c.handle, data: first(data), kind: int32(t),
			dims: first(dims), dimCount: uintptr(len(dims)), semantics: semantics, device: c.device,
		}
		if err := call(c.plugin, clientBufferFromHost, &args); err != nil {
			return fmt.Errorf("copy %d bytes to the device: %w", len(data), err)
		}
		b = c.newBuffer(args.buffer)
		if args.done != 0 {
			done = c.newEvent(args.done, data)
		}
		return nil
	})
	if err == nil && done == nil && semantics != immutableOnlyDuringCall {
		return nil, nil, errors.Join(errors.New("the plugin returned no event for a copy to the device"), b.Close())
	}
	return b, done, err
}

// checkSize reports data that are not an array of the dimensions: the plugin
// would read beyond their end.
func checkSize(t Type, dims []int64, length int) error {
	size := t.Size()
	if size == 0 {
		return fmt.Errorf("elements of type %d are not supported", t)
	}
	count := int64(1)
	for _, d := range dims {
		if d < 0 || (d > 0 && count > math.MaxInt64/8/d) {
			return fmt.Errorf("an array of dimensions %v does not fit %d bytes", dims, length)
		}
		count *= d
	}
	if count*int64(size) != int64(length) {
		return fmt.Errorf("an array of dimensions %v has %d bytes, and %d are given", dims, count*int64(size), length)
	}
	return nil
}

// BeginDownload starts a copy to the host. The caller reads data when the event
// is ready. The plugin refuses data that are shorter than the buffer.
func (b *Buffer) BeginDownload(data []byte) (e *Event, err error) {
	err = b.lend(func(h handle) error {
		if len(data) == 0 {
			return errors.New("no memory is given for a copy from the device")
		}
		args := toHostArgs{buffer: h, data: first(data), length: uintptr(len(data))}
		if err := call(b.client.plugin, bufferToHost, &args); err != nil {
			return fmt.Errorf("copy %d bytes from the device: %w", len(data), err)
		}
		e = b.client.newEvent(args.event, data)
		return nil
	})
	return e, err
}

// Download copies the buffer to the host, when it is computed.
func (b *Buffer) Download(data []byte) error {
	e, err := b.BeginDownload(data)
	if err != nil {
		return err
	}
	return e.Wait()
}

// Ready returns an event for the moment at which the buffer is computed.
func (b *Buffer) Ready() (e *Event, err error) {
	err = b.lend(func(h handle) error {
		args := resultArgs{object: h}
		if err := call(b.client.plugin, bufferReadyEvent, &args); err != nil {
			return err
		}
		e = b.client.newEvent(args.result, nil)
		return nil
	})
	return e, err
}

// Wait waits until the buffer is computed, and returns the error of its
// computation.
func (b *Buffer) Wait() error {
	e, err := b.Ready()
	if err != nil {
		return err
	}
	return e.Wait()
}

// Donated reports whether a run consumed the buffer.
func (b *Buffer) Donated() (donated bool, err error) {
	err = b.lend(func(h handle) error {
		args := resultArgs{object: h}
		err := call(b.client.plugin, bufferIsDeleted, &args)
		donated = args.result&0xff != 0
		return err
	})
	return donated, err
}

// Close frees the buffer, when runs and copies that use it have ended.
func (b *Buffer) Close() error { return b.end() }
