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

// Restore takes back what Apply brought: it purges packages that came in, except
// configuration files that were changed; others get their versions, holds and
// marks back, and then files go. A package that others now need, or that has
// changed since, stays, and the outcome has the reason.
func Restore(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Outcome, error) {
	a := &apply{m: m, rec: rec, call: providers.CallFrom(ctx), now: time.Now}
	if _, err := rec.ReadNote(noteOwner, &a.want.Owner); err != nil {
		return nil, err
	}
	all, err := recorded(rec)
	if err != nil || a.want.Owner == "" {
		return nil, err
	}
	var outcomes []host.Outcome
	if len(all) > 0 {
		if err := a.wait(ctx); err != nil {
			return nil, err
		}
		if err := a.look(ctx); err != nil {
			return nil, err
		}
		if err := a.unbreak(ctx, all); err != nil {
			return nil, err
		}
		for name, w := range all {
			w.Declared = false
			all[name] = w
		}
		host.Step(ctx, "take back packages")
		if outcomes, err = a.restorePackages(ctx, all, slices.Sorted(maps.Keys(all))); err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, host.Outcome{Fact: "logs of apt and dpkg", Fate: host.Left, Why: "they tell what happened; users and groups that packages made stay as well, as Debian wants it", Expected: true})
		if err := a.dropArchives(ctx); err != nil {
			return outcomes, err
		}
	}
	gone, err := a.releaseRepositories(ctx)
	if outcomes = append(outcomes, gone...); err != nil {
		return outcomes, err
	}
	for _, name := range a.undeclaredFiles() {
		o, err := a.rec.GiveBack(ctx, noteFile+name, name)
		if outcomes = append(outcomes, o...); err != nil {
			return outcomes, err
		}
	}
	var refreshed bool
	if _, err := rec.ReadNote(noteLists, &refreshed); err == nil && refreshed {
		outcomes = append(outcomes, host.Outcome{Fact: "apt's lists", Fate: host.Left, Why: "they were refreshed, as apt-get update does", Expected: true})
	}
	return outcomes, rec.Forget(ctx, append(rec.Keys(notePackage), noteAll, noteLists, noteOwner)...)
}

// unbreak completes an interrupted dpkg as far as possible: the rest may be
// about to be removed. A package that came in and is not even unpacked is taken
// away at once, for apt would want its archive again.
func (a *apply) unbreak(ctx context.Context, all map[string]priorPackage) error {
	if !a.have.unfinished() {
		return nil
	}
	why, err := a.configure(ctx)
	if why != nil {
		a.report(firstLine(why))
	}
	if err != nil {
		return err
	}
	var half []string
	for _, b := range a.have.Broken {
		name, how, _ := strings.Cut(b, " ")
		if w, ours := all[name]; ours && w.Version == "" && (strings.Contains(how, "half-installed") || strings.Contains(how, "again")) {
			half = append(half, name)
		}
	}
	if len(half) == 0 {
		return nil
	}
	own, err := edited(ctx, a.m, half)
	if err != nil {
		return err
	}
	for _, name := range half {
		how := "--purge"
		if len(own[name]) > 0 {
			how = "--remove"
		}
		if err := a.transaction(ctx, "dpkg", "--force-remove-reinstreq", "--force-depends", how, name); err != nil {
			return err
		}
	}
	return nil
}

type undo struct {
	purge, remove []string            // what came in; remove keeps edited configuration files
	clear         []string            // what is removed already, and not yet purged
	spared        map[string][]string // edited files, by package: the reason not to purge it
	install       map[string]string   // the version that was there
	outcomes      []host.Outcome
}

func (u *undo) reportLeft(name, why string, args ...any) {
	u.outcomes = append(u.outcomes, host.Outcome{Fact: "package " + name, Fate: host.Left, Why: fmt.Sprintf(why, args...)})
}

