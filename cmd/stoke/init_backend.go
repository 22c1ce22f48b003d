package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/syntax"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/local"
)

// backendFlags are the options of init that are about the backend.
type backendFlags struct {
	backend, reconfigure, migrate, forceCopy, input bool
	config                                          []string
	lock                                            lockFlags
}

func (f *backendFlags) add(cmd *cobra.Command) {
	const title = "Options about where the state is kept"
	flags := cmd.Flags()
	flags.BoolVar(&f.backend, "backend", true, "Leave the backend as it was initialised before.")
	flags.StringArrayVar(&f.config, "backend-config", nil, "Complete the backend block with `'NAME=VALUE'`, or with the arguments in a file. May be given several times.")
	flags.BoolVar(&f.reconfigure, "reconfigure", false, "Use the backend as it is configured now, and leave existing states where they are.")
	flags.BoolVar(&f.migrate, "migrate-state", false, "Use the backend as it is configured now, and take existing states along. Asks before it copies.")
	flags.BoolVar(&f.forceCopy, "force-copy", false, "As -migrate-state, without asking.")
	flags.BoolVar(&f.input, "input", true, "Do not prompt; fail if an answer is needed.")
	f.lock.add(flags)
	addFlagGroup(flags, title, "backend", "backend-config", "reconfigure", "migrate-state", "force-copy", "input", "lock", "lock-timeout")
}

// initBackend makes the backend that the configuration names the one that is
// used, and remembers it.
func (s *session) initBackend(ctx context.Context, root *modules.Module, f *backendFlags) error {
	if f.reconfigure && (f.migrate || f.forceCopy) {
		return &usageError{path: "stoke init", err: errors.New("-reconfigure leaves states where they are, and -migrate-state takes them along: give one of the two")}
	}
	if !f.backend {
		return nil
	}
	c := &backendChange{s: s, f: f}
	var err error
	if c.saved, err = backend.Load(s.dataDir(), backendKind); err != nil && !f.reconfigure {
		s.complain(problem("Backend not known", "The saved settings of the backend cannot be read: %s. Run \"stoke init -reconfigure\".", err))
		return failed
	}
	diags := c.read(root.Settings.Backend)
	s.complain(diags...)
	if diags.HasErrors() {
		return failed
	}
	if c.kind == nil && (c.saved == nil || c.saved.Kind == "local" && len(c.saved.Values) == 0) {
		return nil // local, as ever
	}
	s.printf("Initializing the backend...\n")
	return c.carryOut(ctx)
}

// backendChange is what init has to do about the backend.
type backendChange struct {
	s     *session
	f     *backendFlags
	saved *backend.Record // nil: nothing was remembered

	kind   *backend.Kind // nil: there is no backend block
	block  backend.Values
	values backend.Values // block and -backend-config
}

// read finds out what is configured now.
func (c *backendChange) read(block *modules.Backend) hcl.Diagnostics {
	if block == nil {
		if len(c.f.config) > 0 {
			return hcl.Diagnostics{diagnostic(hcl.DiagWarning, "Missing backend configuration",
				"-backend-config completes a backend block, and the configuration has none. It is without effect.")}
		}
		return nil
	}
	var diags hcl.Diagnostics
	if c.kind, diags = knownKind(block.Type, &block.Range); diags.HasErrors() {
		return diags
	}
	if c.block, diags = c.kind.Read(block.Body); diags.HasErrors() {
		return diags
	}
	given, diags := c.s.backendConfig(c.kind, c.f.config)
	if len(c.f.config) == 0 && c.saved != nil && c.saved.Fits(c.kind.Name, c.block) && !c.f.reconfigure {
		given = c.saved.Values // what an earlier init was told stays
	}
	c.values = c.block.Merge(given)
	return diags
}

