package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/spf13/pflag"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/stokehq/stoke/cmd/stoke/terminal"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/view"
	"github.com/stokehq/stoke/providers"
)

// runs finds the runs behind the objects of a state.
type runs struct {
	s       *session
	file    *stateFile
	find    view.Schemas
	secrets *redact.Secrets
	flags   *lookFlags

	mu    sync.Mutex       // runs may be found by several goroutines
	asked *redact.Provider // the provider that was configured, nil for none
	ends  []func()         // closes the providers and connections when the command is done
	ended bool             // no provider is configured any longer
}

// lookFlags are the options of commands that look at runs.
type lookFlags struct {
	path string
	plan planFlags // the variables alone
}

func (f *lookFlags) add(s *session, flags *pflag.FlagSet) {
	flags.StringVar(&f.path, "state", "", "Read `FILE` in place of terraform.tfstate.")
	f.plan.addVariables(flags)
	s.addNoColor(flags)
}

// openRuns reads the state without locking it: an apply may be at work on it.
func (s *session) openRuns(ctx context.Context, f *lookFlags) (*runs, error) {
	file, err := s.currentState(ctx, f.path)
	if err != nil {
		return nil, err
	}
	r := &runs{s: s, file: file, find: schemas(ctx, s.built), secrets: new(redact.Secrets), flags: f}
	r.ends = append(r.ends, file.close)
	known := redact.Places{}
	st := file.StateForDisplay()
	for _, a := range st.Instances() {
		if o := st.Current(a); o != nil {
			v, _ := view.ObjectValue(a, o, r.find)
			var block *providers.Block
			if schema := r.find(o.Provider, a.Mode, a.Type); schema != nil {
				block = schema.Block
			}
			r.secrets.AddAt(v, known.SecretPaths(block, o.Sensitive))
		}
	}
	for _, o := range st.Outputs() {
		if o.Sensitive {
			r.secrets.AddValue(o.Value, false)
		}
	}
	return r, nil
}

// clean is a text of a run without secrets and without what moves a cursor.
func (r *runs) clean(text string) string {
	text = r.secrets.Redact(text)
	r.mu.Lock()
	asked := r.asked
	r.mu.Unlock()
	if asked != nil {
		text = asked.Clean(text)
	}
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return -1
	}, text)
}

// close ends what was needed to look.
func (r *runs) close() {
	r.mu.Lock() // a provider that is being configured is closed, too
	defer r.mu.Unlock()
	r.ended = true
	for _, end := range slices.Backward(r.ends) {
		end()
	}
	r.ends = nil
}

// configured is the provider of an object as the configuration has it.
func (r *runs) configured(provider string, a address.Instance) func(context.Context) (providers.Provider, error) {
	return func(ctx context.Context) (providers.Provider, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ended {
			return nil, errors.New("the state was read again since, or the command ends: look again")
		}
		p, end, err := r.s.configuredProvider(ctx, r.file, provider, a.String(), &r.flags.plan)
		if err != nil {
			return nil, err
		}
		r.asked, r.ends = p, append(r.ends, end)
		return p.Linked(), nil
	}
}

// offers returns the Runs of the provider if the object has something behind it,
// else nil. nil is nothing.
func (r *runs) offers(provider string, o providers.RunObject) providers.Runs {
	known := r.s.built[view.ProviderSource(provider)].Runs
	if known == nil || !slices.Contains(known.Types(), o.Type) || !known.Is(o) {
		return nil
	}
	return known
}

// runSource is what may go on behind one instance.
type runSource struct {
	known providers.Runs
	providers.RunObject
}

// objects returns the instance's objects, the newest first. An object under
// creation is only in the journal.
func (r *runs) objects(a address.Instance) (found []runSource, there bool) {
	add := func(o *state.Object, operation string) {
		there = true
		if a.Mode != address.Managed {
			return
		}
		v, _ := view.ObjectValue(a, o, r.find)
		object := providers.RunObject{Type: a.Type, Value: v, Operation: operation, Configured: r.configured(o.Provider, a)}
		if known := r.offers(o.Provider, object); known != nil {
			found = append(found, runSource{known, object})
		}
	}
	open := r.file.Open()
	for _, in := range slices.Backward(open) {
		if in.Action == state.Create && in.Address.String() == a.String() && in.Deposed == "" {
			add(&state.Object{Meta: state.Meta{Provider: in.Provider, SchemaVersion: in.SchemaVersion}, JSON: in.Planned}, in.ID)
		}
	}
	if o := r.file.State().Current(a); o != nil {
		add(o, "")
	}
	return found, there
}

// addresses lists the instances that have runs.
func (r *runs) addresses() (all []address.Instance) {
	seen := make(map[string]bool)
	add := func(a address.Instance) {
		if found, _ := r.objects(a); len(found) > 0 && !seen[a.String()] {
			seen[a.String()] = true
			all = append(all, a)
		}
	}
	for _, a := range r.file.State().Instances() {
		add(a)
	}
	for _, in := range r.file.Open() {
		add(in.Address)
	}
	return all
}

