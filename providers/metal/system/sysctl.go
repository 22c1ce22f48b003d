package system

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// SysctlState is whether a sysctl can be set.
type SysctlState string

const (
	SysctlValue      SysctlState = "value"
	SysctlMissing    SysctlState = "missing"
	SysctlUnreadable SysctlState = "unreadable"
	SysctlReadOnly   SysctlState = "readonly"
)

// SysctlFacts is a sysctl as it is.
type SysctlFacts struct {
	State  SysctlState
	Live   string // normalised
	AtBoot string // what the files in sysctl.d make of it, normalised; "" when they say nothing
	From   string // the file that says so
}

const sysctlFile = "/etc/sysctl.d/99-stoke.conf"

// normalise makes values comparable: the kernel separates numbers by tabs.
func normalise(value string) string { return strings.Join(strings.Fields(value), " ") }

// sysctlPath is where a key is under /proc/sys. As for sysctl(8), the first
// separator counts, so that an interface's name may have dots:
// net/ipv4/conf/eth0.100/forwarding.
func sysctlPath(k string) (string, error) {
	if !key.MatchString(k) {
		return "", errors.New("a key is names with dots or slashes between them, such as net.ipv4.ip_forward")
	}
	p := k
	if k[strings.IndexAny(k, "./")] == '.' {
		p = strings.NewReplacer(".", "/", "/", ".").Replace(k)
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." {
			return "", errors.New("a part of the key is empty or only dots")
		}
	}
	return path.Join("/proc/sys", p), nil
}

type sysctlLine struct{ value, file string }

// sysctlAtBoot is what systemd-sysctl sets, by path: the last line counts, and
// one that names a key in full counts before patterns. (sysctl.d(5))
func sysctlAtBoot(files []confFile) map[string]sysctlLine {
	values := map[string]sysctlLine{}
	for _, f := range files {
		for _, line := range f.lines {
			k, v, ok := strings.Cut(strings.TrimSpace(line), "=")
			if k = strings.TrimPrefix(strings.TrimSpace(k), "-"); !ok || k == "" || strings.ContainsAny(k[:1], "#;") {
				continue
			}
			if p, err := sysctlPath(k); err == nil {
				values[p] = sysctlLine{normalise(v), f.path}
			}
		}
	}
	return values
}

// Display is the declared value where it holds now and at boot.
func (s SysctlFacts) Display(want string) string {
	w := normalise(want)
	switch {
	case s.State == SysctlMissing:
		return "(there is none)"
	case s.State == SysctlUnreadable:
		return "(cannot be read)"
	case s.Live == w && s.AtBoot == w:
		return want
	case s.AtBoot == "" && s.Live == w:
		return s.Live + " until the next boot"
	case s.AtBoot == "" || s.AtBoot == s.Live:
		return s.Live
	case s.From != sysctlFile:
		return fmt.Sprintf("%s (%s after the next boot: %s)", s.Live, s.AtBoot, s.From)
	}
	return fmt.Sprintf("%s (%s after the next boot)", s.Live, s.AtBoot)
}

func diffSysctl(want map[string]string, have map[string]SysctlFacts) []host.Change {
	var changes []host.Change
	for _, k := range keys(want) {
		if shown := have[k].Display(want[k]); shown != want[k] {
			changes = append(changes, host.Change{Fact: "sysctl " + k, Path: []string{"sysctl", k}, Have: shown, Want: want[k]})
		}
	}
	return changes
}

// overrides tells which file makes of a key something else than 99-stoke.conf
// does, because it is read after it. Stoke writes nobody else's files.
func (s SysctlFacts) overrides(want string) string {
	if s.AtBoot == "" || s.AtBoot == normalise(want) || s.From == sysctlFile {
		return ""
	}
	if strings.HasSuffix(path.Dir(s.From), ".d") && path.Base(s.From) < path.Base(sysctlFile) {
		return ""
	}
	return s.From
}

