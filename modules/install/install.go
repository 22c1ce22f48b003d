package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/source"
)

// Installer installs the modules of one configuration.
type Installer struct {
	Dir     string // of the root module
	DataDir string // .terraform
	Fetcher *source.Fetcher
	Upgrade bool // also what is installed: newer versions, changed branches
	// Listen hears what happens, one event at a time. It may be nil.
	Listen func(Event)
}

// Event is one step.
type Event struct {
	Download bool   // it begins to fetch; else the module is in its place
	Key      string // names of the calls, joined by dots
	Source   string // for people
	Version  string // where it has one
	Dir      string // where it is, with slashes
}

// Install loads the configuration and installs on the way what is missing.
// Whatever happens, the manifest tells of what is there. When ctx ends, what
// is half fetched is removed.
func (in *Installer) Install(ctx context.Context) (*modules.Module, *modules.Files, hcl.Diagnostics) {
	root, files, diags := modules.Load(modules.OnDiskWith(in.DataDir), in.Dir)
	if !in.Upgrade && !modules.Structural(diags).HasErrors() && in.complete(root) {
		return root, files, diags
	}
	if !anyCall(root) {
		return root, files, diags
	}
	unlock, err := in.lock(ctx)
	if err != nil {
		return root, files, append(diags, in.problem("Modules cannot be installed", err))
	}
	defer unlock()
	r := newRun(ctx, in)
	root, files, diags = modules.LoadWith(modules.OnDiskWith(in.DataDir), in.Dir, r)
	r.forget()
	if err := in.record(root, r, modules.Structural(diags).HasErrors()); err != nil {
		diags = append(diags, in.problem("Manifest of modules not written", err))
	}
	return root, files, diags
}

func (in *Installer) problem(summary string, err error) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf("In %s: %s.", in.folder(), err)}
}

func anyCall(root *modules.Module) bool { return root != nil && len(root.Calls) > 0 }

// folder is where modules are installed.
func (in *Installer) folder() string { return filepath.Join(in.DataDir, "modules") }

func (in *Installer) manifestName() string { return filepath.Join(in.folder(), source.ManifestName) }

// manifest is what is installed; none, and one that cannot be read, is
// nothing.
func (in *Installer) manifest() source.Manifest {
	text, err := os.ReadFile(in.manifestName())
	if err != nil {
		return nil
	}
	m, err := source.DecodeManifest(text)
	if err != nil {
		return nil
	}
	return m
}

// complete reports whether the manifest tells of all modules, those in
// folders too, so that Terraform finds them.
func (in *Installer) complete(root *modules.Module) bool {
	want := tree(root)
	return len(want) == 1 || maps.Equal(want, in.manifest())
}

// tree is the manifest of modules that are loaded.
func tree(root *modules.Module) source.Manifest {
	m := source.Manifest{"": {Dir: root.Dir}}
	var add func(parent *modules.Module)
	add = func(parent *modules.Module) {
		for name, call := range parent.Calls {
			if call.Module == nil || !isFolder(call.Module.Dir) {
				continue
			}
			key := strings.Join(append(slices.Clone(parent.Path), name), ".")
			m[key] = source.Record{Key: key, Source: call.Address.Text, Version: call.Installed, Dir: call.Module.Dir}
			add(call.Module)
		}
	}
	add(root)
	return m
}

// record writes the manifest and says what is new in it. After errors it
// keeps what it said about modules that were not reached.
func (in *Installer) record(root *modules.Module, r *run, failed bool) error {
	now := tree(root)
	if failed {
		for key, record := range r.before {
			if _, ok := now[key]; !ok && (key == "" || isFolder(record.Dir)) {
				now[key] = record
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		record := now[key]
		if key != "" && (r.fresh[key] || r.before[key] != record) && in.Listen != nil {
			in.Listen(Event{Key: key, Source: record.Source, Version: record.Version, Dir: filepath.ToSlash(record.Dir)})
		}
	}
	if maps.Equal(now, r.before) {
		return nil
	}
	if err := os.MkdirAll(in.folder(), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(in.manifestName(), now.Encode(), 0o644)
}

// lock keeps two installations apart. It waits for the other.
func (in *Installer) lock(ctx context.Context) (func(), error) {
	if err := os.MkdirAll(in.folder(), 0o755); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "mkdir "))
	}
	l := flock.New(filepath.Join(in.folder(), ".lock"))
	ok, err := l.TryLockContext(ctx, 100*time.Millisecond)
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("another installation is at work, and waiting for it was interrupted")
	case err != nil || !ok:
		return nil, fmt.Errorf("it cannot be locked: %w", err)
	}
	in.sweep()
	return func() { _ = l.Unlock() }, nil
}

// partial is how folders of unfinished downloads begin.
const partial = ".partial-"

// sweep removes what a run that was killed has left.
func (in *Installer) sweep() {
	entries, err := os.ReadDir(in.folder())
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), partial) {
			_ = os.RemoveAll(filepath.Join(in.folder(), e.Name()))
		}
	}
}
