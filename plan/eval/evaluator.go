package eval

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/providers"
)

// Resolver returns the values of resource instances in this phase.
type Resolver interface {
	// Value returns the instance's object, marked where it is sensitive. The
	// evaluator calls it once per instance. On failure it reports to the task and
	// returns false.
	Value(ctx context.Context, t *Task, i *Instance) (cty.Value, bool)
}

// Options is what an evaluator works on.
type Options struct {
	Root      *modules.Module
	Variables map[string]cty.Value // the root module's, converted; required ones are all there
	Catalogue providers.Catalogue
	Resolver  Resolver

	// Parallelism bounds how many tasks run at the same time, and with them
	// the calls to providers. At least 1.
	Parallelism int
	Workspace   string
	// Planning makes functions such as timestamp unknown.
	Planning bool
	PlanTime time.Time
	// Deferring leaves a provider unconfigured whose configuration is not
	// known yet; otherwise it gets the unknown values.
	Deferring bool
	// Validating leaves variables, count and for_each undecided: one instance
	// represents all of them.
	Validating bool
	// Stopping is closed by the first Ctrl-C, which ends functions that take
	// long; nil: never.
	Stopping <-chan struct{}
}

// Evaluator holds the cells of one phase.
type Evaluator struct {
	opts   Options
	ctx    context.Context
	root   *Module
	tokens chan struct{}

	mu    sync.Mutex // guards cells, nodes and tasks
	sinks struct {
		sync.Mutex
		diags hcl.Diagnostics
		once  map[string]bool
	}
	tally  tally
	shared struct {
		sync.Mutex
		functions    map[*modules.Module]map[string]function.Function
		types        map[*providers.ResourceSchema]*Type
		schemas      map[string]*cell[*providers.Schema]
		opened       []*redact.Provider
		modules      map[address.Module]*Module // instances found so far
		ghosts       map[address.Module]*Module // instances that are no longer in the configuration, created on demand
		providers    map[providerKey]*cell[*Provider]
		unconfigured map[string]*cell[*Provider] // by source
		sources      map[string]string           // as written → in full
	}
}

// New makes an evaluator. Evaluation is lazy.
func New(ctx context.Context, o Options) *Evaluator {
	ev := &Evaluator{opts: o, ctx: ctx, tokens: make(chan struct{}, max(o.Parallelism, 1))}
	ev.sinks.once = map[string]bool{}
	ev.shared.functions = map[*modules.Module]map[string]function.Function{}
	ev.shared.types = map[*providers.ResourceSchema]*Type{}
	ev.shared.schemas = map[string]*cell[*providers.Schema]{}
	ev.shared.modules = map[address.Module]*Module{}
	ev.shared.providers = map[providerKey]*cell[*Provider]{}
	ev.shared.sources = map[string]string{}
	ev.shared.unconfigured = map[string]*cell[*Provider]{}
	ev.root = newModule(ev, o.Root, "", nil, nil, repetition{})
	return ev
}

var errInterrupted = errors.New("interrupted")

// interrupted returns the reason to end long functions; nil: they are not.
func (ev *Evaluator) interrupted() error {
	select {
	case <-ev.opts.Stopping:
		return errInterrupted
	case <-ev.ctx.Done():
		return errInterrupted
	default:
		return nil
	}
}

// stoppable returns the context of calls that the first Ctrl-C may end.
func (ev *Evaluator) stoppable() context.Context {
	return providers.WithCall(ev.ctx, &providers.Call{Stopping: ev.opts.Stopping})
}

// Do runs f as a task. Several may run at the same time.
func (ev *Evaluator) Do(f func(t *Task)) {
	ev.acquire()
	defer ev.release()
	f(&Task{ev: ev})
}

// Root is the root module's only instance.
func (ev *Evaluator) Root() *Module { return ev.root }

// Close ends the providers that were configured.
func (ev *Evaluator) Close() {
	ev.shared.Lock()
	defer ev.shared.Unlock()
	for _, p := range ev.shared.opened {
		p.Close() // what it worked on is over; there is nothing left to lose
	}
	ev.shared.opened = nil
}

// Stop asks all providers to return from calls in flight.
func (ev *Evaluator) Stop(ctx context.Context) {
	ev.shared.Lock()
	opened := append([]*redact.Provider(nil), ev.shared.opened...)
	ev.shared.Unlock()
	for _, p := range opened {
		p.Stop(ctx) // a provider that cannot stop is not waited for either
	}
}

// Diagnostics returns what was reported so far and forgets it.
func (ev *Evaluator) Diagnostics() hcl.Diagnostics {
	ev.sinks.Lock()
	defer ev.sinks.Unlock()
	diags := ev.sinks.diags
	ev.sinks.diags = nil
	return diags
}

// Failed reports whether an error was reported and not yet taken.
func (ev *Evaluator) Failed() bool {
	ev.sinks.Lock()
	defer ev.sinks.Unlock()
	return ev.sinks.diags.HasErrors()
}

// Report passes a diagnostic on; unlike Do it does not wait.
func (ev *Evaluator) Report(d *hcl.Diagnostic) { ev.report(hcl.Diagnostics{d}) }

// ReportOnce reports the first of all diagnostics with the same key.
func (ev *Evaluator) ReportOnce(key string, d *hcl.Diagnostic) { ev.reportOnce(key, d) }

func (ev *Evaluator) report(diags hcl.Diagnostics) {
	if len(diags) == 0 {
		return
	}
	ev.sinks.Lock()
	defer ev.sinks.Unlock()
	ev.sinks.diags = append(ev.sinks.diags, diags...)
}

func (ev *Evaluator) reportOnce(key string, d *hcl.Diagnostic) {
	ev.sinks.Lock()
	defer ev.sinks.Unlock()
	if !ev.sinks.once[key] {
		ev.sinks.once[key] = true
		ev.sinks.diags = append(ev.sinks.diags, d)
	}
}

func (ev *Evaluator) acquire() { ev.tokens <- struct{}{} }
func (ev *Evaluator) release() { <-ev.tokens }
func (ev *Evaluator) tryAcquire() bool {
	select {
	case ev.tokens <- struct{}{}:
		return true
	default:
		return false
	}
}
