package packages

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/host"
)

type apply struct {
	m        host.Machine
	rec      *host.Record
	want     Spec
	have     State
	call     *providers.Call
	problems []Problem // of repositories that are not ours
	now      func() time.Time
}

func (a *apply) report(s string) { a.call.Report(providers.Progress{Line: s, Percent: -1}) }

// RefusedError is why nothing was installed.
type RefusedError struct{ Reasons []string }

func (e *RefusedError) Error() string { return strings.Join(e.Reasons, "; ") }

// LimitError: installing would interrupt more than the plan allowed.
type LimitError struct {
	Limit, Would host.Disruption
	Because      Action
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("to %s %s, and the plan allowed %s at most: plan again, now that the packages are downloaded "+
		"the plan shows it", e.Because, e.Would, e.Limit)
}

// Apply makes the declared changes, in this order: wait for apt, complete an
// interrupted apt, repositories and settings, lists where they have to be read
// again, everything that is installed and removed in one transaction, holds.
// The transaction is simulated first: changes of packages that are not declared
// are a *RefusedError. At the end Apply looks, and what still differs is an
// error.
//
// It also takes back what an earlier Apply brought and the Spec no longer
// declares.
func Apply(ctx context.Context, m host.Machine, rec *host.Record, want Spec, have State) error {
	a := &apply{m: m, rec: rec, want: want, have: have, call: providers.CallFrom(ctx), now: time.Now}
	if err := want.Validate(); err != nil {
		return err
	}
	if reasons := want.conflicts(have); len(reasons) > 0 {
		return &RefusedError{Reasons: reasons}
	}
	for _, step := range []func(context.Context) error{
		a.note, a.wait,
		a.releaseFiles, // before apt chooses versions: pins decide
		a.settings, a.packages, a.holds, a.undeclared, a.verify,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// look observes again.
func (a *apply) look(ctx context.Context) (err error) {
	a.have, err = Observe(ctx, a.m, a.want)
	return err
}

func (a *apply) settings(ctx context.Context) error {
	changed, err := a.files(ctx)
	if err == nil {
		err = a.repair(ctx)
	}
	if err == nil && changed {
		err = a.refresh(ctx)
	}
	if err != nil || !changed {
		return err
	}
	return a.look(ctx)
}

// files writes settings, keys and repositories that differ, the proxy first, for
// keys come through it. changed reports that apt has to read its lists again.
func (a *apply) files(ctx context.Context) (changed bool, err error) {
	settings := a.want.settings()
	for _, name := range a.want.files() {
		if _, differs := diffFile("", name, settings[name], a.have); !differs {
			continue
		}
		if err := a.rec.WriteFile(ctx, name, []byte(settings[name])); err != nil {
			return changed, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.want.Repositories)) {
		if len(diffRepository(name, a.want, a.have)) == 0 {
			continue
		}
		changed = true
		r := a.want.Repositories[name]
		if key, there := a.have.Files[keyringFile(name)]; !there || !key.isRegular() || r.trusted(key.Content, a.now()) != prints(r.Fingerprints) {
			if err := a.installKey(ctx, name); err != nil {
				return changed, err
			}
		}
		if err := a.dropLists(ctx, sourcesFile(name), a.have, settings[sourcesFile(name)]); err != nil {
			return changed, err
		}
		if err := a.rec.WriteFile(ctx, sourcesFile(name), []byte(settings[sourcesFile(name)])); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// packages installs and removes. If apt's lists turn out to be old, they are
// refreshed and it tries once more: first the lists of the declared
// repositories, then all.
func (a *apply) packages(ctx context.Context) error {
	for _, refresh := range []func(context.Context) error{a.refresh, a.refreshAll} {
		err := a.attempt(ctx)
		if !errors.As(err, new(*oldListsError)) {
			return err
		}
		if err := refresh(ctx); err != nil {
			return err
		}
		if err := a.look(ctx); err != nil {
			return err
		}
	}
	err := a.attempt(ctx)
	if old := (*oldListsError)(nil); errors.As(err, &old) {
		return old.error
	}
	return err
}

// oldListsError is an error that newer lists may fix.
type oldListsError struct{ error }

func (e *oldListsError) Unwrap() error { return e.error }

func (a *apply) attempt(ctx context.Context) error {
	req := a.want.request(a.have)
	if len(req.missing) > 0 {
		var reasons []string
		for _, u := range req.missing {
			reasons = append(reasons, u.Why)
		}
		for _, p := range a.problems {
			reasons = append(reasons, "a repository does not work: "+p.String())
		}
		return &oldListsError{&RefusedError{Reasons: reasons}}
	}
	if !req.changes {
		return nil
	}
	actions, err := a.judged(ctx, req)
	if impossible := (*ImpossibleError)(nil); errors.As(err, &impossible) {
		if !impossible.Fix {
			return &oldListsError{err}
		}
		host.Step(ctx, "fix what was installed without what it needs")
		if err := a.fix(ctx, err); err != nil {
			return err
		}
		if req = a.want.request(a.have); !req.changes {
			return nil
		}
		actions, err = a.judged(ctx, req)
	}
	if err != nil {
		return err
	}
	names := a.want.names()
	for _, x := range actions {
		names = append(names, x.Package)
	}
	have, err := observe(ctx, a.m, a.want, names)
	if err != nil {
		return err
	}
	if err := remember(ctx, a.rec, have, a.want, names); err != nil {
		return err
	}
	host.Step(ctx, "%s", summary(actions))
	if err := a.install(ctx, req.flags(), req.args...); err != nil {
		return err
	}
	return a.look(ctx)
}

// judged simulates, rejects undeclared changes, and with a limit downloads
// first and reads the archives.
func (a *apply) judged(ctx context.Context, req request) ([]Action, error) {
	host.Step(ctx, "ask apt what it would do")
	command := append([]string{"install"}, req.args...)
	actions, err := simulate(ctx, a.m, a.want, command...)
	if err != nil {
		return nil, err
	}
	own, err := dependenciesOf(a.rec)
	if err != nil {
		return nil, err
	}
	if reasons := a.want.judge(actions, own...); len(reasons) > 0 {
		return nil, &RefusedError{Reasons: reasons}
	}
	if a.want.Limit == nil || *a.want.Limit >= host.RestartsContainer {
		return actions, nil
	}
	host.Step(ctx, "%s", "download "+count(actions))
	if err := a.install(ctx, append(req.flags(), "--download-only"), req.args...); err != nil {
		return nil, err
	}
	if actions, err = simulate(ctx, a.m, a.want, command...); err != nil {
		return nil, err
	}
	if reasons := a.want.judge(actions, own...); len(reasons) > 0 {
		return nil, &RefusedError{Reasons: reasons}
	}
	if d, which := interrupted(actions); d > *a.want.Limit {
		return nil, &LimitError{Limit: *a.want.Limit, Would: d, Because: which}
	}
	return actions, nil
}

func count(actions []Action) string {
	n := 0
	for _, a := range actions {
		if a.New != "" {
			n++
		}
	}
	if n == 1 {
		return "1 package"
	}
	return fmt.Sprintf("%d packages", n)
}

func summary(actions []Action) string {
	switch len(actions) {
	case 0:
		return "mark packages as wanted"
	case 1, 2, 3:
		var all []string
		for _, a := range actions {
			all = append(all, a.String())
		}
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s, %s and %d more", actions[0], actions[1], len(actions)-2)
}

// holds sets and takes away holds, in one command each.
func (a *apply) holds(ctx context.Context) error {
	var on, off, all []string
	for _, name := range slices.Sorted(maps.Keys(a.want.Packages)) {
		switch p := a.have.Packages[name]; {
		case p.Held && !a.want.Packages[name].Hold:
			off = append(off, name)
		case !p.Held && a.want.Packages[name].Hold:
			on = append(on, name)
		}
	}
	if all = slices.Concat(on, off); len(all) == 0 {
		return nil
	}
	if err := remember(ctx, a.rec, a.have, a.want, all); err != nil {
		return err
	}
	if err := a.mark(ctx, "unhold", off); err != nil {
		return err
	}
	return a.mark(ctx, "hold", on)
}

func (a *apply) mark(ctx context.Context, verb string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if _, err := host.Run(ctx, a.m, append([]string{"env", "LC_ALL=C", "apt-mark", verb}, names...)...); err != nil {
		return fmt.Errorf("apt-mark %s: %w", verb, err)
	}
	return nil
}

func (a *apply) undeclared(ctx context.Context) error {
	outcomes, err := a.undeclaredPackages(ctx)
	if err != nil {
		return err
	}
	gone, err := a.releaseRepositories(ctx)
	if err != nil {
		return err
	}
	host.ReportLeft(ctx, append(outcomes, gone...))
	return nil
}

// undeclaredPackages removes packages that are no longer declared, and their
// unused dependencies, which apt determines.
func (a *apply) undeclaredPackages(ctx context.Context) ([]host.Outcome, error) {
	all, err := recorded(a.rec)
	if err != nil {
		return nil, err
	}
	gone, err := undeclared(ctx, a.m, a.want, all)
	if err != nil || len(gone) == 0 {
		return nil, err
	}
	host.Step(ctx, "take back what is no longer declared")
	for _, name := range gone {
		w := all[name]
		w.Declared = false
		all[name] = w
	}
	outcomes, err := a.restorePackages(ctx, all, gone)
	if err != nil {
		return nil, err
	}
	return outcomes, record(ctx, a.rec, all)
}

func (a *apply) verify(ctx context.Context) error {
	names, err := open(a.rec)
	if err != nil {
		return err
	}
	have, err := observe(ctx, a.m, a.want, names)
	if err != nil {
		return err
	}
	if err := noteLeft(ctx, a.rec, have); err != nil {
		return err
	}
	var wrong []string
	for _, c := range Diff(a.want, have) {
		wrong = append(wrong, fmt.Sprintf("%s is %q, not %q", c.Fact, c.Have, c.Want))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("apt succeeded, and still %s: another program changes packages at the same time; apply again", strings.Join(wrong, ", "))
	}
	return nil
}
