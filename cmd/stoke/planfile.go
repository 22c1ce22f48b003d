package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan"
)

// writePlan saves a plan for its owner's eyes, in one step, with what is
// sensitive in it sealed.
func (s *session) writePlan(ctx context.Context, name string, pl *plan.Plan) error {
	key, err := s.sealingKey(ctx, pl)
	if err != nil {
		return err
	}
	switch info, err := os.Stat(name); {
	case err != nil: // it is still to be made
	case info.IsDir():
		return errors.New("it is a folder")
	case !info.Mode().IsRegular(): // a pipe, /dev/null: it stays what it is
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(encodePlan(f, pl, key), f.Close())
	default: // a link stays a link
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	}
	folder := filepath.Dir(name)
	f, err := renameio.NewPendingFile(name, renameio.WithTempDir(folder), renameio.WithStaticPermissions(0o600))
	if at := (*fs.PathError)(nil); errors.As(err, &at) { // its path is that of a temporary file
		return fmt.Errorf("folder %s: %w", folder, at.Err)
	}
	if err != nil {
		return err
	}
	defer f.Cleanup() //nolint:errcheck // does nothing after success
	if err := encodePlan(f, pl, key); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

func encodePlan(f io.Writer, pl *plan.Plan, key *plan.Key) error {
	w := bufio.NewWriter(f)
	if err := plan.Encode(w, pl, key); err != nil {
		return err
	}
	return w.Flush()
}

// readPlan reads a saved plan, with its key where that is at hand.
func (s *session) readPlan(ctx context.Context, name string) (*plan.Plan, error) {
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
	key, given, err := s.planKey(ctx)
	if err != nil {
		return nil, err
	}
	pl, err := plan.Decode(f, info.Size(), key)
	switch {
	case errors.Is(err, plan.ErrKey):
		return nil, fmt.Errorf("%w than the key in %s or %s", err, planKeyVariable, planKeyCommand)
	case err == nil && given && !pl.Signed:
		return nil, plan.ErrUnsigned
	case err != nil:
		return nil, err
	}
	for _, name := range pl.SealedFiles() {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() > maxConfiguration {
			continue // the name is whatever the plan file says
		}
		if content, err := os.ReadFile(name); err == nil {
			_ = pl.SupplyFile(name, content) // or it stays away: who needs it says so
		}
	}
	return pl, nil
}

// maxConfiguration bounds what is read of one file of the configuration.
const maxConfiguration = 64 << 20

// openPlan opens what a saved plan needs: the configuration that it carries
// and the state, which must still be the one that it was made from.
func (o *operation) openPlan(ctx context.Context, name string) (*plan.Plan, error) {
	pl, err := o.s.readPlan(ctx, name)
	if err != nil {
		o.s.complain(problem("Plan file cannot be read", "%s cannot be read as a saved plan: %s.", name, err))
		return nil, failed
	}
	if names := pl.SealedFiles(); len(names) > 0 {
		o.s.complain(problem("Plan is sealed",
			"The key that the plan was sealed with is not here, and %s, which says something sensitive, is not here either as it was when the plan was made.\n\nSet the key in %s or %s, or apply where the configuration is.", names[0], planKeyVariable, planKeyCommand))
		return nil, failed
	}
	root, files, diags := modules.Load(modules.InMemory(pl.Files), pl.Dir)
	o.s.files = files
	diags = append(diags, pl.Bind(ctx, o.catalogue)...)
	given, more := o.ephemerals(root, pl)
	diags = append(diags, more...)
	if !diags.HasErrors() {
		diags = append(diags, o.contradicted(root, pl)...)
	}
	o.s.complain(diags...)
	if diags.HasErrors() {
		return nil, failed
	}
	if err := o.unlock(pl, root); err != nil {
		return nil, err
	}
	o.mode = pl.Mode
	o.config = &configuration{root: root, variables: maps.Clone(pl.Variables)}
	maps.Copy(o.config.variables, given)
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
	if err := pl.Recover(o.state.State()); err != nil {
		o.s.complain(problem("Plan cannot be applied without its key",
			"%s. Set the key that the plan was made with in %s or %s, or make a new plan here.", err, planKeyVariable, planKeyCommand))
		return failed
	}
	return nil
}

// unlock gives a plan whose key is not at hand its sensitive variables again,
// from wherever variables come.
func (o *operation) unlock(pl *plan.Plan, root *modules.Module) error {
	if pl.Locked == nil || len(pl.Locked.Variables) == 0 {
		return nil
	}
	given, _, diags := modules.Values(root, modules.Inputs{Environ: o.s.environ, Source: modules.OnDisk(), Dir: ".", Flags: o.flags.variables}, o.s.files)
	if diags.HasErrors() {
		o.s.complain(diags...)
		return failed
	}
	values := make(map[string]cty.Value)
	for _, name := range pl.Locked.Variables {
		if v, ok := given[name]; ok {
			values[name] = v.Value
		}
	}
	if err := pl.Supply(values); err != nil {
		o.s.complain(problem("Plan is sealed",
			"The key that the plan was sealed with is not here, and %s.\n\nSet it in %s or %s, or give the sensitive variables again as they were: with -var, -var-file or TF_VAR_…", err, planKeyVariable, planKeyCommand))
		return failed
	}
	return nil
}
