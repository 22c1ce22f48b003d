package main

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"github.com/google/renameio/v2"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan"
)

// writePlan saves a plan for its owner's eyes, in one step.
func writePlan(name string, pl *plan.Plan) error {
	f, err := renameio.NewPendingFile(name, renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer f.Cleanup() //nolint:errcheck // does nothing after success
	w := bufio.NewWriter(f)
	if err := plan.Encode(w, pl); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// readPlan reads a saved plan.
func readPlan(name string) (*plan.Plan, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return plan.Decode(f, info.Size())
}

// openPlan opens what a saved plan needs: the configuration that it carries
// and the state, which must still be the one that it was made from.
func (o *operation) openPlan(ctx context.Context, name string) (*plan.Plan, error) {
	pl, err := readPlan(name)
	if err != nil {
		o.s.complain(problem("Plan file cannot be read", "%s cannot be read as a saved plan: %s.", name, err))
		return nil, failed
	}
	root, files, diags := modules.Load(modules.InMemory(pl.Files), pl.Dir)
	o.s.files = files
	diags = append(diags, pl.Bind(ctx, o.catalogue)...)
	o.s.complain(diags...)
	if diags.HasErrors() {
		return nil, failed
	}
	o.mode = pl.Mode
	o.config = &configuration{root: root, variables: pl.Variables}
	if err := o.openState(ctx, "Apply"); err != nil {
		return nil, err
	}
	if err := o.checkPlan(ctx, pl); err != nil {
		o.close()
		return nil, err
	}
	return pl, nil
}

func (o *operation) checkPlan(ctx context.Context, pl *plan.Plan) error {
	if err := o.settleOpen(ctx); err != nil {
		return err
	}
	if selected := o.state.workspace(); pl.Workspace != selected {
		o.s.complain(problem("Saved plan of another workspace", "It was made in the workspace %q, and %q is selected. Run \"stoke workspace select %s\" first.", pl.Workspace, selected, pl.Workspace))
		return failed
	}
	if err := pl.Stale(o.state.State()); err != nil {
		o.s.complain(problem("Saved plan is stale", "%s", asSentence(err.Error())))
		return failed
	}
	return nil
}
