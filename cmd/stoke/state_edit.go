package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/state"
)

// editFlags are the options of commands that change the state and nothing
// else.
type editFlags struct {
	lock   lockFlags
	state  string
	backup string
	dryRun bool
	// keep gives each backup a name of its own: without a backup the command could
	// not be undone.
	keep bool
}

func (f *editFlags) add(s *session, flags *pflag.FlagSet) {
	f.lock.add(flags)
	flags.StringVar(&f.state, "state", "", "Change `FILE` in place of the configuration's state.")
	flags.StringVar(&f.backup, "backup", "", "Keep the state before the change in `FILE`; by default in a file next to the state, with a name that ends in .backup.")
	flags.Bool("ignore-remote-version", false, "Accepted and without effect.")
	s.addNoColor(flags)
	_ = flags.MarkHidden("ignore-remote-version") // it is there
}

func (f *editFlags) addDryRun(flags *pflag.FlagSet) {
	flags.BoolVar(&f.dryRun, "dry-run", false, "Show what would be done, and do nothing.")
}

// openEdit locks and reads the state that a command is going to change.
func (s *session) openEdit(ctx context.Context, f *editFlags, path, operation string) (*stateFile, error) {
	file, err := s.findState(ctx, path)
	if err != nil {
		return nil, err
	}
	if b, ok := file.store.(interface{ SetBackup(path string) }); ok {
		name, _ := file.store.Names()
		switch {
		case f.keep && (f.backup == "" || f.backup == "-"):
			b.SetBackup(fmt.Sprintf("%s.%d.backup", name, time.Now().Unix()))
		case f.backup != "":
			b.SetBackup(f.backup)
		}
	}
	if file, err = s.lockFile(ctx, file, f.lock, operation); err != nil {
		return nil, err
	}
	if n := len(file.Open()); n > 0 {
		s.complain(problem("State has unsettled operations", "A run was cut short, and the results of %d operation(s) "+
			"are not known yet. Run \"stoke apply -refresh-only\" first, which finds out.", n))
		file.close()
		return nil, failed
	}
	return file, nil
}

// write changes the state in one record of its journal, durably: after it,
// whatever happens, all of the change is there or nothing of it.
func (s *session) write(ctx context.Context, file *stateFile, changes []state.Change) error {
	j, err := file.Begin(ctx)
	if err != nil {
		s.complain(unwritten(err))
		return failed
	}
	err = j.Result(ctx, state.Result{Changes: changes, Durable: true})
	if cerr := j.Close(context.WithoutCancel(ctx)); cerr != nil {
		s.rescue(j, errors.Join(err, cerr))
		return failed
	}
	if err != nil {
		s.complain(problem("State not written", "%s.", err))
		return failed
	}
	return nil
}

// emptyState reports, with an error, a state that has nothing to change.
func (s *session) emptyState(file *stateFile) bool {
	if len(file.State().Instances()) > 0 {
		return false
	}
	name, _ := file.store.Names()
	s.complain(problem("State is empty", "%s holds no objects. Apply the configuration first, or say with -state where the state is.", name))
	return true
}

// parseTarget reads an address of a command line.
func (s *session) parseTarget(text string) (address.Target, error) {
	targets, err := s.targets([]string{text})
	if err != nil {
		return address.Target{}, err
	}
	return targets[0], nil
}

// suggestAddress is the end of a message about an address that the state does not
// have: the nearest one.
func suggestAddress(st *state.State, text string) string {
	var names []string
	for _, a := range st.Instances() {
		names = append(names, a.String())
	}
	if near := nearest(text, names); near != "" && near != text {
		return " Did you mean " + near + "?"
	}
	return " \"stoke state list\" shows all addresses."
}

// completing returns what is to be stored of the objects that depend on those
// which leave a state.
func completing(st *state.State, gone []address.Instance) []state.Change {
	departs := make(map[address.Instance]plan.Departure, len(gone))
	for _, a := range gone {
		departs[a] = plan.Leaves
	}
	return plan.DepartureChanges(st, func(a address.Instance, _ string) plan.Departure { return departs[a] })
}
