package gpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/stokehq/stoke/runtime/cuda"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/pjrt"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// Open starts XLA on the GPU with an index. A failure that people can mend is a
// cuda.Fault.
func Open(ctx context.Context, c cuda.Config, index int, log *slog.Logger) (xla.Device, error) {
	client, err := cuda.Open(ctx, c, index, log)
	if err != nil {
		return nil, err
	}
	return newDevice(client.Client, client.Compile, client.Class()), nil
}

// compiler compiles a program, or loads a program of an earlier process.
type compiler func(text string, flags map[string]any) (*pjrt.Executable, error)

func newDevice(c *pjrt.Client, compile compiler, class string) *device {
	return &device{Client: c, compile: compile, class: class}
}

type device struct {
	*pjrt.Client
	compile compiler
	class   string
	copies  sync.WaitGroup // to the device, under way

	mu       sync.Mutex
	programs []*pjrt.Executable
}

// Class implements xla.Device.
func (d *device) Class() string { return d.class }

// Compile implements xla.Device.
func (d *device) Compile(text string, flags map[string]any) (xla.Program, error) {
	e, err := d.compile(text, flags)
	if err != nil {
		return nil, explain(err)
	}
	d.mu.Lock()
	d.programs = append(d.programs, e)
	d.mu.Unlock()
	return program{e, stablehlo.Donated(text)}, nil
}

// Close implements xla.Device.
func (d *device) Close() error {
	d.copies.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, p := range d.programs {
		errs = append(errs, p.Close())
	}
	d.programs = nil
	return errors.Join(append(errs, d.Client.Close())...)
}

var types = map[stablehlo.Type]pjrt.Type{
	stablehlo.F32: pjrt.F32, stablehlo.BF16: pjrt.BF16, stablehlo.I32: pjrt.I32, stablehlo.I64: pjrt.I64,
	stablehlo.U8: pjrt.U8, stablehlo.U64: pjrt.U64, stablehlo.Bool: pjrt.Bool,
}

// Upload implements xla.Device.
func (d *device) Upload(t stablehlo.Type, dims []int, data []byte, done func()) (xla.Buffer, error) {
	wide := make([]int64, len(dims))
	for i, n := range dims {
		wide[i] = int64(n)
	}
	d.copies.Add(1)
	end := sync.OnceFunc(func() {
		done()
		d.copies.Done()
	})
	b, copied, err := d.BeginUpload(types[t], wide, data)
	if err != nil {
		end()
		return nil, explain(err)
	}
	// The first use of the buffer returns an error of the copy.
	if err = copied.OnReady(func(error) { end() }); err != nil {
		err = errors.Join(err, b.Wait(), b.Close()) // the copy still reads the data
		end()
		return nil, err
	}
	return buffer{b}, nil
}

// Host implements xla.Device.
func (d *device) Host(bytes int) ([]byte, error) { return d.Pinned(bytes) }

type program struct {
	*pjrt.Executable
	donated []int
}

// Run implements xla.Program.
func (p program) Run(arguments ...xla.Buffer) ([]xla.Buffer, error) {
	in := make([]*pjrt.Buffer, len(arguments))
	for i, a := range arguments {
		in[i] = a.(buffer).Buffer
	}
	out, err := p.Execute(in...)
	if err != nil {
		return nil, explain(err)
	}
	for _, i := range p.donated {
		err = errors.Join(err, in[i].Close())
	}
	results := make([]xla.Buffer, len(out))
	for i, b := range out {
		results[i] = buffer{b}
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}
	if err != nil {
		return nil, err
	}
	return results, nil
}

// Memory implements xla.Program.
func (p program) Memory() (int64, error) {
	m, err := p.Executable.Memory()
	return m.Temporary + m.Outputs - m.Alias, err
}

type buffer struct{ *pjrt.Buffer }

// Wait implements xla.Buffer.
func (b buffer) Wait() error { return explain(b.Buffer.Wait()) }

// Download implements xla.Buffer.
func (b buffer) Download(data []byte) error { return explain(b.Buffer.Download(data)) }

// explain marks errors of too little memory for the engine.
func explain(err error) error {
	if err != nil && pjrt.IsExhausted(err) {
		return fmt.Errorf("%w: %w", xla.ErrMemory, err)
	}
	return err
}