// findRun finds the run at an address, or returns providers.ErrNoRun.
func (r *runs) findRun(ctx context.Context, a address.Instance) (providers.Run, error) {
	found, _ := r.objects(a)
	for _, o := range found {
		run, err := o.known.Run(ctx, o.RunObject)
		if !errors.Is(err, providers.ErrNoRun) {
			return run, err
		}
	}
	return nil, providers.ErrNoRun
}

// namedRun is a run that a person named: by its address in the state, or by its id on this
// machine.
type namedRun struct {
	name    string
	address address.Instance // the zero value: it is named by its id
	isByID  bool
}

// parseRun returns the run that a text names. The id of a run is not an address.
func parseRun(text string) (namedRun, error) {
	if strings.HasPrefix(text, "run-") && !strings.ContainsAny(text, ".[") {
		return namedRun{name: text, isByID: true}, nil
	}
	a, err := address.ParseInstance(text)
	if err != nil {
		return namedRun{}, err
	}
	return namedRun{name: a.String(), address: a}, nil
}

// findNamed finds a run, or returns providers.ErrNoRun.
func (r *runs) findNamed(ctx context.Context, p namedRun) (providers.Run, error) {
	if !p.isByID {
		return r.findRun(ctx, p.address)
	}
	all, err := r.ofMachine("")
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if one.name == p.name {
			return one.open(ctx)
		}
	}
	return nil, providers.ErrNoRun
}

// configurationAt returns the arguments of a run as texts; a run that is named by its
// id has none.
func (r *runs) configurationAt(p namedRun) map[string]string {
	if p.isByID {
		return nil
	}
	return r.configurationOf(p.address)
}

// run finds the run at an address, or complains.
func (r *runs) run(ctx context.Context, text string) (providers.Run, error) {
	if p, err := parseRun(text); err == nil && p.isByID {
		run, err := r.findNamed(ctx, p)
		if errors.Is(err, providers.ErrNoRun) {
			r.s.complain(problem("No such run",
				"This machine has no run %q in the default folder of runs. \"stoke runs -machine\" lists them.", text))
			return nil, failed
		}
		return run, err
	}
	a, err := address.ParseInstance(text)
	if err != nil {
		r.s.complain(problem("Invalid address", "%q is not the address of an object: %s.", text, err))
		return nil, failed
	}
	run, err := r.findRun(ctx, a)
	if !errors.Is(err, providers.ErrNoRun) {
		return run, err
	}
	found, there := r.objects(a)
	switch {
	case !there:
		r.s.complain(problem("No such object", "The state has no object at %s.%s", a, r.describeOthers()))
	case len(found) == 0:
		r.s.complain(problem("Not a run", "%s has no run behind it, and therefore no status and no logs.%s", a, r.describeOthers()))
	default:
		r.s.complain(problem("Nothing is left of the run", "The state has %s, but its run was removed or has not "+
			"begun. \"stoke state show '%s'\" shows its recorded values.", a, a))
	}
	return nil, failed
}

// describeOthers says where there are runs.
func (r *runs) describeOthers() string {
	all := r.addresses()
	if len(all) == 0 {
		return " It has no runs: declare a train_experiment, or a kube_manifest with pods, and run \"stoke apply\"."
	}
	names := make([]string, 0, 5)
	for _, a := range all[:min(5, len(all))] {
		names = append(names, a.String())
	}
	more := ""
	if len(all) > len(names) {
		more = fmt.Sprintf(" and %d more", len(all)-len(names))
	}
	return " There are runs at " + strings.Join(names, ", ") + more + "."
}

// runCommand is a command that looks at one run.
type runCommand struct {
	cmd   string // its path
	what  string // summary of an error: what does not work
	flags *lookFlags
}

// look runs do with the run at an address; the first interrupt ends what
// follows, and that is no error.
func (s *session) look(ctx context.Context, l runCommand, args []string, do func(context.Context, *runs, providers.Run) error) error {
	if len(args) == 0 {
		return &usageError{path: l.cmd, err: errors.New("the address of a run is needed")}
	}
	s.looking.Store(true)
	r, err := s.openRuns(ctx, l.flags)
	if err != nil {
		return err
	}
	defer r.close()
	following, done := s.signals.untilStopped(ctx)
	defer done()
	run, err := r.run(following, args[0])
	if err == nil {
		err = do(following, r, run)
	}
	if code := exitCode(0); err != nil && !errors.As(err, &code) && errors.Is(context.Cause(following), terminal.ErrStopped) {
		return interruptedCode // what failed, failed by that
	}
	return r.failed(l.what, err)
}

