//go:build darwin || linux

package gpu

import (
	"context"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/gpu"
)

// The measurement runs through the binding, and reports a device that fails.
func TestMeasureThroughTheBinding(t *testing.T) {
	d := openDouble(t, 0)
	e := xla.New(d).(interface {
		Measure(ctx context.Context, rows int) (gpu.Measured, error)
	})
	m, err := e.Measure(t.Context(), 32)
	if err != nil || m.Validate() != nil || m.Product <= 0 {
		t.Errorf("%+v, %v", m, err)
	}
	d.breaks("measure_product")
	if _, err := e.Measure(t.Context(), 32); err == nil || !strings.Contains(err.Error(), "on fire") {
		t.Errorf("a device that fails: %v", err)
	}
	d.breaks("")
}
