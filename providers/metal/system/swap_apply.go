package system

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

const swapKey = "system swap"

// swapUnit is a unit that was masked.
type swapUnit struct {
	Name   string
	File   bool // it was a file in /etc/systemd/system, which is kept as a file of the record
	Active bool
}

type swapWas struct {
	Active []string
	Fstab  bool     // a line of fstab was commented out
	Lines  []string // of fstab that were swap; null in records of earlier versions
	Units  []swapUnit
	Off    bool `json:",omitempty"` // there was none
}

// untouched reports that swap was off, so that a restore has nothing to do.
// Lines of fstab that were added since stay commented out.
func (w swapWas) untouched() bool { return w.Off && len(w.Units) == 0 }

func (w swapWas) wasListed(line string) bool {
	return !w.Off && (w.Lines == nil || slices.Contains(w.Lines, line))
}

// stopSwap takes swap out of fstab, which comes on standard input where $1 is
// its length, then masks what else makes swap, and switches off what is on. It
// says which units it masked, and whether they were active.
const stopSwap = "# turn swap off\n" + replaceFile + `export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
if [ "$1" ]; then replace /etc/fstab "$1"; systemctl daemon-reload; fi
shift
[ $# -eq 0 ] || systemctl mask -- "$@"
for u in "$@"; do case $u in *.service) systemctl stop -- "$u" ;; esac; done
swapoff -a
[ "$(wc -l </proc/swaps)" -le 1 ] || { echo "swap stays on:" >&2; cat /proc/swaps >&2; exit 1; }`

// fstabUnits says of units whether fstab is where they come from, which needs no
// mask, or a file where the mask has to be, and whether they are active.
const fstabUnits = `# find units of swap
export LC_ALL=C
for u in "$@"; do
	p=$(systemctl show -p SourcePath --value -- "$u" 2>/dev/null)
	f=$(systemctl show -p FragmentPath --value -- "$u" 2>/dev/null)
	a=$(systemctl is-active -- "$u" 2>/dev/null || :)
	[ "$p" = /etc/fstab ] && k=fstab || { [ "$f" = "/etc/systemd/system/$u" ] && [ -f "$f" ] && k=file || k=other; }
	printf '%s\t%s\t%s\n' "$u" "$k" "$a"
done`

func applySwap(ctx context.Context, m host.Machine, rec *host.Record, have *SwapFacts) error {
	was := swapWas{Active: have.Active, Fstab: have.inFstab(), Lines: swapLines(have.Fstab)}
	var mask []string
	if units := append(slices.Clone(have.Units), have.Services...); len(units) > 0 {
		out, err := host.Script(ctx, m, fstabUnits, units...)
		if err != nil {
			return fmt.Errorf("look at what makes swap: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(fields) != 3 || !slices.Contains(units, fields[0]) {
				return fmt.Errorf("look at what makes swap: %q was not asked for", line)
			}
			if fields[1] != "fstab" {
				mask = append(mask, fields[0])
				was.Units = append(was.Units, swapUnit{Name: fields[0], File: fields[1] == "file", Active: fields[2] == "active"})
			}
		}
	}
	if err := rememberSwap(ctx, rec, was); err != nil {
		return err
	}
	for _, u := range was.Units {
		if u.File { // a mask needs its place
			name := "/etc/systemd/system/" + u.Name
			if err := rec.KeepFile(ctx, name); err != nil {
				return err
			}
			if err := host.Remove(ctx, m, name); err != nil {
				return err
			}
		}
	}
	var fstab []byte
	if have.inFstab() {
		fstab = []byte(withoutSwap(have.Fstab))
	}
	args := append([]string{"sh", "-c", stopSwap, "sh", length(fstab)}, mask...)
	if _, err := m.Run(ctx, host.Command{Args: args, Stdin: fstab}); err != nil {
		return fmt.Errorf("switch swap off: %w", err)
	}
	return nil
}