// failed puts an error of a run in words.
func (r *runs) failed(what string, err error) error {
	code := exitCode(0)
	var told *providers.RunError
	switch {
	case err == nil, errors.As(err, &code):
		return err
	case errors.Is(err, r.s.results.writeError()) && r.s.results.writeError() != nil:
		return err
	case errors.As(err, &told):
		r.s.complain(problem(told.Summary, "%s", r.clean(told.Detail)))
		return failed
	case errors.Is(err, providers.ErrNoRun):
		r.s.complain(problem("Nothing is left of the run", "It no longer exists."))
		return failed
	}
	r.s.complain(problem(what, "%s", r.clean(asSentence(err.Error()))))
	return failed
}

// notBegun tells on the standard error why a role says nothing yet.
func (r *runs) notBegun(role, reason string) {
	if role != "" {
		reason = role + ": " + reason
	}
	fmt.Fprintln(r.s.stage.err, r.clean(reason))
}

// printOrStop is an error once nobody reads on: whoever follows stops then.
func (s *session) printOrStop(format string, args ...any) error {
	s.printf(format, args...)
	return s.results.writeError()
}

// runs lists the addresses that have runs, as the one argument of a command.
func (c completer) runs(given []string) []string {
	if len(given) > 0 {
		return nil
	}
	r, err := c.s.openRuns(context.Background(), new(lookFlags))
	if err != nil {
		return nil
	}
	defer r.close()
	var names []string
	for _, a := range r.addresses() {
		names = append(names, a.String())
	}
	return names
}

// configurationOf returns the arguments of the object at an address as texts, by
// their path. Sensitive values are only named, and unset arguments are left out.
func (r *runs) configurationOf(a address.Instance) map[string]string {
	o := r.file.State().Current(a)
	if o == nil { // it is created just now
		for _, in := range slices.Backward(r.file.Open()) {
			if in.Action == state.Create && in.Address.String() == a.String() && in.Deposed == "" {
				o = &state.Object{Meta: state.Meta{Provider: in.Provider, SchemaVersion: in.SchemaVersion}, JSON: in.Planned}
				break
			}
		}
	}
	if o == nil {
		return nil
	}
	v, _ := view.ObjectValue(a, o, r.find)
	var block *providers.Block
	if schema := r.find(o.Provider, a.Mode, a.Type); schema != nil {
		block = schema.Block
	}
	secret := redact.Places{}.SecretPaths(block, o.Sensitive)
	texts := make(map[string]string)
	_ = cty.Walk(v, func(path cty.Path, v cty.Value) (bool, error) {
		if len(path) == 0 {
			return true, nil
		}
		v, _ = v.Unmark()
		switch {
		case isResult(block, path) || v.IsNull():
			return false, nil
		case slices.ContainsFunc(secret, func(p cty.Path) bool { return covers(p, path) }):
			texts[pathText(path)] = "(sensitive value)"
			return false, nil
		case !v.IsKnown():
			texts[pathText(path)] = "(known after apply)"
			return false, nil
		case v.Type().IsPrimitiveType():
			text, err := convert.Convert(v, cty.String)
			if err == nil && !text.IsNull() {
				texts[pathText(path)] = r.clean(text.AsString())
			}
		}
		return true, nil
	})
	return texts
}

// isResult reports whether a path is at or below an attribute that no configuration
// sets.
func isResult(b *providers.Block, path cty.Path) bool {
	for _, step := range path {
		name, ok := step.(cty.GetAttrStep)
		if b == nil || !ok {
			continue
		}
		if a := b.Attributes[name.Name]; a != nil {
			return a.Computed && !a.Optional
		}
		if nested := b.Blocks[name.Name]; nested != nil {
			b = nested.Block
		}
	}
	return false
}

// covers reports whether a place is a path or above it. An unknown key of the place is
// any key.
func covers(place, path cty.Path) bool {
	if len(place) > len(path) {
		return false
	}
	for i, step := range place {
		if key, ok := step.(cty.IndexStep); ok {
			other, both := path[i].(cty.IndexStep)
			if !both || key.Key.IsKnown() && other.Key.IsKnown() && !key.Key.RawEquals(other.Key) {
				return false
			}
			continue
		}
		if !(cty.Path{step}).Equals(cty.Path{path[i]}) {
			return false
		}
	}
	return true
}

// pathText returns a path as people write it: worker.replicas, command[0].
func pathText(path cty.Path) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			b.WriteString("." + step.Name)
		case cty.IndexStep:
			key, _ := step.Key.Unmark()
			switch {
			case key.IsKnown() && key.Type() == cty.String:
				b.WriteString("." + key.AsString())
			case key.IsKnown() && key.Type() == cty.Number:
				b.WriteString("[" + key.AsBigFloat().Text('f', 0) + "]")
			default: // an element of a set
				b.WriteString("[]")
			}
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}
