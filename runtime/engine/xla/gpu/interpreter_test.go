//go:build darwin || linux

package gpu

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/stokehq/stoke/runtime/pjrt"
	"github.com/stokehq/stoke/runtime/pjrt/pjrttest"
	"github.com/stokehq/stoke/runtime/stablehlo"
	"github.com/stokehq/stoke/runtime/stablehlo/stablehlotest"
)

// double is a device on a plugin in C, whose programs the interpreter computes.
type double struct {
	*device
	client  *pjrt.Client
	errors  func() int64 // of the plugin that are not freed
	regions func() int64 // that have been pinned

	mu        sync.Mutex
	programs  []*stablehlotest.Program
	temporary int64  // bytes that a run of a step needs
	broken    string // programs whose name ends so fail
}

// openDouble starts a double with some of 64 MiB of memory. All of it must be closed when
// the test ends.
func openDouble(t testing.TB, fraction float32) *double {
	t.Helper()
	path := pjrttest.Build(t)
	plugin, err := pjrt.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	library, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	d := new(double)
	var interpret func(prepare, run uintptr)
	purego.RegisterLibFunc(&interpret, library, "double_interpret")
	purego.RegisterLibFunc(&d.errors, library, "double_errors")
	purego.RegisterLibFunc(&d.regions, library, "double_regions")
	interpret(purego.NewCallback(d.prepare), purego.NewCallback(d.run))
	if d.client, err = plugin.NewClient(pjrt.Options{MemoryFraction: fraction}); err != nil {
		t.Fatal(err)
	}
	d.device = newDevice(d.client, d.client.Compile, "double")
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if n := d.errors(); n != 0 {
			t.Errorf("%d errors of the plugin were not freed", n)
		}
	})
	return d
}

// prepare parses a program and describes it, as testdata/device.h of pjrttest says.
func (d *double) prepare(text *byte, length int64, answer *int64, room int64) int64 {
	numbers := unsafe.Slice(answer, room)
	p, err := stablehlotest.Parse(unsafe.String(text, length))
	if err != nil {
		message := append([]byte(err.Error()), 0)
		copy(unsafe.Slice((*byte)(unsafe.Pointer(answer)), 8*room), message)
		return -1
	}
	p.Set(stablehlotest.Options{Round: true})
	d.mu.Lock()
	defer d.mu.Unlock()
	in, out := p.Arguments(), p.Results()
	numbers[0], numbers[1] = int64(len(in)), int64(len(out))
	if strings.HasSuffix(p.Name(), "_step") || strings.HasSuffix(p.Name(), "_steps") {
		numbers[2] = d.temporary
	}
	at := 3
	for _, shape := range append(in, out...) {
		numbers[at], numbers[at+1] = int64(types[stablehlo.Type(shape.Element)]), int64(len(shape.Dims))
		for i, n := range shape.Dims {
			numbers[at+2+i] = int64(n)
		}
		at += 10
	}
	for i := range p.Donated() {
		numbers[at+i] = 1
	}
	d.programs = append(d.programs, p)
	return int64(len(d.programs) - 1)
}

// run computes a run on the plugin's thread.
func (d *double) run(program int64, inputs, outputs **byte, message *byte, room int64) int64 {
	err := d.compute(program, inputs, outputs)
	if err != nil {
		copy(unsafe.Slice(message, room-1), err.Error())
		return 1
	}
	return 0
}

func (d *double) compute(program int64, inputs, outputs **byte) error {
	d.mu.Lock()
	p, broken := d.programs[program], d.broken
	d.mu.Unlock()
	if broken != "" && strings.HasSuffix(p.Name(), broken) {
		return errors.New("the device is on fire")
	}
	var in []stablehlotest.Tensor
	for i, memory := range unsafe.Slice(inputs, len(p.Arguments())) {
		of := p.Arguments()[i]
		v := stablehlotest.Tensor{Type: of.Element, Dims: of.Dims}
		v.Read(unsafe.Slice(memory, bytesOf(of)))
		in = append(in, v)
	}
	out, err := p.Run(in)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name(), err)
	}
	for i, memory := range unsafe.Slice(outputs, len(out)) {
		out[i].Write(unsafe.Slice(memory, bytesOf(p.Results()[i])))
	}
	return nil
}

func bytesOf(t stablehlotest.Type) int { return t.Size() * types[stablehlo.Type(t.Element)].Size() }

// breaks makes runs of programs fail whose name ends so; "" is none.
func (d *double) breaks(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = name
}
