package gpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/stokehq/stoke/runtime/cuda"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/pjrt"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// Open starts XLA on the GPU with an index. A failure that people can mend is a
// cuda.Fault. Buffers and programs end with the process.
func Open(ctx context.Context, c cuda.Config, index int, log *slog.Logger) (xla.Device, error) {
	client, err := cuda.Open(ctx, c, index, log)
	if err != nil {
		return nil, err
	}
	return device{client}, nil
}

type device struct{ *cuda.Client }

// Compile implements xla.Device.
func (d device) Compile(text string, flags map[string]any) (xla.Program, error) {
	e, err := d.Client.Compile(text, flags)
	if err != nil {
		return nil, explain(err)
	}
	return program{e, stablehlo.Donated(text)}, nil
}

var types = map[stablehlo.Type]pjrt.Type{
	stablehlo.F32: pjrt.F32, stablehlo.BF16: pjrt.BF16, stablehlo.I32: pjrt.I32, stablehlo.I64: pjrt.I64,
	stablehlo.U8: pjrt.U8, stablehlo.U64: pjrt.U64, stablehlo.Bool: pjrt.Bool,
}

// Upload implements xla.Device.
func (d device) Upload(t stablehlo.Type, dims []int, data []byte, done func()) (xla.Buffer, error) {
	wide := make([]int64, len(dims))
	for i, n := range dims {
		wide[i] = int64(n)
	}
	b, copied, err := d.BeginUpload(types[t], wide, data)
	if err != nil {
		return nil, explain(err)
	}
	// An error of the copy is the buffer's, too: its first use returns it.
	err = copied.OnReady(func(error) {
		if done != nil {
			done()
		}
	})
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return buffer{b}, nil
}

// Host implements xla.Device.
func (d device) Host(bytes int) ([]byte, error) { return d.Pinned(bytes) }

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
	}
	return results, err
}

// Memory implements xla.Program.
func (p program) Memory() (int64, error) {
	m, err := p.Executable.Memory()
	return m.Temporary + m.Outputs - m.Alias, err
}

type buffer struct{ *pjrt.Buffer }

// Download implements xla.Buffer.
func (b buffer) Download(data []byte) error { return explain(b.Buffer.Download(data)) }

// explain marks errors of too little memory for the engine.
func explain(err error) error {
	if err != nil && pjrt.IsExhausted(err) {
		return fmt.Errorf("%w: %w", xla.ErrMemory, err)
	}
	return err
}
