package xla

import (
	"fmt"
	"sync"
)

// programs are a replica's programs, each written and compiled with its first use.
type programs struct {
	*maker
	source

	compiling sync.Mutex         // Stage and Step may compile at the same time
	compiled  map[string]Program // by the names that compile gives them
}

func newPrograms(e *maker, s source) *programs {
	return &programs{maker: e, source: s, compiled: make(map[string]Program)}
}

// compile returns the program of a name. All replicas of the device share programs of one
// text.
func (p *programs) compile(name string, write func() (string, error)) (Program, error) {
	p.compiling.Lock()
	defer p.compiling.Unlock()
	if known := p.compiled[name]; known != nil {
		return known, nil
	}
	text, err := write()
	if err != nil {
		return nil, err
	}
	made, err := p.share(text, p.flags())
	if err != nil {
		return nil, fmt.Errorf("compile model %q: %w", p.model.Name, err)
	}
	p.compiled[name] = made
	return made, nil
}

// isCompiled reports whether the program of a name is compiled.
func (p *programs) isCompiled(name string) bool {
	p.compiling.Lock()
	defer p.compiling.Unlock()
	return p.compiled[name] != nil
}

// flags are XLA's debug options.
func (p *programs) flags() map[string]any {
	if p.deterministic {
		return map[string]any{"xla_gpu_deterministic_ops": true}
	}
	return nil
}

// share returns the program of a text and flags, compiled once for the device.
func (e *maker) share(text string, flags map[string]any) (Program, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := fmt.Sprint(flags) + text
	if p := e.programs[key]; p != nil {
		return p, nil
	}
	p, err := e.device.Compile(text, flags)
	if err == nil {
		e.programs[key] = p
	}
	return p, err
}

// compileStep returns the step of count micro-batches.
func (p *programs) compileStep(count int) (Program, error) {
	return p.compile(fmt.Sprintf("step %d", count), func() (string, error) { return p.step(count) })
}

// compileText returns the program of a name whose text needs no check.
func (p *programs) compileText(name string, write func() string) (Program, error) {
	return p.compile(name, func() (string, error) { return write(), nil })
}

// run begins a run of a program, compiled with its first use.
func (p *programs) run(name string, write func() string, arguments ...Buffer) ([]Buffer, error) {
	made, err := p.compileText(name, write)
	if err != nil {
		return nil, err
	}
	return made.Run(arguments...)
}
