package packages

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Forecast is what a plan can say of an Apply.
type Forecast struct {
	Actions    []Action        // what apt would do
	Refusals   []string        // why Apply would refuse; empty for a plan that can be carried out
	Missing    []Unavailable   // what no repository has, so that Apply would refuse, too
	Doubtful   []Unavailable   // packages without a version in apt, where that is not certain
	Notes      []string        // what cannot be known yet, and what else is worth saying
	Disruption host.Disruption // of everything, including undeclared packages
	Because    string          // the action that causes the disruption
}

// Foresee returns the changes that Apply would make, in one round trip, or two
// where the record of stoke's own packages matters. It changes nothing, so that a
// repository which the machine does not have yet, or lists that are older than a
// version, leave things open: Doubtful and Notes say which, and Apply asks again
// right before it installs. Where apt knows no version of a package, all lists
// are read again, into a temporary folder.
func Foresee(ctx context.Context, m host.Machine, want Spec, have State) (Forecast, error) {
	var f Forecast
	if err := want.Validate(); err != nil {
		return f, err
	}
	f.Refusals = want.conflicts(have)
	for _, name := range slices.Sorted(maps.Keys(want.Repositories)) {
		if r := want.Repositories[name]; r.Key.Inline != "" {
			if _, err := r.check(name, []byte(r.Key.Inline), time.Now()); err != nil {
				f.Refusals = append(f.Refusals, err.Error())
			}
		}
	}
	for _, c := range Diff(want, have) {
		if c.Disruption > f.Disruption {
			f.Disruption, f.Because = c.Disruption, c.Fact
		}
	}
	if len(have.Locks) > 0 {
		f.Notes = append(f.Notes, "apt is in use by "+have.Locks[0].String()+": apply waits for it for "+want.patience().String())
	}
	f.Notes = append(f.Notes, want.foreignDecisions(have)...)
	req := want.request(have)
	if !req.changes {
		return f, nil
	}
	if have.unfinished() {
		f.Notes = append(f.Notes, "dpkg has work left from before: apply finishes that, and then asks apt again what it would do")
	}
	pending := want.pending(have)
	if len(req.missing) > 0 {
		f.missing(ctx, m, want, req.missing, pending, have)
	}
	if len(req.args) == 0 {
		return f, nil
	}
	return f, f.simulate(ctx, m, want, req, len(pending) > 0 || have.unfinished() || len(req.missing) > 0)
}

func (f *Forecast) simulate(ctx context.Context, m host.Machine, want Spec, req request, open bool) error {
	actions, err := simulate(ctx, m, want, append([]string{"install"}, req.args...)...)
	var impossible *ImpossibleError
	switch {
	case err != nil && (open || errors.As(err, &impossible) && impossible.Fix):
		f.Notes = append(f.Notes, "apt cannot say yet what it would do ("+firstLine(err)+"): apply asks it again")
		return nil
	case errors.As(err, &impossible):
		f.Refusals = append(f.Refusals, err.Error())
		return nil
	case err != nil:
		return err
	}
	f.Actions = actions
	reasons := want.judge(actions)
	if len(reasons) > 0 {
		own, err := broughtTo(ctx, m, want.Owner)
		if err != nil {
			return err
		}
		reasons = want.judge(actions, own...)
	}
	f.Refusals = append(f.Refusals, reasons...)
	if d, which := interrupted(actions); d > f.Disruption {
		f.Disruption, f.Because = d, which.String()
	}
	return nil
}

// broughtTo is brought without a record.
func broughtTo(ctx context.Context, m host.Machine, kind string) ([]string, error) {
	rec, err := host.OpenRecord(ctx, m, kind)
	if errors.Is(err, host.ErrNoRecord) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return dependenciesOf(rec)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// foreignDecisions describes decisions of other tools about declared packages, and how
// Apply treats them.
func (s Spec) foreignDecisions(have State) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Packages)) {
		w, p := s.Packages[name], have.Packages[name]
		if p.IsInstalled() && p.Held && !w.Hold {
			all = append(all, name+" is held on the machine (apt-mark hold): the hold is removed, because hold = true is not declared")
		}
		if p.Preferred != "" && !Matches(w.Version, p.Preferred) {
			all = append(all, fmt.Sprintf("preferences on the machine put %s %s above what is declared: apply brings what is declared, \"apt upgrade\" by hand the other unless it is held (apt-cache policy %[1]s)", name, p.Preferred))
		}
		if p.Candidate == "" && len(p.Versions) > 0 {
			all = append(all, fmt.Sprintf("preferences on the machine keep %s from being installed: apply installs it nevertheless, because it is declared (apt-cache policy %[1]s)", name))
		}
	}
	return all
}

func (s Spec) conflicts(have State) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Repositories)) {
		if others := have.otherOwners(name, s.Owner); len(others) > 0 && len(others) == len(have.Owners[name]) { // we come to it
			if _, there := have.Files[sourcesFile(name)]; there && len(diffRepository(name, s, have)) > 0 {
				all = append(all, fmt.Sprintf("repository %s is also repository %s on this machine (%s), and declared "+
					"otherwise there: declare both the same, or give this one another name",
					name, strings.Join(others, " and "), sourcesFile(name)))
			}
		}
		if other, clashes := clash(s.Repositories[name], keyringFile(name), have.Sources); clashes {
			signed := other.SignedBy
			if signed == "" {
				signed = "no key of its own"
			}
			all = append(all, fmt.Sprintf("repository %s is also in %s with %s, and apt reads nothing at all while one repository has two keys: remove it there", name, other.File, signed))
		}
	}
	return all
}

func (s Spec) pending(have State) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Repositories)) {
		if len(diffRepository(name, s, have)) > 0 {
			all = append(all, name)
		}
	}
	return all
}
