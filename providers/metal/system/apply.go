package system

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Problems returns the faults that an apply could not fix, as far as a plan can
// know them: a file with something else in its place, a sysctl that a later
// foreign file sets or that this kernel lacks. A sysctl that a declared module
// may bring is not a problem yet.
func Problems(want Spec, have Facts) []error {
	var wrong []error
	add := func(err error) {
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	absent := slices.ContainsFunc(want.Modules, func(name string) bool { return !have.Modules[name].present() })
	for _, k := range keys(want.Sysctl) {
		if s := have.Sysctl[k]; s.State != SysctlMissing || !absent {
			add(s.problem(k, want.Sysctl[k]))
		}
	}
	for _, name := range keys(want.Files) {
		add(have.Files[name].obstacle(name))
	}
	return wrong
}

// NoTimeService says that nothing is installed that could keep the clock right as
// declared, and that none of the packages to come is such a service.
func NoTimeService(want Spec, have Facts, packages []string) error {
	if want.Time == nil || slices.ContainsFunc(packages, func(p string) bool {
		return p == want.Time.Service || want.Time.Service == "" && slices.Contains(TimeServices, p)
	}) {
		return nil
	}
	return have.time().missing(*want.Time)
}

// Doubts is what will be a problem unless packages that are installed first
// bring it: a kernel module that there is not.
func Doubts(want Spec, have Facts) []error {
	var doubts []error
	for _, name := range sorted(want.Modules) {
		if have.Modules[name].State == ModuleUnknown {
			doubts = append(doubts, moduleUnknown(name))
		}
	}
	return doubts
}

// UnknownNames are what is declared by the names of users, groups and a time zone
// that the machine does not know. It is a problem unless packages that are
// installed first bring them.
func UnknownNames(want Spec, have Facts) []error {
	var all []error
	if z := want.Timezone; have.Unknown["time zone "+z] {
		all = append(all, fmt.Errorf("time zone %s does not exist on the machine (/usr/share/zoneinfo): fix the name, "+
			"or have package tzdata installed", z))
	}
	for _, name := range keys(want.Files) {
		f := want.Files[name]
		if have.Unknown["user "+f.Owner] {
			all = append(all, fmt.Errorf("file %s: user %s, the declared owner, does not exist on the machine: fix the name, or make the user first", name, f.Owner))
		}
		if have.Unknown["group "+f.Group] {
			all = append(all, fmt.Errorf("file %s: group %s, the declared owner, does not exist on the machine: fix the "+
				"name, or make the group first", name, f.Group))
		}
	}
	return all
}

// Apply makes the machine as it is declared, and puts back what was declared
// once and is no more. Files come first, because they may configure the rest,
// modules before the sysctl keys that they bring.
func Apply(ctx context.Context, m host.Machine, rec *host.Record, want Spec, have Facts) error {
	left, err := release(ctx, m, rec, want)
	if err != nil {
		return err
	}
	host.ReportLeft(ctx, left)
	if err := Table.Note(ctx, rec, want, have); err != nil {
		return err
	}
	if len(want.Files) > 0 && len(diffFiles(want.Files, have.Files)) > 0 {
		host.Step(ctx, "writing files")
	}
	if err := applyFiles(ctx, m, rec, want.Files, have.Files); err != nil {
		return err
	}
	if len(diffModules(want.Modules, have.Modules)) > 0 {
		host.Step(ctx, "loading kernel modules")
	}
	if err := applyModules(ctx, m, rec, want.Modules, have.Modules); err != nil {
		return err
	}
	sysctls, err := sysctlNow(ctx, m, want, have)
	if err != nil {
		return err
	}
	have.Sysctl = sysctls // modules bring keys, which are noted now
	if err := Table.Note(ctx, rec, want, have); err != nil {
		return err
	}
	if len(diffSysctl(want.Sysctl, sysctls)) > 0 {
		host.Step(ctx, "setting sysctl values")
	}
	if err := applySysctl(ctx, m, rec, want.Sysctl, sysctls); err != nil {
		return err
	}
	return applyRest(ctx, m, rec, want, have)
}

// ApplyName sets the host name alone: what apply does first, because sudo may take
// seconds each time where it does not resolve.
func ApplyName(ctx context.Context, m host.Machine, rec *host.Record, want string) error {
	spec := Spec{Hostname: want}
	have, err := Observe(ctx, m, spec)
	if err != nil || len(diffName(want, have.Name)) == 0 {
		return err
	}
	if err := Table.Note(ctx, rec, spec, have); err != nil {
		return err
	}
	host.Step(ctx, "setting the host name")
	return applyName(ctx, m, rec, want, have.Name)
}

// sysctlNow looks again where loading modules may have brought keys.
func sysctlNow(ctx context.Context, m host.Machine, want Spec, have Facts) (map[string]SysctlFacts, error) {
	for _, s := range have.Sysctl {
		if s.State == SysctlMissing && len(want.Modules) > 0 {
			now, err := Observe(ctx, m, Spec{Sysctl: want.Sysctl})
			return now.Sysctl, err
		}
	}
	return have.Sysctl, nil
}

func applyRest(ctx context.Context, m host.Machine, rec *host.Record, want Spec, have Facts) error {
	if want.Hostname != "" && len(diffName(want.Hostname, have.Name)) > 0 {
		host.Step(ctx, "setting the host name")
		if err := applyName(ctx, m, rec, want.Hostname, have.Name); err != nil {
			return err
		}
	}
	if want.SwapOff && len(diffSwap(have.Swap)) > 0 {
		host.Step(ctx, "switching swap off")
		if err := applySwap(ctx, m, rec, have.Swap); err != nil {
			return err
		}
	}
	if want.Timezone != "" {
		if err := applyTimezone(ctx, m, want.Timezone, have.Timezone); err != nil {
			return err
		}
	}
	if want.Time == nil {
		return nil
	}
	if len(diffTime(*want.Time, have.Time)) > 0 {
		host.Step(ctx, "starting the time service")
	}
	return applyTime(ctx, m, rec, *want.Time, have.Time)
}

// Restore puts back all that stoke changed.
//
// Boot configuration is restored first: a machine whose power is cut in between boots
// with the defaults of the kernel, and the notes still have the former values.
func Restore(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Outcome, error) {
	var outcomes []host.Outcome
	for _, file := range []struct{ name, fact string }{{sysctlFile, "sysctl values at boot"}, {modulesFile, "kernel modules at boot"}} {
		if !slices.Contains(rec.KeptFiles(), file.name) {
			continue
		}
		outcome, err := rec.RestoreFile(ctx, file.name)
		if err != nil {
			return outcomes, err
		}
		outcome.Fact = file.fact
		outcomes = append(outcomes, outcome)
	}
	released, err := release(ctx, m, rec, Spec{})
	return append(outcomes, released...), err
}

// release puts back what want does not declare. All of it is tried.
func release(ctx context.Context, m host.Machine, rec *host.Record, want Spec) ([]host.Outcome, error) {
	var outcomes []host.Outcome
	var failed []error
	add := func(o []host.Outcome, err error) {
		outcomes = append(outcomes, o...)
		if err != nil {
			failed = append(failed, err)
		}
	}
	add(restoreTime(ctx, m, rec, want.Time))
	if want.Timezone == "" {
		add(restoreTimezone(ctx, rec))
	}
	if !want.SwapOff {
		add(restoreSwap(ctx, m, rec))
	}
	if want.Hostname == "" {
		add(restoreName(ctx, m, rec))
	}
	add(restoreSysctl(ctx, m, rec, want.Sysctl))
	add(restoreModules(ctx, rec, want.Modules))
	add(restoreFiles(ctx, rec, want.Files))
	add(rec.RemoveFolders(ctx, part, func(dir string) bool { return leadsTo(dir, want.Files) }))
	return outcomes, errors.Join(failed...)
}

// leadsTo reports whether a wanted file is in a folder: an interrupted apply
// made such a folder for the file, so it is not foreign.
func leadsTo(dir string, want map[string]File) bool {
	for name := range want {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}
