package plan

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// Request is what a plan is made from.
type Request struct {
	Root      *modules.Module
	Files     *modules.Files
	Variables map[string]cty.Value // the root module's, converted
	State     *state.State         // after settling
	Catalogue providers.Catalogue

	Mode        Mode
	SkipRefresh bool
	// RefreshChanged reads only what a change touches; see makeChanged.
	RefreshChanged bool
	AllDrift       bool     // the plan has all drift, not only where it matters to it
	Targets        []string // addresses as given; none: everything
	Excludes       []string // addresses that are left out; not together with Targets
	Replace        []string
	Parallelism    int // 0: 10
	Limits         Limits
	Workspace      string
	Dir            string
	// GenerateTo names the file for the configuration of imported objects without
	// one; "": it is not written.
	GenerateTo string

	Listen   Listener        // nil: nobody
	Stopping <-chan struct{} // nil: never
}

// Make reads the objects, compares them with the configuration and plans the
// difference. When the diagnostics hold errors, the plan is partial and must
// not be applied.
func Make(ctx context.Context, r Request) (*Plan, hcl.Diagnostics) {
	if r.GenerateTo == "" || r.Mode != Normal {
		return makePlan(ctx, r, &generation{})
	}
	g, diags := generate(ctx, &r)
	if diags.HasErrors() {
		return &Plan{Mode: r.Mode}, diags
	}
	result, more := makePlan(ctx, r, g)
	if len(g.config) > 0 {
		result.Generated = g.text()
	}
	return result, append(diags, more...)
}

func makePlan(ctx context.Context, r Request, g *generation) (*Plan, hcl.Diagnostics) {
	if r.RefreshChanged && !r.SkipRefresh && r.Mode == Normal {
		return makeChanged(ctx, r, g)
	}
	_, result, diags := makeOnce(ctx, r, g, nil)
	return result, diags
}

// makeOnce makes a plan with what an earlier attempt has read; nil is nothing.
func makeOnce(ctx context.Context, r Request, g *generation, reads *reads) (*planner, *Plan, hcl.Diagnostics) {
	p, diags := newPlanner(ctx, r)
	if diags.HasErrors() {
		return p, &Plan{Mode: r.Mode}, diags
	}
	p.imports.found, p.imports.config = g.found, g.config
	p.reads = reads
	defer p.ev.Close()
	defer p.watchCancel(ctx)()
	if diags = append(diags, p.checkProviders()...); diags.HasErrors() {
		return p, &Plan{Mode: r.Mode}, diags
	}
	if diags = append(diags, p.relocate()...); diags.HasErrors() {
		return p, &Plan{Mode: r.Mode}, diags
	}

	p.ev.Do(func(t *eval.Task) {
		switch r.Mode {
		case Destroy:
			p.destroy(t)
		default:
			p.configured(t)
			if r.Mode == Normal {
				p.unwantedImports(t)
			}
			p.reportStayed(t)
			p.orphans(t)
		}
		if len(p.targets) == 0 {
			p.outputs(t)
		}
		p.checks(t)
		p.quietChecks()
	})
	diags = append(diags, p.ev.Diagnostics()...)
	diags = append(diags, validateUnseen(p, diags)...)
	if len(p.targets) > 0 {
		p.targetedOutputs()
	}
	if p.stopped() || ctx.Err() != nil {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Planning interrupted", Detail: "Nothing was changed. Run the command again to make a plan."})
	}
	result := p.assemble()
	result.Checks = p.ev.CheckResults(nil, r.Mode != Destroy && !p.partial())
	diags = append(diags, forgotten(result)...)
	if !diags.HasErrors() {
		diags = append(diags, p.order(result)...)
	}
	if ctx.Err() == nil && !p.stopped() {
		diags = append(diags, p.review(ctx, result)...)
	}
	result.Complete = !diags.HasErrors() && !p.partial() && len(result.Deferred) == 0
	return p, result, eval.SortDiagnostics(diags)
}

