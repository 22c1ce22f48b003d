package system

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// ModuleState is whether the kernel has a module.
type ModuleState string

const (
	ModuleLoaded  ModuleState = "loaded"
	ModuleBuiltin ModuleState = "builtin" // the kernel says so in modules.builtin
	ModuleFeature ModuleState = "feature" // what it does is there, the kernel does not say from where
	ModuleAbsent  ModuleState = "absent"  // it can be loaded
	ModuleUnknown ModuleState = "unknown" // the kernel has none of that name
)

// ModuleFacts is a kernel module as it is.
type ModuleFacts struct {
	State  ModuleState
	AtBoot bool // in modules-load.d, or nothing has to be done for it
}

const modulesFile = "/etc/modules-load.d/stoke.conf"

// underscored is how the kernel calls a module, which takes - for _.
func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

func (p *parser) module(name, state string) error {
	s := ModuleState(state)
	if !slices.Contains([]ModuleState{ModuleLoaded, ModuleBuiltin, ModuleFeature, ModuleAbsent, ModuleUnknown}, s) {
		return fmt.Errorf("module %s is %q", name, state)
	}
	p.f.Modules[name] = ModuleFacts{State: s}
	return nil
}

// modulesAtBoot are the modules that systemd-modules-load loads.
func modulesAtBoot(files []confFile) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		for _, line := range f.lines {
			// /etc/modules may have parameters behind a name
			if fields := strings.Fields(line); len(fields) > 0 && !strings.ContainsAny(fields[0][:1], "#;") {
				names[underscored(fields[0])] = true
			}
		}
	}
	return names
}

// Holds tells whether the module is there, now and after the next boot.
func (m ModuleFacts) Holds() bool {
	return m.present() && m.AtBoot
}

func (m ModuleFacts) present() bool { return m.State != ModuleAbsent && m.State != ModuleUnknown }

func (m ModuleFacts) display() string {
	switch {
	case m.State == ModuleUnknown:
		return "not known to this kernel"
	case m.State == ModuleAbsent && m.AtBoot:
		return "not loaded before the next boot"
	case m.State == ModuleAbsent:
		return "not loaded"
	case !m.AtBoot:
		return "loaded until the next boot"
	}
	return "loaded"
}

func diffModules(want []string, have map[string]ModuleFacts) []host.Change {
	var changes []host.Change
	for _, name := range sorted(want) {
		if m := have[name]; !m.Holds() {
			changes = append(changes, host.Change{Fact: "kernel module " + name, Path: []string{"kernel_modules", name}, Have: m.display(), Want: "loaded"})
		}
	}
	return changes
}

const moduleKey = "system module "

// heldBefore reports whether a module was loaded, now and at boot, without stoke.
func heldBefore(rec *host.Record, name string) bool {
	held := false
	_, err := rec.ReadNote(moduleKey+name, &held)
	return held && err == nil
}

const loadModules = `# load kernel modules
export PATH="$PATH:/usr/sbin:/sbin"
rc=0
for n in "$@"; do modprobe -- "$n" || { echo "kernel module $n cannot be loaded" >&2; rc=1; }; done
exit $rc`

// applyModules loads what is not there and writes the list for the next boot,
// of all declared modules that are modules here.
func applyModules(ctx context.Context, m host.Machine, rec *host.Record, want []string, have map[string]ModuleFacts) error {
	var load, boot []string
	fix := false
	for _, name := range sorted(want) {
		facts := have[name]
		fix = fix || !facts.Holds()
		switch facts.State {
		case ModuleUnknown:
			return moduleUnknown(name)
		case ModuleAbsent:
			load = append(load, name)
		}
		if facts.State != ModuleFeature {
			boot = append(boot, name)
		}
	}
	if len(load) > 0 {
		if _, err := host.Script(ctx, m, loadModules, load...); err != nil {
			return fmt.Errorf("load kernel modules: %w", err)
		}
	}
	return writeList(ctx, m, rec, modulesFile, "kernel modules", boot, fix)
}

func moduleUnknown(name string) error {
	return fmt.Errorf("kernel module %s: the running kernel has none of that name; install the package that has it, or boot a kernel that does", name)
}

// writeList writes a configuration file of stoke if necessary: to fix
// something, or because another file sets other values. An empty list removes
// the file.
func writeList(ctx context.Context, m host.Machine, rec *host.Record, name, what string, lines []string, fix bool) error {
	known := slices.Contains(rec.KeptFiles(), name)
	if len(lines) == 0 {
		if !known {
			return nil
		}
		_, err := rec.RestoreFile(ctx, name)
		return err
	}
	text := "# Written by stoke: the " + what + " that it manages on this machine.\n" + strings.Join(lines, "\n") + "\n"
	if !known && !fix {
		return nil // all of it holds without us
	}
	now, exists, err := host.ReadFile(ctx, m, name)
	if err != nil || exists && string(now) == text {
		return err
	}
	return rec.WriteFile(ctx, name, []byte(text))
}

// restoreModules lets go of the modules that are not wanted any more. They stay
// loaded: nobody can tell who has come to need them.
func restoreModules(ctx context.Context, rec *host.Record, want []string) ([]host.Outcome, error) {
	var outcomes []host.Outcome
	for _, k := range rec.Keys(moduleKey) {
		name := strings.TrimPrefix(k, moduleKey)
		if slices.Contains(want, name) {
			continue
		}
		if !heldBefore(rec, name) {
			outcomes = append(outcomes, host.Outcome{Fact: "kernel module " + name, Fate: host.Left, Why: "it stays loaded until the next boot: others may have come to need it", Expected: true})
		}
		if err := rec.Forget(ctx, k); err != nil {
			return outcomes, err
		}
	}
	return outcomes, nil
}

func keys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

func sorted(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