func (a *apply) restorePackages(ctx context.Context, all map[string]priorPackage, names []string) ([]host.Outcome, error) {
	have, err := observe(ctx, a.m, a.want, names)
	if err != nil {
		return nil, err
	}
	u := undo{install: map[string]string{}}
	for _, name := range names {
		u.plan(name, all[name], have.Packages[name])
	}
	own, err := edited(ctx, a.m, slices.Concat(u.purge, u.clear))
	if err != nil {
		return u.outcomes, err
	}
	u.spare(own)
	if err := a.feasible(ctx, &u, have); err != nil {
		return u.outcomes, err
	}
	if err := a.carryOut(ctx, &u); err != nil {
		return u.outcomes, err
	}
	if err := a.restoreMarks(ctx, &u, names, all, have); err != nil {
		return u.outcomes, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(u.outcomes, func(o host.Outcome) bool { return o.Fact == "package "+name && o.Fate == host.Left }) {
			delete(all, name)
		}
	}
	return u.outcomes, nil
}

// plan decides about one package by its former state, its state after Apply, and
// its present state.
func (u *undo) plan(name string, w priorPackage, p Installed) {
	touched := !w.Open && w.Now != p.Version // by somebody else, since
	switch {
	case w.Version == "" && !p.IsInstalled():
		if w.Now == "" && !w.Open {
			return
		}
		if p.Status == 'c' && !w.Config {
			u.clear = append(u.clear, name)
		}
		u.outcomes = append(u.outcomes, host.Outcome{Fact: "package " + name, Fate: host.Removed})
	case w.untouched(p): // not stoke's doing
	case w.Version == "" && !w.Asked && !p.Auto && !w.Open:
		u.reportLeft(name, "it came as a dependency, and was marked as wanted since (apt-mark showmanual)")
	case w.Version == "" && w.Config:
		u.remove = append(u.remove, name)
	case w.Version == "":
		u.purge = append(u.purge, name)
	case p.IsInstalled() && p.Version == w.Version:
		if w.Now != w.Version && (w.Now != "" || !w.Open) {
			u.outcomes = append(u.outcomes, host.Outcome{Fact: "package " + name, Fate: host.Restored})
		}
	case p.IsInstalled() && touched:
		u.reportLeft(name, "it was %s, stoke made it %s, and since then it was changed to %s", w.Version, w.Now, p.Version)
	case !p.IsInstalled() && w.Now != "" && !w.Open:
		u.reportLeft(name, "it existed before, and was removed since")
	case slices.Contains(p.Versions, w.Version):
		u.install[name] = w.Version
	default:
		is := "is not installed"
		if p.IsInstalled() {
			is = "stays " + p.Version
		}
		u.reportLeft(name, "it %s: version %s, which was there before, can no longer be had", is, w.Version)
	}
}

// spare keeps files that others have written, before the package came or after:
// the files of stoke were restored before.
func (u *undo) spare(own map[string][]string) {
	u.spared = own
	u.clear = slices.DeleteFunc(u.clear, func(name string) bool { return len(own[name]) > 0 })
	u.purge = slices.DeleteFunc(u.purge, func(name string) bool {
		if len(own[name]) > 0 {
			u.remove = append(u.remove, name)
		}
		return len(own[name]) > 0
	})
}

func (u undo) args() []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(u.install)) {
		args = append(args, name+"="+u.install[name])
	}
	for _, name := range slices.Concat(u.purge, u.remove) {
		args = append(args, name+"-")
	}
	return args
}

func (u undo) extra(actions []Action) []string {
	var all []string
	for _, x := range actions {
		goes := x.New == "" && (slices.Contains(u.purge, x.Package) || slices.Contains(u.remove, x.Package))
		if v, comes := u.install[x.Package]; !goes && (!comes || v != x.New) {
			all = append(all, x.String())
		}
	}
	return all
}