// backendConfig reads what -backend-config says; later ones overrule. A single
// empty one says that nothing is to be left of what earlier ones said.
func (s *session) backendConfig(k *backend.Kind, options []string) (backend.Values, hcl.Diagnostics) {
	all := backend.Values{}
	if len(options) == 1 && options[0] == "" {
		return all, nil
	}
	var diags hcl.Diagnostics
	for _, text := range options {
		if strings.Contains(text, "=") {
			name, v, err := k.Set(text)
			if err != nil {
				diags = append(diags, problem("Invalid -backend-config option", "%s", asSentence(err.Error())))
				continue
			}
			all[name] = v
			continue
		}
		content, err := os.ReadFile(text)
		if err != nil {
			diags = append(diags, problem("Invalid -backend-config option", "%s. Give the name of a file, or NAME=VALUE.", err))
			continue
		}
		s.files.AddValues(text, content)
		body, more := syntax.Parse(text, content)
		diags = append(diags, more...)
		if more.HasErrors() {
			continue
		}
		values, more := k.Read(body)
		diags = append(diags, more...)
		all = all.Merge(values)
	}
	return all, diags
}

// carryOut compares what is configured with what was remembered.
func (c *backendChange) carryOut(ctx context.Context) error {
	if c.kind == nil {
		return c.unset(ctx)
	}
	remembered, kept := c.kind.WithoutSecrets(c.values, c.block)
	next := &backend.Record{Kind: c.kind.Name, Values: remembered, Hash: backend.Digest(c.kind.Name, c.block)}
	if c.saved != nil && c.saved.Fits(c.kind.Name, c.block) && backend.Equal(c.saved.Values, c.values) {
		next = c.saved // Terraform's own may be there, and then both go on working
	}
	same := c.saved != nil && c.saved.Kind == next.Kind && (backend.Equal(c.saved.Values, remembered) || backend.Equal(c.saved.Values, c.values))
	to, err := c.s.openBackend(ctx, c.kind, c.values)
	if err != nil {
		return err
	}
	defer to.Close() //nolint:errcheck // nothing is written by it
	if err := c.reach(ctx, to); err != nil {
		return err
	}
	if !same && !c.f.reconfigure {
		if c.saved != nil && !c.f.migrate && !c.f.forceCopy {
			c.s.complain(problem("Backend configuration changed",
				"The backend was %q before, and is configured as %q in another way now.\n\nRun \"stoke init -migrate-state\" to take the states along, or \"stoke init -reconfigure\" to leave them where they are.", c.saved.Kind, c.kind.Name))
			return failed
		}
		if err := c.migrate(ctx, to); err != nil {
			return err
		}
	}
	if len(kept) > 0 {
		c.s.complain(diagnostic(hcl.DiagWarning, "Secret kept in the data folder",
			"%s came from -backend-config and is kept in %s, which only you can read. To keep it out, give it in the environment.", strings.Join(kept, ", "), c.s.dataDir()))
	}
	if err := backend.Save(c.s.dataDir(), terraformVersion, c.kind, next); err != nil {
		c.s.complain(problem("Backend not remembered", "%s.", err))
		return failed
	}
	c.s.printf("\nSuccessfully configured the backend %q! Stoke will automatically\nuse this backend unless the backend configuration changes.\n", c.kind.Name)
	return nil
}

// reach makes sure that the backend can be talked to.
func (c *backendChange) reach(ctx context.Context, to backend.Backend) error {
	_, err := to.Workspaces(ctx)
	var single *backend.SingleStateError
	if errors.As(err, &single) {
		store, err2 := to.Store(backend.DefaultWorkspace)
		if err = err2; err == nil {
			_, err = state.Open(ctx, store) // whatever answers there has to know what a state is
		}
	}
	if err != nil {
		c.s.complain(problem("Backend not reachable", "The backend %q does not answer as it should: %s.\n\nNothing was changed.", c.kind.Name, err))
		return failed
	}
	return nil
}

