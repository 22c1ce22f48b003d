package packages

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/pattern"
)

// Action is one thing that apt would do.
type Action struct {
	Package  string // with :architecture for a foreign one
	Old, New string // versions; "" for none
	Purge    bool
	Vital    bool // it is essential to the system, and apt removes it for nobody who says yes beforehand
	Scripts  bool // its maintainer scripts are known to deal with systemd
}

func (a Action) String() string {
	switch {
	case a.New == "" && a.Purge:
		return "purge " + a.Package + " " + a.Old
	case a.New == "":
		return "remove " + a.Package + " " + a.Old
	case a.Old == "":
		return "install " + a.Package + " " + a.New
	case Compare(a.New, a.Old) > 0:
		return "upgrade " + a.Package + " " + a.Old + " → " + a.New
	case a.New == a.Old:
		return "reinstall " + a.Package + " " + a.New
	}
	return "downgrade " + a.Package + " " + a.Old + " → " + a.New
}

// parseSimulation reads what "apt-get -s" prints, in the format of
// pkgSimulate (apt-pkg/algorithms.cc):
//
//	Inst NAME [OLD] (NEW ORIGIN:VERSION/SUITE, … [ARCH]) [PACKAGES THAT ARE BROKEN MEANWHILE]
//	Conf NAME (NEW ORIGIN… [ARCH])
//	Remv NAME [OLD] […]
//	Purg NAME [OLD] […]
//
// Other lines are for people. A line that begins like an action but cannot be
// parsed is an error: nothing is installed on a guess.
func parseSimulation(text string) ([]Action, error) {
	var all []Action
	vital, warned := map[string]bool{}, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \r\n")
		if strings.HasPrefix(line, "WARNING: The following essential packages will be removed") {
			warned = true
		} else if names, of := strings.CutPrefix(line, "  "); warned && of {
			for _, name := range strings.Fields(names) {
				vital[name] = true
			}
		} else {
			warned = warned && strings.HasPrefix(line, "This should NOT")
		}
		if len(line) < 5 || line[4] != ' ' {
			continue
		}
		verb, rest := line[:4], line[5:]
		if !slices.Contains([]string{"Inst", "Remv", "Purg", "Conf"}, verb) {
			continue
		}
		a, err := parseAction(rest, verb == "Inst" || verb == "Conf")
		if err != nil {
			return nil, fmt.Errorf("apt-get -s: line %.200q %w", line, err)
		}
		if verb != "Conf" {
			a.Purge, a.Vital = verb == "Purg", vital[a.Package] && a.New == ""
			all = append(all, a)
		}
	}
	return all, nil
}

func parseAction(rest string, comes bool) (Action, error) {
	var a Action
	a.Package, rest, _ = strings.Cut(rest, " ")
	if !packageName.MatchString(a.Package) {
		return a, errors.New("names no package")
	}
	if inner, ok := strings.CutPrefix(rest, "["); ok {
		if a.Old, rest, ok = strings.Cut(inner, "]"); !ok {
			return a, errors.New("has an old version without end")
		}
		rest = strings.TrimPrefix(rest, " ")
	}
	if comes {
		inner, ok := strings.CutPrefix(rest, "(")
		if !ok {
			return a, errors.New("has no new version")
		}
		if a.New, rest, ok = strings.Cut(inner, " "); !ok || a.New == "" || !strings.Contains(rest, ")") {
			return a, errors.New("has a new version without end")
		}
	}
	for _, v := range []string{a.Old, a.New} {
		if v != "" && (!versionGlob.MatchString(v) || strings.Contains(v, "*")) {
			return a, fmt.Errorf("has %q for a version", v)
		}
	}
	if !comes && a.Old == "" {
		return a, errors.New("has no version")
	}
	return a, nil
}

type request struct {
	args      []string // name=version, and name- for a removal
	missing   []Unavailable
	changes   bool // something is not as it should be
	downgrade bool
	held      bool // something that is held changes
}

// request works out the versions. All that is declared is in it, so that apt
// keeps what is there already.
func (s Spec) request(have State) request {
	var r request
	for _, name := range slices.Sorted(maps.Keys(s.Packages)) {
		want, p := s.Packages[name], have.Packages[name]
		if p.IsInstalled() && Matches(want.Version, p.Version) {
			r.args = append(r.args, name+"="+p.Version)
			continue
		}
		r.changes = true
		v := newest(want.Version, p.Versions)
		if want.Version == "" && p.Candidate != "" {
			v = p.Candidate
		}
		if v == "" {
			r.missing = append(r.missing, have.missing(name, want.Version, p.Versions))
			continue
		}
		r.args = append(r.args, name+"="+v)
		if p.IsInstalled() {
			r.downgrade = r.downgrade || Compare(v, p.Version) < 0
			r.held = r.held || p.Held
		}
	}
	for _, name := range s.Absent {
		if p := have.Packages[name]; p.IsInstalled() {
			r.args, r.changes, r.held = append(r.args, name+"-"), true, r.held || p.Held
		}
	}
	return r
}

