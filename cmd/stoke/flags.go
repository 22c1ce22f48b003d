package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/providers"
)

// planFlags are the options of plan, apply and destroy.
type planFlags struct {
	destroy, refreshOnly bool
	scopeFlags
	replace         []string
	variables       []modules.Flag
	parallelism     parallelism
	input           bool
	state, stateOut string
	backup          string
	generate        string
	lock            lockFlags
	json            bool
}

type lockFlags struct {
	lock    bool
	timeout time.Duration
}

const (
	planOptions  = "Options that shape the plan"
	otherOptions = "Other options"
)

// addFlagGroup puts flags into a group of the help text.
func addFlagGroup(flags *pflag.FlagSet, title string, names ...string) {
	for _, name := range names {
		if err := flags.SetAnnotation(name, optionGroup, []string{title}); err != nil {
			panic(err) // a flag that is not there
		}
	}
}

// addPlan defines the options that shape a plan. withModes adds those that
// choose what the plan is for.
func (f *planFlags) addPlan(flags *pflag.FlagSet, withModes bool) {
	if withModes {
		flags.BoolVar(&f.destroy, "destroy", false, "Plan to destroy everything that the state holds.")
		flags.BoolVar(&f.refreshOnly, "refresh-only", false, "Look for what changed outside of Stoke, and plan to store it; nothing else.")
		addFlagGroup(flags, planOptions, "destroy", "refresh-only")
	}
	f.scopeFlags.add(flags)
	flags.StringArrayVar(&f.replace, "replace", nil, "Recreate the object at `ADDRESS` even if it could stay. May be given several times.")
	f.addVariables(flags)
	addFlagGroup(flags, planOptions, "replace", "var", "var-file")
}

func (f *planFlags) addVariables(flags *pflag.FlagSet) {
	flags.Var(&variableFlag{list: &f.variables}, "var", "Set an input variable of the root module: `'NAME=VALUE'`. May be given several times.")
	flags.Var(&variableFlag{list: &f.variables, file: true}, "var-file", "Read variables from `FILE`, in addition "+
		"to terraform.tfvars and *.auto.tfvars. May be given several times.")
}

// addRun defines the options of how a plan or an apply is carried out.
func (f *planFlags) addRun(s *session, flags *pflag.FlagSet) {
	flags.BoolVar(&s.compact, "compact-warnings", false, "Where there are warnings and no errors, print their summaries only.")
	flags.BoolVar(&s.concise, "concise", false, "Leave out the lines about objects being read.")
	flags.BoolVar(&f.input, "input", true, "Do not prompt; fail if input is missing.")
	f.lock.add(flags)
	s.addNoColor(flags)
	flags.Var(&f.parallelism, "parallelism", "How many objects are worked on at the same time, at most: `N`, 10 unless said otherwise. TYPE=N, PROVIDER=N and host=N limit one type, one provider and each machine. May be given several times.")
	flags.StringVar(&f.state, "state", "", "Keep the state in `FILE` in place of terraform.tfstate.")
	flags.StringVar(&f.stateOut, "state-out", "", "Read the state as -state says, and write it to `FILE`; what was read stays as it is.")
	flags.BoolVar(&f.json, "json", false, "Print one JSON object per line, as Terraform does; asks for nothing.")
	addFlagGroup(flags, otherOptions, "compact-warnings", "concise", "input", "lock", "lock-timeout", "no-color", "parallelism", "state", "state-out", "json")
}

func (l *lockFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&l.lock, "lock", true, "Do not lock the state. Dangerous when others may work on it.")
	flags.DurationVar(&l.timeout, "lock-timeout", 0, "How long to wait for the lock of another run: `DURATION`, "+
		"such as 10s.")
}

func (s *session) addNoColor(flags *pflag.FlagSet) {
	flags.BoolVar(&s.noColor, "no-color", false, "Print bare text, without colours and frames.")
}

// variableFlag collects -var and -var-file in the order in which they stand
// on the command line: each overrules those before it.
type variableFlag struct {
	list *[]modules.Flag
	file bool
}

func (v *variableFlag) String() string { return "" }
func (v *variableFlag) Type() string   { return "string" }

func (v *variableFlag) Set(text string) error {
	*v.list = append(*v.list, modules.Flag{File: v.file, Text: text})
	return nil
}

// check finds options that contradict each other.
func (f *planFlags) check(cmd *cobra.Command, built providers.Catalogue) error {
	fail := func(format string, args ...any) error {
		return &usageError{path: cmd.CommandPath(), err: fmt.Errorf(format, args...)}
	}
	switch {
	case f.destroy && f.refreshOnly:
		return fail("-destroy and -refresh-only exclude each other")
	case f.refreshOnly && f.refresh != refreshAll:
		return fail("-refresh-only and -refresh=%s exclude each other", f.refresh)
	case f.refreshOnly && len(f.replace) > 0:
		return fail("-refresh-only and -replace exclude each other")
	case f.destroy && len(f.replace) > 0:
		return fail("-destroy and -replace exclude each other")
	}
	if err := f.parallelism.check(built); err != nil {
		return fail("%w", err)
	}
	if err := f.scopeFlags.check(); err != nil {
		return fail("%w", err)
	}
	return nil
}