// planner is the resolver of the planning phase: it gives every instance the
// value that it will have.
type planner struct {
	req     Request
	ctx     context.Context
	ev      *eval.Evaluator
	prior   *state.State // after moves
	targets []address.Target
	// excludes are the addresses that are left out.
	excludes []address.Target
	replace  map[address.Instance]bool

	moves      []Move
	from       map[address.Instance]address.Instance // of moves, by where they lead
	statements []*statement                          // moved blocks
	imports    imports

	gates gates

	mu        sync.Mutex
	items     map[address.Instance]*item
	changing  map[address.Resource]bool // some instance of it changes
	extra     []*Change                 // orphans and deposed objects
	drift     []*Change
	refreshed []*Change
	outs      []*OutputChange
	notes     map[string][]providers.Note // by address
	guarded   guards
	owners    map[string]*eval.Provider // provider configurations in use, by address
	deferred  []deferred
	refused   []refusal
	leaving   map[address.Instance]bool // left out, because of excludes
	left      map[address.Resource]bool // some instance of it is left out, because of excludes
	want      *wantedSet                // nil before orphans are looked for
	related   *dependencies             // nil before the plan is put together

	// closed rejects the planning of untargeted resources; it is set between
	// evaluations.
	closed bool
	reads  *reads // nil: everything is read, once
	unseen int    // objects that could not be read
	unread int    // objects that were not read, because reads leaves them out
}

// item is one instance that the configuration wants, planned.
type item struct {
	change *Change
	inst   *eval.Instance
	verify bool // unchanged, but a condition is not known yet
	value  cty.Value
	put    int32 // the operation that makes, changes or reads it, plus one; 0: none
}

func newPlanner(ctx context.Context, r Request) (*planner, hcl.Diagnostics) {
	if r.Parallelism <= 0 {
		r.Parallelism = 10
	}
	r.Listen = OneAtATime(r.Listen)
	p := &planner{
		req: r, ctx: ctx, prior: r.State,
		items: map[address.Instance]*item{}, changing: map[address.Resource]bool{},
		owners:  map[string]*eval.Provider{},
		left:    map[address.Resource]bool{},
		leaving: map[address.Instance]bool{},
		notes:   map[string][]providers.Note{},
		replace: map[address.Instance]bool{},
	}
	var diags hcl.Diagnostics
	for _, text := range r.Targets {
		target, err := address.ParseTarget(text)
		if err != nil {
			diags = append(diags, invalidAddress("-target", text, err))
			continue
		}
		p.targets = append(p.targets, target)
	}
	var wrong hcl.Diagnostics
	p.excludes, wrong = excludes(r)
	diags = append(diags, wrong...)
	for _, text := range r.Replace {
		addr, err := address.ParseInstance(text)
		if err != nil {
			diags = append(diags, invalidAddress("-replace", text, err))
			continue
		}
		if addr.Mode == address.Data {
			diags = append(diags, invalidAddress("-replace", text, errors.New("a data source is read, and there is nothing to replace")))
			continue
		}
		p.replace[addr] = true
	}
	p.ev = eval.New(ctx, eval.Options{
		Root: r.Root, Variables: r.Variables, Catalogue: r.Catalogue, Resolver: p,
		Parallelism: r.Parallelism, Workspace: r.Workspace, Planning: true, PlanTime: time.Now(),
		Deferring: r.Mode != Destroy, Stopping: r.Stopping,
	})
	p.imports = imports{blocks: p.ev.Imports(), stored: map[address.Instance]*Change{}}
	return p, diags
}

func invalidAddress(flag, text string, err error) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid " + flag + " address", Detail: text + ": " + err.Error() + "."}
}

// watchCancel asks providers to return once the context ends; the function
// that it returns ends the watch.
func (p *planner) watchCancel(ctx context.Context) func() {
	stop := context.AfterFunc(ctx, func() { p.ev.Stop(context.WithoutCancel(ctx)) })
	return func() { stop() }
}

func (p *planner) stopped() bool {
	select {
	case <-p.req.Stopping:
		return true
	default:
		return false
	}
}

// configured plans everything that the configuration wants.
func (p *planner) configured(t *eval.Task) {
	p.ev.Root().WalkInto(t, p.reaches, func(t *eval.Task, m *eval.Module) {
		if len(p.targets) == 0 {
			m.EvaluateAll(t)
		}
		resources := m.Resources()
		t.ForEach(len(resources), func(t *eval.Task, i int) {
			if !p.mayContain(resources[i].Addr) || resources[i].Decl.Check != "" {
				return
			}
			instances, ok := resources[i].Instances(t)
			if !ok {
				return
			}
			p.unreplaced(t, instances)
			if len(p.targets) == 0 {
				resources[i].Value(t)
				return
			}
			t.ForEach(len(instances), func(t *eval.Task, j int) {
				if p.contains(instances[j].Addr) {
					instances[j].Value(t)
				}
			})
		})
	})
}