// problem is why a key cannot be set, nil if nothing is known against it.
func (s SysctlFacts) problem(k, want string) error {
	switch {
	case s.State == SysctlMissing && strings.HasPrefix(k, "net.bridge."):
		return fmt.Errorf("sysctl %s: the kernel has it once the module br_netfilter is loaded: declare it in kernel_modules", k)
	case s.State == SysctlMissing && strings.HasPrefix(k, "net.netfilter."):
		return fmt.Errorf("sysctl %s: the kernel has it once the module nf_conntrack is loaded: declare it in kernel_modules", k)
	case s.State == SysctlMissing:
		return fmt.Errorf("sysctl %s: this kernel has no such key", k)
	case s.State == SysctlUnreadable:
		return fmt.Errorf("sysctl %s cannot be read, so its value is not known", k)
	case s.State == SysctlReadOnly && s.Live != normalise(want):
		return fmt.Errorf("sysctl %s is read-only and says %q", k, s.Live)
	}
	if file := s.overrides(want); file != "" {
		return fmt.Errorf("sysctl %s: %s sets it to %q and is read after %s: change it there", k, file, s.AtBoot, sysctlFile)
	}
	return nil
}

// writeSysctl takes keys, their paths and values, sets them and says of each
// that it could not, or that the kernel made something else of it, and prints
// the key. What has no key may be gone.
const writeSysctl = `# write sysctls
rc=0
n() { tr -s '[:space:]' ' ' | sed 's/^ //; s/ $//'; }
while [ $# -ge 3 ]; do
	if [ -z "$1" ] && [ ! -e "$2" ]; then :
	elif ! { printf '%s\n' "$3" >"$2"; } 2>/dev/null; then
		echo "sysctl $1: the kernel does not take \"$3\"" >&2; echo "$1"; rc=1
	elif [ "$(n <"$2")" != "$(printf %s "$3" | n)" ]; then
		echo "sysctl $1: the kernel made \"$(n <"$2")\" of \"$3\"" >&2; echo "$1"; rc=1
	fi
	shift 3
done
exit $rc`

const sysctlKey = "system sysctl "

func applySysctl(ctx context.Context, m host.Machine, rec *host.Record, want map[string]string, have map[string]SysctlFacts) error {
	var set []assigned
	var lines []string
	var wrong []error
	fix := false
	for _, k := range keys(want) {
		s := have[k]
		lines = append(lines, k+" = "+normalise(want[k]))
		if s.Display(want[k]) == want[k] {
			continue
		}
		fix = true
		if err := s.problem(k, want[k]); err != nil {
			wrong = append(wrong, err)
			continue
		}
		if s.Live != normalise(want[k]) {
			p, err := sysctlPath(k)
			if err != nil {
				return err
			}
			set = append(set, assigned{k, p, normalise(want[k])})
		}
	}
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	if len(set) > 0 { // before they are written down: a value that the kernel refuses must not wait for the next boot
		if _, err := host.Script(ctx, m, writeSysctl, words(inOrder(set, want))...); err != nil {
			return fmt.Errorf("set sysctl values: %w", err)
		}
	}
	return writeList(ctx, m, rec, sysctlFile, "sysctl values", lines, fix)
}

func words(set []assigned) []string {
	var all []string
	for _, a := range set {
		all = append(all, a.key, a.path, a.value)
	}
	return all
}

func restoreSysctl(ctx context.Context, m host.Machine, rec *host.Record, want map[string]string) ([]host.Outcome, error) {
	var notes []string
	var set []assigned
	beside := map[string]string{}
	for _, note := range rec.Keys(sysctlKey) {
		k := strings.TrimPrefix(note, sysctlKey)
		if _, still := want[k]; still {
			continue
		}
		var was sysctlWas
		if _, err := rec.ReadNote(note, &was); err != nil {
			return nil, err
		}
		p, err := sysctlPath(k)
		if err != nil {
			return nil, err
		}
		notes, set = append(notes, note), append(set, assigned{k, p, was.Value})
		maps.Copy(beside, was.Beside)
	}
	if len(set) == 0 {
		return nil, nil
	}
	given := slices.Clone(set)
	set = inOrder(set, want)
	for _, p := range keys(beside) {
		if !slices.ContainsFunc(set, func(a assigned) bool { return a.path == p }) {
			set = append(set, assigned{path: p, value: beside[p]})
		}
	}
	out, _, err := host.Status(ctx, m, append([]string{"sh", "-c", writeSysctl, "sh"}, words(set)...)...)
	if err != nil {
		return nil, err
	}
	var outcomes []host.Outcome
	refused := strings.Fields(string(out))
	for _, a := range given {
		o := host.Outcome{Fact: "sysctl " + a.key, Fate: host.Restored}
		if slices.Contains(refused, a.key) {
			o.Fate, o.Why = host.Left, fmt.Sprintf("the kernel no longer accepts the former value %q", a.value)
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, rec.Forget(ctx, notes...)
}
