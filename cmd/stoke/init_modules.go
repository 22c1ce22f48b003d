package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/install"
	"github.com/stokehq/stoke/modules/source"
)

// moduleFlags are the options of init that are about modules.
type moduleFlags struct {
	get, upgrade bool
	from         string
}

func (f *moduleFlags) add(_ *session, flags *pflag.FlagSet) {
	const title = "Options about modules"
	flags.BoolVar(&f.get, "get", true, "Install nothing: use the modules that are there.")
	flags.BoolVar(&f.upgrade, "upgrade", false, "Fetch all modules again, in the newest versions that the "+
		"configuration accepts.")
	flags.StringVar(&f.from, "from-module", "", "Copy the module from `SOURCE` into this folder first, which must be empty.")
	addFlagGroup(flags, title, "get", "upgrade", "from-module")
}

// initModules installs modules and loads the configuration. It returns nil for
// a folder without a configuration: init reports no error there.
func (s *session) initModules(ctx context.Context, f *moduleFlags) (*modules.Module, error) {
	ctx, stop := s.signals.untilStopped(ctx)
	defer stop()
	if f.from != "" {
		if err := s.copyModule(ctx, f.from); err != nil {
			return nil, err
		}
	}
	if !f.get {
		return s.structure(false)
	}
	root, err := s.install(ctx, f.upgrade, true)
	if root == nil && err == nil {
		s.printf("Stoke initialized in an empty directory! It has no configuration yet: write one, or start from a " +
			"module with -from-module=SOURCE.\n")
	}
	return root, err
}

// install installs what the configuration calls; announced says so first,
// where there is something.
func (s *session) install(ctx context.Context, upgrade, announced bool) (*modules.Module, error) {
	if err := s.mayInstall(); err != nil {
		return nil, err
	}
	fetcher, diags := s.fetcher()
	s.complain(diags...)
	if diags.HasErrors() {
		return nil, failed
	}
	in := &install.Installer{Dir: ".", DataDir: s.dataDir(), Fetcher: fetcher, Upgrade: upgrade}
	in.Listen = func(e install.Event) {
		if announced {
			announced = false
			title := "Initializing modules..."
			if upgrade {
				title = "Upgrading modules..."
			}
			s.printf("%s\n", title)
		}
		s.printf("%s\n", eventText(e))
	}
	root, files, diags := in.Install(ctx)
	s.files, diags = files, modules.Structural(diags)
	if unsupported := versionDiagnostics(root); unsupported.HasErrors() {
		diags = unsupported
	}
	if noConfiguration(diags) {
		return nil, nil
	}
	s.complain(diags...)
	if diags.HasErrors() {
		return nil, failed
	}
	return root, nil
}

// mayInstall finds out whether the root module is written for this version,
// before anything is fetched for it.
func (s *session) mayInstall() error {
	root, files, _ := modules.LoadRoot(modules.OnDisk(), ".") // other mistakes are found later
	unsupported := versionDiagnostics(root)
	if !unsupported.HasErrors() {
		return nil
	}
	s.files = files
	s.complain(unsupported...)
	return failed
}

func eventText(e install.Event) string {
	if e.Download {
		return fmt.Sprintf("Downloading %s for %s...", strings.TrimSpace(e.Source+" "+e.Version), e.Key)
	}
	return fmt.Sprintf("- %s in %s", e.Key, e.Dir)
}

// copyModule puts a module from elsewhere into this folder, as a start.
func (s *session) copyModule(ctx context.Context, text string) error {
	fail := func(summary, format string, args ...any) error {
		s.complain(problem(summary, format, args...))
		return failed
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		return fail("Folder cannot be read", "%s", asSentence(err.Error()))
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			return fail("Folder is not empty", "-from-module copies a module into a folder that has nothing in it, and there is %q. Use another folder.", e.Name())
		}
	}
	address, err := source.Parse(text)
	if err == nil && address.Kind == source.Folder {
		var whole string
		if whole, err = filepath.Abs(filepath.FromSlash(address.Text)); err == nil {
			address, err = source.Parse(filepath.ToSlash(whole))
		}
	}
	if err != nil {
		return fail("Invalid module source", "%q cannot be read as the source of a module: %s.", text, err)
	}
	fetcher, diags := s.fetcher()
	s.complain(diags...)
	if diags.HasErrors() {
		return failed
	}
	s.printf("Copying configuration from %q...\n", address.Redacted())
	if err := install.CopyModule(ctx, fetcher, address, s.dataDir(), "."); err != nil {
		return fail("Module cannot be copied", "%s cannot be copied into this folder: %s.", address.Redacted(), err)
	}
	return nil
}
