package xla_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/engine/xla/xlatest"
	"github.com/stokehq/stoke/runtime/gpu"
)

// measurer is the part of an engine that measures its device.
type measurer interface {
	Measure(ctx context.Context, rows int) (gpu.Measured, error)
}

// wrong is a device that computes a wrong element of each product.
type wrong struct{ *xlatest.Device }

type wrongProgram struct{ xla.Program }

type wrongBuffer struct{ xla.Buffer }

func (d wrong) Compile(text string, flags map[string]any) (xla.Program, error) {
	p, err := d.Device.Compile(text, flags)
	return wrongProgram{p}, err
}

func (p wrongProgram) Run(in ...xla.Buffer) ([]xla.Buffer, error) {
	out, err := p.Program.Run(in...)
	if err == nil {
		out[0] = wrongBuffer{out[0]}
	}
	return out, err
}

func (b wrongBuffer) Download(data []byte) error {
	err := b.Buffer.Download(data)
	data[len(data)-1] ^= 0x80 // the sign of the last element
	return err
}

// Rates are measured after the product is compared with Go's; all buffers are closed,
// also where the device computes wrong numbers or has too little memory.
func TestMeasure(t *testing.T) {
	const rows = 32
	d := &xlatest.Device{Round: true}
	m, err := xla.New(d).(measurer).Measure(t.Context(), rows)
	if err != nil || m.Validate() != nil || m.Size != rows {
		t.Errorf("%+v, %v", m, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	small := &xlatest.Device{Round: true, Limit: 3 * rows * rows}
	if m, err = xla.New(small).(measurer).Measure(t.Context(), rows); err != nil || m.Validate() != nil || !strings.Contains(m.Unable, "out of memory") || small.Counts().Live != 0 {
		t.Errorf("too little memory: %+v, %v", m, err)
	}
	bad := wrong{&xlatest.Device{Round: true}}
	for name, c := range map[string]struct {
		device xla.Device
		of     *xlatest.Device
		ctx    context.Context
		rows   int
		want   string
	}{
		"wrong": {bad, bad.Device, t.Context(), rows, "a product is wrong: element 31, 31"},
		"ended": {d, d, ended, rows, context.Canceled.Error()},
		"size":  {d, d, t.Context(), 40, "want a multiple of 16"},
	} {
		_, err := xla.New(c.device).(measurer).Measure(c.ctx, c.rows)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if n := c.of.Counts().Live; n != 0 || c.of.Fault() != nil {
			t.Errorf("%s: %d buffers are left, %v", name, n, c.of.Fault())
		}
	}
}