func (st State) missing(name, pattern string, versions []string) Unavailable {
	if plain, own := strings.CutSuffix(name, ":"+st.Architecture); own {
		return Unavailable{name, fmt.Sprintf("package %s is declared as %s: :%s is the machine's own architecture, which is left out", name, plain, st.Architecture)}
	}
	if len(versions) == 0 {
		return Unavailable{name, fmt.Sprintf("package %s is in none of the repositories (declare a virtual package by "+
			"the name of a package that provides it)", name)}
	}
	if len(versions) > 8 {
		versions = append(slices.Clone(versions[:8]), "…")
	}
	return Unavailable{name, fmt.Sprintf("no version of %s is %s: there are %s", name, pattern, strings.Join(versions, ", "))}
}

// simulateScript lets apt simulate and then looks which of the packages bring
// maintainer scripts that deal with systemd. Its arguments are apt's.
const simulateScript = "# simulate apt-get\n" + systemdScript + `out=$("$@" 2>&1); status=$?
printf '%s\n' "$out"
[ $status = 0 ] || exit $status
for n in $(printf '%s\n' "$out" | awk '$1 == "Inst" || $1 == "Remv" || $1 == "Purg" { print $2 }'); do ! systemd "$n" || printf '\tscripts\t%s\n' "$n"; done
exit 0`

// ImpossibleError is apt's refusal, in its own words.
type ImpossibleError struct {
	Why string
	Fix bool // what is installed already does not go together
}

func (e *ImpossibleError) Error() string {
	return "apt cannot do it: " + e.Why + ": declare versions that go together"
}

func simulate(ctx context.Context, m host.Machine, s Spec, args ...string) ([]Action, error) {
	line := slices.Concat([]string{"sh", "-c", simulateScript, "sh"}, s.environment(), []string{"apt-get", "-s", "-q", noRecommends}, args)
	out, status, err := host.LookStatus(ctx, m, line...)
	if err != nil {
		return nil, fmt.Errorf("simulate apt: %w", err)
	}
	if status != 0 {
		if why := unmet(string(out)); why != "" {
			return nil, &ImpossibleError{Why: why, Fix: strings.Contains(string(out), "--fix-broken")}
		}
		if problems := parseUpdate(string(out)); len(problems) > 0 && strings.Contains(string(out), "list of sources") {
			return nil, &UpdateError{Problems: problems}
		}
		return nil, &ssh.CommandError{Host: m.Name(), Command: ssh.QuoteAll(slices.Concat([]string{"apt-get", "-s", noRecommends}, args)...), Status: status, Output: lastLines(string(out), 10)}
	}
	actions, err := parseSimulation(string(out))
	if err != nil {
		return nil, err
	}
	for i := range actions {
		actions[i].Scripts = strings.Contains(string(out), "\n\tscripts\t"+actions[i].Package+"\n")
	}
	return actions, nil
}

// noRecommends is for every command that chooses packages: only what they need
// comes along.
const noRecommends = "--no-install-recommends"

var unmetLine = pattern.New(`(?m)^ *([a-z0-9][a-z0-9+.:-]*) : (.+)$|^ +((?:Pre)?Depends|Conflicts|Breaks|Recommends): (.+)$|^E: ((?:Version|Package|Unable to locate|Pkg).+)$`)

// unmet takes from apt's explanation the lines that say something.
func unmet(text string) string {
	var why []string
	for _, m := range unmetLine.FindAllStringSubmatch(text, 20) {
		switch {
		case m[1] != "":
			why = append(why, m[1]+" "+strings.TrimSpace(m[2]))
		case m[3] != "":
			why = append(why, m[3]+": "+strings.TrimSpace(m[4]))
		default:
			why = append(why, strings.TrimSpace(m[5]))
		}
	}
	return strings.Join(why, "; ")
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// judge says what nobody declared.
func (s Spec) judge(actions []Action, allowed ...string) []string {
	var undeclared, wrong []string
	for _, a := range actions {
		want, declared := s.Packages[a.Package]
		switch {
		case a.Vital:
			wrong = append(wrong, fmt.Sprintf("apt would %s, which is essential to the system: apt removes no such package", a))
		case declared && a.New == "":
			wrong = append(wrong, fmt.Sprintf("apt would %s, which is declared: it cannot be installed together with the rest", a))
		case declared && !Matches(want.Version, a.New):
			wrong = append(wrong, fmt.Sprintf("apt would %s, but %s is declared", a, want.Version))
		case a.New != "" && slices.Contains(s.Absent, a.Package):
			wrong = append(wrong, fmt.Sprintf("apt would %s, which is declared absent", a))
		case declared || a.Old == "" || slices.Contains(s.Allow, a.Package) || slices.Contains(allowed, a.Package):
		case a.New == "" && slices.Contains(s.Absent, a.Package):
		default:
			undeclared = append(undeclared, a.String())
		}
	}
	if len(undeclared) > 0 {
		wrong = append(wrong, "apt would also "+strings.Join(undeclared, ", ")+
			", which is not declared: declare these packages with their versions, as absent, or as allowed to change")
	}
	return wrong
}
