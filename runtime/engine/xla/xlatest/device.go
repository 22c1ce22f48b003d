package xlatest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/stablehlo"
	"github.com/stokehq/stoke/runtime/stablehlo/stablehlotest"
)

// Device implements xla.Device on the interpreter.
type Device struct {
	Round bool // results are rounded to their types, as a device rounds them
	// Limit is how many bytes of buffers the device has; 0: any number. A run whose
	// results do not fit gives buffers whose download fails, as on a GPU.
	Limit int64
	// Temporary is the bytes that a run claims in addition to its arguments.
	Temporary int64
	// Refuse reports the programs for which the memory does not suffice while they are
	// compiled; nil: none.
	Refuse func(text string) bool

	mu       sync.Mutex
	used     int64
	live     int
	runs     int
	uploads  int
	waits    int
	down, up int64
	compiled []Compiled
	late     sync.WaitGroup // copies under way
	fault    error          // the first misuse of a buffer
}

// Counts are the device's buffers, runs, uploads, waits for a buffer, and the bytes that were
// copied from the device and to it.
type Counts struct {
	Live, Runs, Uploads, Waits int
	Down, Up                   int64
}

// Counts returns the buffers that are not closed, and what the device has done so far.
func (d *Device) Counts() Counts {
	d.late.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return Counts{d.live, d.runs, d.uploads, d.waits, d.down, d.up}
}

// Compiled is a program that the device compiled.
type Compiled struct {
	Name, Text string
	Flags      map[string]any
}

// Compiled returns the programs in their order.
func (d *Device) Compiled() []Compiled {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.compiled)
}

// Fault returns the first misuse: a buffer that was closed twice, used after it was
// closed or donated, or donated twice.
func (d *Device) Fault() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault
}

// misuse keeps the first misuse and returns an error.
func (d *Device) misuse(format string, a ...any) error {
	err := fmt.Errorf(format, a...)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault == nil {
		d.fault = err
	}
	return err
}

