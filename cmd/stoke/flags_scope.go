package main

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/pflag"

	"github.com/stokehq/stoke/plan"
)

// scopeFlags are the options that say how much a plan covers and looks at.
type scopeFlags struct {
	targets, excludes []string
	refresh           refresh
	drift             bool
}

// refresh is what a plan reads before it is made.
type refresh string

const (
	refreshAll     refresh = "true"
	refreshNone    refresh = "false"
	refreshChanged refresh = "changed"
)

func (r *refresh) String() string { return string(*r) }
func (r *refresh) Type() string   { return "string" }

func (r *refresh) Set(text string) error {
	switch v := refresh(strings.ToLower(text)); v {
	case refreshAll, refreshNone, refreshChanged:
		*r = v
	case "1", "t":
		*r = refreshAll
	case "0", "f":
		*r = refreshNone
	default:
		return fmt.Errorf("true, false or changed is needed")
	}
	return nil
}

func (f *scopeFlags) add(flags *pflag.FlagSet) {
	f.refresh = refreshAll
	flags.Var(&f.refresh, "refresh", "Which real objects to read first: `WHICH` is true (all), false (none: plan with what the state says) or changed (only what a change touches). The last two are faster, and may miss what changed outside.")
	flags.Lookup("refresh").NoOptDefVal = string(refreshAll)
	flags.StringArrayVar(&f.targets, "target", nil, "Plan only for the module, resource or object at `ADDRESS` and "+
		"its dependencies. May be given several times; for exceptions, not for every day.")
	flags.StringArrayVar(&f.excludes, "exclude", nil, "Leave out the module, resource or object at `ADDRESS` and what depends on it. May be given several times; not together with -target.")
	flags.BoolVar(&f.drift, "drift", false, "Show everything that changed outside of Stoke, not only where it matters to the plan.")
	addFlagGroup(flags, planOptions, "refresh", "target", "exclude", "drift")
}

// shape tells the engine.
func (f *scopeFlags) shape(r *plan.Request) {
	r.Targets, r.Excludes, r.AllDrift = f.targets, f.excludes, f.drift
	r.SkipRefresh, r.RefreshChanged = f.refresh == refreshNone, f.refresh == refreshChanged
}

// check finds options that contradict each other.
func (f *scopeFlags) check() error {
	if len(f.targets) > 0 && len(f.excludes) > 0 {
		return fmt.Errorf("-target and -exclude exclude each other: say either what the plan covers or what it leaves out")
	}
	return nil
}

// warnings remind of a plan that is not whole.
func (f *scopeFlags) warnings() hcl.Diagnostics {
	var diags hcl.Diagnostics
	if len(f.targets) > 0 {
		diags = append(diags, diagnostic(hcl.DiagWarning, "Resource targeting is in effect",
			"With -target the plan covers a part of the configuration only; run \"stoke plan\" without it afterwards to see what else changes."))
	}
	if len(f.excludes) > 0 {
		diags = append(diags, diagnostic(hcl.DiagWarning, "Resource exclusion is in effect",
			"With -exclude the plan leaves out what you named and what depends on it; run \"stoke plan\" without it afterwards to see what else changes."))
	}
	return diags
}
