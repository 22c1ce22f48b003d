package xla_test

import (
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/engine/xla/xlatest"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/stablehlo"
	"github.com/stokehq/stoke/runtime/stablehlo/stablehlotest"
)

// idle is a device that computes nothing, so that the host's part of a call is measured.
type idle struct{}

func (idle) Compile(text string, _ map[string]any) (xla.Program, error) {
	p, err := stablehlotest.Parse(text)
	if err != nil {
		return nil, err
	}
	results := make([]xla.Buffer, len(p.Results()))
	for i := range results {
		results[i] = nothing{}
	}
	return program(results), nil
}

func (idle) Upload(_ stablehlo.Type, _ []int, _ []byte, done func()) (xla.Buffer, error) {
	done()
	return nothing{}, nil
}

func (idle) Host(n int) ([]byte, error)           { return make([]byte, n), nil }
func (idle) Class() string                        { return "" }
func (idle) Memory() (used, limit int64, _ error) { return 0, 0, nil }
func (idle) Close() error                         { return nil }

type program []xla.Buffer

func (p program) Run(...xla.Buffer) ([]xla.Buffer, error) { return p, nil }
func (program) Memory() (int64, error)                    { return 0, nil }

type nothing struct{}

func (nothing) Wait() error           { return nil }
func (nothing) Download([]byte) error { return nil }
func (nothing) Close() error          { return nil }

func newIdle(t testing.TB) (engine.Replica, engine.Staged) {
	m, err := zoo.Model("resnet20", zooData("resnet20"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := xla.New(idle{}).Build(m, engine.Options{MicroBatch: 4})
	if err != nil {
		t.Fatal(err)
	}
	return r, stage(t, r, xlatest.Batch(m, 1, 1, 1, 1, 1))
}

// A step is some calls of the device: the text of its program, which has thousands of
// lines, is not written again.
func TestStepsWriteNoTexts(t *testing.T) {
	r, s := newIdle(t)
	for name, call := range map[string]func(engine.Pass) error{
		"Step":     func(p engine.Pass) error { _, err := r.Step(t.Context(), s, p); return err },
		"Evaluate": func(p engine.Pass) error { _, err := r.Evaluate(t.Context(), s, p, nil); return err },
	} {
		pass := engine.Pass{First: true}
		count := testing.AllocsPerRun(10, func() {
			if err := call(pass); err != nil {
				t.Fatal(err)
			}
		})
		if count > 100 {
			t.Errorf("%s allocates %.0f objects", name, count)
		}
	}
}

// pinning is a device that makes new memory known only when the first copy has ended: its
// threads, which report that, are busy until then.
type pinning struct {
	*xlatest.Device
	hosts        int
	asked, ended chan struct{}
}

func (p *pinning) Host(bytes int) ([]byte, error) {
	if p.hosts++; p.hosts == 2 {
		close(p.asked)
		<-p.ended
	}
	return p.Device.Host(bytes)
}

func (p *pinning) Upload(t stablehlo.Type, dims []int, data []byte, done func()) (xla.Buffer, error) {
	if p.hosts > 1 {
		return p.Device.Upload(t, dims, data, done)
	}
	return p.Device.Upload(t, dims, data, func() {
		<-p.asked
		done()
		close(p.ended)
	})
}

// The device's threads wait for no memory that is being made: both would wait for ever.
func TestMemoryIsMadeWhileCopiesEnd(t *testing.T) {
	m := everything()
	d := &pinning{new(xlatest.Device), 0, make(chan struct{}), make(chan struct{})}
	r, err := xla.New(d).Build(m, engine.Options{MicroBatch: 4})
	if err != nil {
		t.Fatal(err)
	}
	stage(t, r, xlatest.Batch(m, 1, 1, 1, 1, 1))
}

func BenchmarkStepOnHost(b *testing.B) {
	r, s := newIdle(b)
	for b.Loop() {
		if _, err := r.Step(b.Context(), s, engine.Pass{First: true}); err != nil {
			b.Fatal(err)
		}
	}
}
