package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/local"
)

// place is where the state of this working directory is kept: a backend, and
// the workspace that is selected.
type place struct {
	kind      string
	backend   backend.Backend
	workspace string
}

// store is where the state of the selected workspace is kept.
func (p *place) store() (state.Store, error) { return p.backend.Store(p.workspace) }

func (p *place) close() { _ = p.backend.Close() } // nothing is written by it

// place finds out where the state is kept: what the backend block says and
// init has remembered. paths are those of the command line, for local states.
func (s *session) place(ctx context.Context, root *modules.Module, paths local.Flags) (*place, error) {
	workspace, err := s.workspace()
	if err != nil {
		return nil, err
	}
	kind, values, diags := s.configuredBackend(root)
	if !diags.HasErrors() {
		diags = append(diags, refusePaths(kind, paths)...)
	}
	if diags.HasErrors() {
		s.complain(diags...)
		return nil, failed
	}
	p := &place{kind: kind.Name, workspace: workspace}
	if kind.Name == "local" {
		c := backend.Config{Values: values}
		p.backend = local.NewBackend(c.String("path"), c.String("workspace_dir"), paths)
		return p, nil
	}
	if p.backend, err = s.openBackend(ctx, kind, values); err != nil {
		return nil, err
	}
	return p, nil
}

// refusePaths says where options name files and the state is in none.
func refusePaths(kind *backend.Kind, paths local.Flags) hcl.Diagnostics {
	if kind.Name == "local" {
		return nil
	}
	for _, o := range []struct{ name, value string }{{"state", paths.State}, {"state-out", paths.Out}, {"backup", paths.Backup}} {
		if o.value != "" && !(o.name == "backup" && o.value == "-") {
			return hcl.Diagnostics{problem("Option for local states only",
				"-%s names a file, and the configuration keeps the state in the backend %q. Leave the option out.", o.name, kind.Name)}
		}
	}
	return nil
}

// openBackend opens a backend of a kind.
func (s *session) openBackend(ctx context.Context, kind *backend.Kind, values backend.Values) (backend.Backend, error) {
	config, problems := kind.Resolve(values, s.getenv)
	if len(problems) > 0 {
		var diags hcl.Diagnostics
		for _, text := range problems {
			diags = append(diags, problem("Invalid backend configuration", "Backend %q: %s.", kind.Name, text))
		}
		s.complain(diags...)
		return nil, failed
	}
	config.Caller = "stoke/" + version
	b, err := kind.Open(ctx, config)
	if err != nil {
		s.complain(problem("Backend not usable", "The backend %q cannot be set up: %s.", kind.Name, err))
		return nil, failed
	}
	return b, nil
}

// configuredBackend is the kind and arguments of the backend. A root of nil
// is a configuration that cannot be read: then init's memory has to do.
func (s *session) configuredBackend(root *modules.Module) (*backend.Kind, backend.Values, hcl.Diagnostics) {
	saved, err := backend.Load(s.dataDir(), backendKind)
	if err != nil {
		return nil, nil, hcl.Diagnostics{problem("Backend not known", "The settings of the backend that init saved "+
			"cannot be read: %s. Run \"stoke init\" again, with -reconfigure.", err)}
	}
	var block *modules.Backend
	if root != nil {
		block = root.Settings.Backend
	}
	if block == nil {
		if saved == nil || root != nil && saved.Kind == "local" && len(saved.Values) == 0 {
			return local.Kind(), backend.Values{}, nil
		}
		if root != nil {
			return nil, nil, hcl.Diagnostics{initNeeded(nil, "The state was kept in the backend %q, and the "+
				"configuration no longer names it.", saved.Kind)}
		}
		kind, diags := knownKind(saved.Kind, nil)
		return kind, saved.Values, diags
	}
	kind, diags := knownKind(block.Type, &block.Range)
	if diags.HasErrors() {
		return nil, nil, diags
	}
	values, diags := kind.Read(block.Body)
	switch {
	case diags.HasErrors():
	case saved == nil:
		diags = append(diags, initNeeded(&block.Range, "This working directory has not been told of the backend %q yet.", kind.Name))
	case saved != nil && !saved.Fits(kind.Name, values):
		diags = append(diags, initNeeded(&block.Range, "The backend block does not say what it did when this working directory was initialised."))
	case saved != nil:
		values = values.Merge(saved.Values) // -backend-config overruled the block
	}
	return kind, values, diags
}

func initNeeded(at *hcl.Range, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Backend initialization required, please run \"stoke init\"", Subject: at,
		Detail: fmt.Sprintf(format, args...) + "\n\nRun \"stoke init\" to use the backend as it is configured now: with -migrate-state to take the states along from where they were, or with -reconfigure to leave them there. Nothing was changed.",
	}
}

// knownKind finds a kind of backend, or says which there are.
func knownKind(name string, at *hcl.Range) (*backend.Kind, hcl.Diagnostics) {
	if k := backendKind(name); k != nil {
		return k, nil
	}
	names := backendNames()
	return nil, hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "Backend not supported", Subject: at,
		Detail: fmt.Sprintf("Backend %q does not exist here%s Stoke keeps states in: %s.", name, sentence(suggest("", name, names)), strings.Join(names, ", ")),
	}}
}