// mayContain reports whether some instance of the resource may be targeted.
func (p *planner) mayContain(r address.Resource) bool {
	if len(p.targets) == 0 {
		return true
	}
	return slices.ContainsFunc(p.targets, func(t address.Target) bool {
		t.Key = address.Key{}
		return t.Contains(r.Instance(address.Key{}))
	})
}

// reaches reports whether something in a module instance, or below it, may be
// targeted: what the count of another one rests on has no part in the plan.
func (p *planner) reaches(m address.Module) bool {
	return len(p.targets) == 0 || slices.ContainsFunc(p.targets, func(t address.Target) bool { return t.Reaches(m) })
}

// contains reports whether an instance is targeted.
func (p *planner) contains(i address.Instance) bool {
	if len(p.targets) == 0 {
		return true
	}
	return slices.ContainsFunc(p.targets, func(t address.Target) bool { return t.Contains(i) })
}

// assemble makes the plan's data, without the order of its operations.
func (p *planner) assemble() *Plan {
	result := &Plan{
		Mode: p.req.Mode, Lineage: p.prior.Lineage(), Serial: p.prior.Serial(),
		Dir: p.req.Dir, Workspace: p.req.Workspace, Variables: p.persistent(), Ephemeral: p.ephemeral(), Targets: p.req.Targets, Excludes: p.req.Excludes,
		Outputs: p.outs, Refreshed: p.refreshed, Unread: p.unread, Unseen: p.unseen, Moves: p.moves, Made: time.Now(),
	}
	result.SensitiveVariables, result.SensitiveDefaults = sensitiveVariables(p.req.Root), sensitiveDefaults(p.req.Root, nil)
	if p.req.Files != nil {
		result.Files = p.req.Files.Configuration() // values are in Variables, where they can be sealed
	}
	result.Deferred = p.deferrals()
	result.Changes = make([]*Change, 0, len(p.items)+len(p.extra))
	for _, it := range p.items {
		result.Changes = append(result.Changes, it.change)
	}
	result.Changes = append(result.Changes, p.extra...)
	sortChanges(result.Changes)
	sortChanges(result.Refreshed)
	p.relate(result)
	p.finishImports(result)
	p.needs(result)
	result.Drift = p.relevantDrift(result)
	slices.SortFunc(result.Outputs, func(a, b *OutputChange) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	for _, address := range slices.Sorted(maps.Keys(p.notes)) {
		result.Notes = append(result.Notes, p.notes[address]...)
	}
	return result
}

func sensitiveVariables(root *modules.Module) []string {
	var names []string
	if root != nil {
		for name, v := range root.Variables {
			if v.Sensitive || v.Ephemeral {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func sortChanges(changes []*Change) {
	slices.SortFunc(changes, compareChanges)
}

func compareChanges(a, b *Change) int {
	if c := a.Addr.Compare(b.Addr); c != 0 {
		return c
	}
	return strings.Compare(a.Deposed, b.Deposed)
}

// relevantDrift keeps what changed outside where it matters to the plan: of
// objects that change themselves or that something which changes depends on.
func (p *planner) relevantDrift(result *Plan) []*Change {
	if p.req.Mode == RefreshOnly {
		p.drift = append(p.drift, p.onlyMoved()...)
		sortChanges(p.drift)
		return p.drift
	}
	if p.req.AllDrift {
		sortChanges(p.drift)
		return p.drift
	}
	matters := map[address.Resource]bool{}
	for _, c := range result.Changes {
		if c.Action == NoOp {
			continue
		}
		matters[c.Addr.Resource] = true
		if it := p.items[c.Addr]; it != nil && it.inst != nil {
			for _, r := range it.inst.Node().Resources() {
				matters[r] = true
			}
		}
	}
	var drift []*Change
	for _, d := range p.drift {
		if matters[d.Addr.Resource] {
			drift = append(drift, d)
		}
	}
	sortChanges(drift)
	return drift
}