// Compile implements xla.Device.
func (d *Device) Compile(text string, flags map[string]any) (xla.Program, error) {
	p, err := stablehlotest.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	if d.Refuse != nil && d.Refuse(text) {
		return nil, fmt.Errorf("compile %s: %w", p.Name(), xla.ErrMemory)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.compiled = append(d.compiled, Compiled{p.Name(), text, flags})
	return &program{device: d, parsed: p}, nil
}

// Upload implements xla.Device. It copies late, so that memory that is given back early
// is seen.
func (d *Device) Upload(t stablehlo.Type, dims []int, data []byte, done func()) (xla.Buffer, error) {
	size := t.Size()
	for _, n := range dims {
		size *= n
	}
	if size != len(data) {
		done()
		return nil, d.misuse("upload of %d bytes as %v of %s", len(data), dims, t)
	}
	b := d.buffer(stablehlotest.Tensor{Type: string(t), Dims: slices.Clone(dims)})
	if b.failure != nil {
		done()
		return nil, errors.Join(b.failure, b.Close())
	}
	d.mu.Lock()
	d.uploads++
	d.up += int64(len(data))
	d.mu.Unlock()
	b.ready = make(chan struct{})
	d.late.Go(func() {
		b.value.Read(data)
		close(b.ready)
		done()
	})
	return b, nil
}

// Host implements xla.Device.
func (d *Device) Host(bytes int) ([]byte, error) {
	memory := make([]byte, bytes)
	for i := range memory {
		memory[i] = 0xa5 // a read before the first write is noticed
	}
	return memory, nil
}

// Class implements xla.Device.
func (d *Device) Class() string { return "interpreter" }

// Memory implements xla.Device.
func (d *Device) Memory() (used, limit int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used, d.Limit, nil
}

// Close implements xla.Device.
func (d *Device) Close() error { return nil }

type program struct {
	device *Device
	parsed *stablehlotest.Program
}

// Memory implements xla.Program.
func (p *program) Memory() (int64, error) { return p.device.Temporary, nil }

// Run implements xla.Program.
func (p *program) Run(arguments ...xla.Buffer) ([]xla.Buffer, error) {
	d := p.device
	in := make([]stablehlotest.Tensor, len(arguments))
	donated := p.parsed.Donated()
	seen := make(map[*buffer]bool)
	var failure error
	for i, a := range arguments {
		b, ok := a.(*buffer)
		if !ok || b == nil {
			return nil, d.misuse("argument %d of %s is a %T", i, p.parsed.Name(), a)
		}
		if b.isClosed() {
			return nil, d.misuse("argument %d of %s is closed or was donated", i, p.parsed.Name())
		}
		if _, gives := donated[i]; seen[b] && gives {
			return nil, d.misuse("argument %d of %s is donated and used", i, p.parsed.Name())
		}
		seen[b] = true
		b.wait()
		failure = cmp.Or(failure, b.failure)
		in[i] = b.value
	}
	d.mu.Lock()
	d.runs++
	d.mu.Unlock()
	var out []stablehlotest.Tensor
	if failure == nil {
		p.parsed.Set(stablehlotest.Options{Round: d.Round})
		var err error
		if out, err = p.parsed.Run(in); err != nil {
			return nil, fmt.Errorf("%s: %w", p.parsed.Name(), err)
		}
	} else {
		for _, t := range p.parsed.Results() {
			out = append(out, stablehlotest.Tensor{Type: t.Element, Dims: t.Dims})
		}
	}
	for i := range donated {
		if err := arguments[i].Close(); err != nil {
			return nil, err
		}
	}
	results := make([]xla.Buffer, len(out))
	for i, v := range out {
		b := d.buffer(v)
		b.failure = cmp.Or(failure, b.failure)
		results[i] = b
	}
	return results, nil
}

type buffer struct {
	device  *Device
	value   stablehlotest.Tensor
	bytes   int64
	ready   chan struct{} // nil: it is
	failure error
	mu      sync.Mutex
	closed  bool
}

func (d *Device) buffer(v stablehlotest.Tensor) *buffer {
	b := &buffer{device: d, value: v, bytes: int64(stablehlo.Type(v.Type).Size())}
	for _, n := range v.Dims {
		b.bytes *= int64(n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live++
	d.used += b.bytes
	if d.Limit > 0 && d.used > d.Limit {
		b.failure = fmt.Errorf("%d bytes of %d: %w", d.used, d.Limit, xla.ErrMemory)
	}
	return b
}

// Wait implements xla.Buffer.
func (b *buffer) Wait() error {
	if b.isClosed() {
		return b.device.misuse("wait for a closed buffer")
	}
	b.device.mu.Lock()
	b.device.waits++
	b.device.mu.Unlock()
	b.wait()
	return b.failure
}

func (b *buffer) wait() {
	if b.ready != nil {
		<-b.ready
	}
}

func (b *buffer) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// Download implements xla.Buffer.
func (b *buffer) Download(data []byte) error {
	if b.isClosed() {
		return b.device.misuse("download of a closed buffer")
	}
	b.wait()
	if b.failure != nil {
		return b.failure
	}
	if t := stablehlo.Type(b.value.Type); int64(len(data)) != b.bytes || t != stablehlo.F32 && t != stablehlo.BF16 {
		return b.device.misuse("download of %s %v into %d bytes", b.value.Type, b.value.Dims, len(data))
	}
	b.value.Write(data)
	b.device.mu.Lock()
	defer b.device.mu.Unlock()
	b.device.down += b.bytes
	return nil
}

// Close implements xla.Buffer.
func (b *buffer) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return b.device.misuse("a buffer of %v was closed twice", b.value.Dims)
	}
	b.closed = true
	b.device.mu.Lock()
	defer b.device.mu.Unlock()
	b.device.live--
	b.device.used -= b.bytes
	return nil
}