// unset goes back to local files.
func (c *backendChange) unset(ctx context.Context) error {
	to := local.NewBackend("", "", local.Flags{})
	if !c.f.reconfigure {
		if !c.f.migrate && !c.f.forceCopy {
			c.s.complain(problem("Backend configuration changed",
				"The backend was %q before, and the configuration has none now.\n\nRun \"stoke init -migrate-state\" to take the states along into local files, or \"stoke init -reconfigure\" to leave them where they are.", c.saved.Kind))
			return failed
		}
		if err := c.migrate(ctx, to); err != nil {
			return err
		}
	}
	if err := backend.Save(c.s.dataDir(), terraformVersion, nil, nil); err != nil {
		c.s.complain(problem("Backend not forgotten", "%s.", err))
		return failed
	}
	c.s.printf("\nSuccessfully unset the backend %q. Stoke will now keep the state locally.\n", c.saved.Kind)
	return nil
}

// openPrevious opens the backend of until now.
func (c *backendChange) openPrevious(ctx context.Context) (backend.Backend, error) {
	if c.saved == nil || c.saved.Kind == "local" {
		values := backend.Values{}
		if c.saved != nil {
			values = c.saved.Values
		}
		config := backend.Config{Values: values}
		return local.NewBackend(config.String("path"), config.String("workspace_dir"), local.Flags{}), nil
	}
	kind, diags := knownKind(c.saved.Kind, nil)
	if diags.HasErrors() {
		c.s.complain(diags...)
		c.s.complain(problem("States cannot be migrated", "They are kept in a backend that this program does not know. Run \"stoke init -reconfigure\" to leave them there."))
		return nil, failed
	}
	values := c.saved.Values
	if c.kind != nil && c.kind.Name == kind.Name {
		values = c.withSecrets(kind, values)
	}
	return c.s.openBackend(ctx, kind, values)
}

// withSecrets completes what was remembered by the secrets that are
// configured now: most often they open the old place too.
func (c *backendChange) withSecrets(k *backend.Kind, values backend.Values) backend.Values {
	secrets := backend.Values{}
	for _, a := range k.Arguments {
		if v, ok := c.values[a.Name]; ok && a.Secret {
			secrets[a.Name] = v
		}
	}
	return secrets.Merge(values)
}

func placeName(kind string, workspace string) string {
	return fmt.Sprintf("workspace %q of the backend %q", workspace, kind)
}

// acceptedOptions is the group of options that scripts give to Terraform and
// that have nothing to do here.
const acceptedOptions = "Accepted for the sake of scripts, without effect"

// addAccepted accepts the options of terraform init that make sense where
// providers are installed, so that scripts need no change.
func addAccepted(cmd *cobra.Command, f *backendFlags) {
	flags := cmd.Flags()
	flags.Var(&lockfileMode{}, "lockfile", "`MODE` readonly: providers are part of the program, and no file locks their versions.")
	flags.StringArray("plugin-dir", nil, "`FOLDER` of plugins: none is looked for.")
	addFlagGroup(flags, acceptedOptions, "lockfile", "plugin-dir")
	addTestDirectory(flags)
	flags.BoolVar(&f.backend, "cloud", true, "The same as -backend.")
	flags.Bool("ignore-remote-version", false, "Nothing.")
	for _, name := range []string{"cloud", "ignore-remote-version"} {
		flags.Lookup(name).Hidden = true
	}
}

// addTestDirectory accepts the option that says where Terraform's tests are.
func addTestDirectory(flags *pflag.FlagSet) {
	flags.String("test-directory", "tests", "`FOLDER` of tests: they are not looked at.")
	addFlagGroup(flags, acceptedOptions, "test-directory")
}

// lockfileMode takes the one mode that Terraform has.
type lockfileMode struct{ text string }

func (m *lockfileMode) String() string { return m.text }
func (m *lockfileMode) Type() string   { return "string" }

func (m *lockfileMode) Set(text string) error {
	if text != "readonly" {
		return errors.New("readonly is the only mode")
	}
	m.text = text
	return nil
}