// rememberSwap extends the note of the former state: swap that was switched on
// later did not exist then, but masked units have to be unmasked.
func rememberSwap(ctx context.Context, rec *host.Record, now swapWas) error {
	var was swapWas
	known, err := rec.ReadNote(swapKey, &was)
	if err != nil {
		return err
	}
	if !known {
		return rec.Remember(ctx, swapKey, now)
	}
	was.Fstab = was.Fstab || now.Fstab
	for _, u := range now.Units {
		if !slices.ContainsFunc(was.Units, func(o swapUnit) bool { return o.Name == u.Name }) {
			u.Active = u.Active && !was.Off
			was.Units = append(was.Units, u)
		}
	}
	return rec.Set(ctx, swapKey, was)
}

// unmaskSwap takes masks away. systemd is told later.
const unmaskSwap = `# unmask units of swap
set -e
for u in "$@"; do
	f="/etc/systemd/system/$u"
	if [ "$(readlink "$f" || :)" = /dev/null ]; then rm -f -- "$f"; fi
done`

// startSwap puts fstab back from standard input, where $1 is its length, and
// switches on again what was on: units, which may have to make a device first,
// then what else there was. It prints what it could not.
const startSwap = "# turn swap on\n" + replaceFile + `export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
on() { awk -v d="$1" 'NR > 1 { f = $1; gsub(/\\040/, " ", f); if (f == d) found = 1 } END { exit !found }' /proc/swaps; }
[ -z "$1" ] || replace /etc/fstab "$1"
shift
systemctl daemon-reload
for d in "$@"; do
	case $d in
	/*) on "$d" || swapon -- "$d" >&2 || printf '%s\n' "$d" ;;
	*) systemctl start -- "$d" >&2 || printf '%s\n' "$d" ;;
	esac
done`

func restoreSwap(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Outcome, error) {
	var was swapWas
	if known, err := rec.ReadNote(swapKey, &was); !known || err != nil {
		return nil, err
	}
	if was.untouched() && !was.Fstab {
		return nil, rec.Forget(ctx, swapKey)
	}
	now, exists, err := host.ReadFile(ctx, m, "/etc/fstab")
	if err != nil {
		return nil, err
	}
	var outcomes []host.Outcome
	for line := range strings.SplitSeq(string(now), "\n") {
		if l, marked := strings.CutPrefix(line, swapMark); marked && !was.wasListed(strings.TrimSpace(l)) {
			outcomes = append(outcomes, host.Outcome{Fact: "swap in /etc/fstab", Fate: host.Left, Why: fmt.Sprintf("%q "+
				"was added since, and stays commented out", l)})
		}
	}
	if was.untouched() {
		return outcomes, rec.Forget(ctx, swapKey)
	}
	var fstab []byte
	if back := withSwap(string(now), was.wasListed); exists && back != string(now) {
		fstab = []byte(back)
	}
	var units, start []string
	var kept []error
	for _, u := range was.Units {
		units = append(units, u.Name)
		if u.Active {
			start = append(start, u.Name)
		}
	}
	if _, err := host.Script(ctx, m, unmaskSwap, units...); err != nil {
		return nil, fmt.Errorf("unmask what makes swap: %w", err)
	}
	for _, u := range was.Units {
		if u.File {
			_, err := rec.RestoreFile(ctx, "/etc/systemd/system/"+u.Name)
			kept = append(kept, err)
		}
	}
	if err := errors.Join(kept...); err != nil {
		return nil, err
	}
	args := append([]string{"sh", "-c", startSwap, "sh", length(fstab)}, append(start, was.Active...)...)
	out, err := m.Run(ctx, host.Command{Args: args, Stdin: fstab})
	if err != nil {
		return nil, fmt.Errorf("switch swap on again: %w", err)
	}
	outcome := host.Outcome{Fact: "swap", Fate: host.Restored}
	if off := strings.Fields(string(out.Stdout)); len(off) > 0 {
		outcome = host.Outcome{Fact: "swap", Fate: host.Left, Why: strings.Join(off, ", ") + " can no longer be switched on"}
	}
	return append(outcomes, outcome), rec.Forget(ctx, swapKey)
}