// feasible asks apt, and leaves packages that could only be removed with
// others: packages that were installed since need them.
func (a *apply) feasible(ctx context.Context, u *undo, have State) error {
	check := func(args ...string) (string, error) {
		actions, err := simulate(ctx, a.m, a.want, append([]string{"install", "--allow-downgrades", "--allow-change-held-packages"}, args...)...)
		if impossible := (*ImpossibleError)(nil); errors.As(err, &impossible) {
			return "leave things broken (" + impossible.Why + ")", nil
		}
		return strings.Join(u.extra(actions), ", "), err
	}
	if len(u.args()) == 0 {
		return nil
	}
	why, err := check(u.args()...)
	if err != nil || why == "" {
		return err
	}
	for _, arg := range u.args() {
		if why, err = check(arg); err != nil {
			return err
		}
		if why != "" {
			name, v, comes := strings.Cut(arg, "=")
			if !comes {
				name = strings.TrimSuffix(arg, "-")
			}
			u.drop(name)
			if comes {
				u.reportLeft(name, "bringing back %s would also %s; it is %s", v, why, have.Packages[name].Version)
			} else {
				u.reportLeft(name, "taking it away would also %s", why)
			}
		}
	}
	if len(u.args()) == 0 {
		return nil
	}
	if why, err = check(u.args()...); err != nil || why == "" {
		return err
	}
	for _, name := range slices.Concat(u.purge, u.remove, slices.Sorted(maps.Keys(u.install))) {
		u.drop(name)
		u.reportLeft(name, "putting all back together would also %s", why)
	}
	return nil
}

func (u *undo) drop(name string) {
	is := func(n string) bool { return n == name }
	u.purge, u.remove = slices.DeleteFunc(u.purge, is), slices.DeleteFunc(u.remove, is)
	delete(u.install, name)
	delete(u.spared, name)
}

// carryOut removes all in one transaction, whatever the dependencies, and then
// purges what may be purged: with dpkg, since apt does not know packages without
// an archive.
func (a *apply) carryOut(ctx context.Context, u *undo) error {
	if args := u.args(); len(args) > 0 {
		if err := a.install(ctx, []string{"--allow-downgrades", "--allow-change-held-packages"}, args...); err != nil {
			return err
		}
	}
	if purge := slices.Concat(u.purge, u.clear); len(purge) > 0 {
		if err := a.wait(ctx); err != nil {
			return err
		}
		if err := a.transaction(ctx, append([]string{"dpkg", "--purge"}, purge...)...); err != nil {
			return err
		}
	}
	for _, name := range slices.Concat(u.purge, u.remove) {
		u.outcomes = append(u.outcomes, host.Outcome{Fact: "package " + name, Fate: host.Removed})
	}
	for _, name := range slices.Sorted(maps.Keys(u.spared)) {
		u.outcomes = append(u.outcomes, host.Outcome{Fact: "configuration of package " + name, Fate: host.Left, Expected: true,
			Why: "not as the package had it: " + strings.Join(u.spared[name], ", ") + "; apt-get purge " + name + " deletes it"})
	}
	for _, name := range slices.Sorted(maps.Keys(u.install)) {
		u.outcomes = append(u.outcomes, host.Outcome{Fact: "package " + name, Fate: host.Restored})
	}
	return nil
}

// restoreMarks puts back holds, and the marks that tell apt what was installed
// only for others. What came in and has to stay is for others from now on.
func (a *apply) restoreMarks(ctx context.Context, u *undo, names []string, all map[string]priorPackage, before State) error {
	have, err := observe(ctx, a.m, a.want, names)
	if err != nil {
		return err
	}
	marks := map[string][]string{}
	for _, name := range names {
		w, p := all[name], have.Packages[name]
		if !p.IsInstalled() {
			continue
		}
		if held := before.Packages[name].Held; p.Held != w.Held || held != w.Held {
			verb := "unhold"
			if w.Held {
				verb = "hold"
			}
			marks[verb] = append(marks[verb], name)
			u.outcomes = append(u.outcomes, host.Outcome{Fact: "hold of " + name, Fate: host.Restored})
		}
		auto := w.Auto || w.Version == "" && w.Asked
		switch {
		case auto && !p.Auto:
			marks["auto"] = append(marks["auto"], name)
		case !auto && w.Version != "" && p.Auto:
			marks["manual"] = append(marks["manual"], name)
		}
	}
	for _, verb := range slices.Sorted(maps.Keys(marks)) {
		if err := a.mark(ctx, verb, marks[verb]); err != nil {
			return err
		}
	}
	return nil
}
