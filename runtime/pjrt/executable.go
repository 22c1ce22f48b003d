package pjrt

import (
	"errors"
	"fmt"
	"unsafe"
)

// Executable is a program, compiled and loaded on the device.
type Executable struct {
	*object
	outputs int
}

// Compile compiles StableHLO given as text. Flags are XLA's debug options by
// name: string, bool, int, int64 or float64.
func (c *Client) Compile(text string, flags map[string]any) (*Executable, error) {
	options, err := compileOptions(flags)
	if err != nil {
		return nil, err
	}
	code, format := []byte(text), []byte("mlir")
	p := &program{code: first(code), codeLength: uintptr(len(code)), format: first(format), formatLength: uintptr(len(format))}
	p.size = unsafe.Sizeof(*p)
	args := compileArgs{client: c.handle, program: p, options: first(options), optionsLength: uintptr(len(options))}
	return c.load("compile", func() (handle, error) {
		err := call(c.plugin, clientCompile, &args)
		return args.executable, err
	})
}

// Deserialize loads what Serialize returned, on the same model of device and
// with the same plugin. The plugin trusts the data: the caller checks that they
// are whole.
func (c *Client) Deserialize(data []byte) (*Executable, error) {
	args := deserializeArgs{client: c.handle, data: first(data), length: uintptr(len(data))}
	return c.load("load a compiled program", func() (handle, error) {
		err := call(c.plugin, executableDeserialize, &args)
		return args.executable, err
	})
}

func (c *Client) load(what string, f func() (handle, error)) (*Executable, error) {
	var e *Executable
	err := c.use(func() error {
		loaded, err := f()
		if err != nil {
			return err
		}
		e = &Executable{object: c.keep(&object{kind: "executable", destroy: loadedDestroy, handle: loaded})}
		return e.inner(func(inner handle) error {
			args := resultArgs{object: inner}
			err := call(c.plugin, executableNumOutputs, &args)
			e.outputs = int(args.result)
			return err
		})
	})
	if err != nil {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return e, nil
}

// inner lends the executable that a loaded executable has.
func (e *Executable) inner(f func(handle) error) error {
	return e.lend(func(h handle) error {
		args := resultArgs{object: h}
		if err := call(e.client.plugin, loadedGetExecutable, &args); err != nil {
			return err
		}
		return errors.Join(f(args.result), call(e.client.plugin, executableDestroy, &objectArgs{object: args.result}))
	})
}

// Outputs returns the number of buffers that Execute returns.
func (e *Executable) Outputs() int { return e.outputs }

// Serialize returns the compiled program for Deserialize.
func (e *Executable) Serialize() (data []byte, err error) {
	err = e.inner(func(inner handle) error {
		args := serializeArgs{executable: inner}
		if err := call(e.client.plugin, executableSerialize, &args); err != nil {
			return err
		}
		data = []byte(text(args.data, args.length))
		invoke(args.release, pointer(args.backing))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("serialize a compiled program: %w", err)
	}
	return data, nil
}

// ProgramMemory is the device memory of one run of a program, in bytes.
type ProgramMemory struct {
	Code      int64
	Arguments int64
	Outputs   int64
	Alias     int64 // the part of Outputs that takes the place of donated arguments
	Temporary int64
}

// Memory returns how much device memory a run takes.
func (e *Executable) Memory() (m ProgramMemory, err error) {
	err = e.inner(func(inner handle) error {
		args := compiledMemoryArgs{executable: inner}
		err := call(e.client.plugin, compiledMemoryStats, &args)
		m = ProgramMemory{Code: args.code, Arguments: args.arguments, Outputs: args.outputs, Alias: args.alias, Temporary: args.temporary}
		return err
	})
	return m, err
}

// Execute starts a run and returns its outputs at once: they can be arguments
// of another run before they are computed. An error of the run, such as
// ResourceExhausted, is the outputs': Buffer.Wait and downloads return it.
// Arguments that the program donates are consumed, and still have to be closed.
func (e *Executable) Execute(arguments ...*Buffer) ([]*Buffer, error) {
	in := make([]handle, len(arguments))
	lent := 0
	var outputs []*Buffer
	var err error
	for i, b := range arguments {
		if in[i], err = e.lendArgument(b); err != nil {
			err = fmt.Errorf("argument %d of the run: %w", i, err)
			break
		}
		lent++
	}
	if err == nil {
		outputs, err = e.start(in)
	}
	for _, b := range arguments[:lent] {
		if released := b.release(); released != nil {
			err = errors.Join(err, released)
		}
	}
	return outputs, err
}

func (e *Executable) lendArgument(b *Buffer) (handle, error) {
	switch {
	case b == nil:
		return 0, errors.New("it is nil")
	case b.client != e.client:
		return 0, errors.New("it belongs to another client")
	}
	return b.use()
}

func (e *Executable) start(in []handle) (outputs []*Buffer, err error) {
	c, out := e.client, make([]handle, e.outputs)
	options := &executeOptions{}
	options.size = unsafe.Sizeof(*options)
	err = e.lend(func(h handle) error {
		args := executeArgs{
			executable: h, options: options, devices: 1, argCount: uintptr(len(in)),
			arguments: unsafe.Pointer(&[1]unsafe.Pointer{first(in)}),
			outputs:   unsafe.Pointer(&[1]unsafe.Pointer{first(out)}),
			device:    c.device,
		}
		if err := call(c.plugin, loadedExecute, &args); err != nil {
			return fmt.Errorf("start a run: %w", err)
		}
		outputs = make([]*Buffer, len(out))
		for i, b := range out {
			outputs[i] = c.newBuffer(b)
		}
		return nil
	})
	return outputs, err
}

// Close frees the program.
func (e *Executable) Close() error { return e.end() }
