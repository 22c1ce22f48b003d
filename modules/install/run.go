package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/source"
)

// atOnce is how many packages are fetched, and registries asked, at the same
// time.
const atOnce = 4

// run is one installation. It finds modules for the loader.
type run struct {
	ctx    context.Context
	in     *Installer
	before source.Manifest
	fresh  map[string]bool      // keys that this run has installed
	packs  map[string]*pack     // by what they are
	picks  map[string]*versions // by registry package
}

// pack is a package that some calls need.
type pack struct {
	address source.Address
	version string // as registries and the library have it
	calls   []int  // of the batch that asks for it first
	dir     string // where it is fetched to, until the end of the run
	sub     string // folder within, beside the address' own
	err     error
}

func newRun(ctx context.Context, in *Installer) *run {
	return &run{
		ctx: ctx, in: in, before: in.manifest(), fresh: map[string]bool{},
		packs: map[string]*pack{}, picks: map[string]*versions{},
	}
}

// Find implements modules.Finder: it installs what is not there, or not what
// the call asks for.
func (r *run) Find(calls []modules.CallRequest) []modules.Location {
	found := make([]modules.Location, len(calls))
	wanted := make([]*pack, len(calls))
	var missing []*pack
	r.askAll(calls)
	for i, called := range calls {
		if f, ok := r.installedModule(called); ok {
			found[i] = f
			continue
		}
		p, problem := r.want(called)
		if problem != nil {
			found[i].Problem = problem
			continue
		}
		if f := modules.Installed(r.before, called); p.address.Kind == source.Published && f.Problem == nil && f.Version == p.version && isFolder(f.Dir) {
			found[i] = f // the newest is there
			continue
		}
		wanted[i] = p
		if p.dir == "" && len(p.calls) == 0 {
			missing = append(missing, p)
			r.reportProgress(called, p)
		}
		p.calls = append(p.calls, i)
	}
	r.fetch(missing)
	for i, p := range wanted {
		if p != nil {
			found[i] = r.place(calls[i], p)
		}
	}
	return found
}

// installedModule is a module that is there, as long as nobody asks for newer.
func (r *run) installedModule(called modules.CallRequest) (modules.Location, bool) {
	if r.in.Upgrade {
		return modules.Location{}, false
	}
	f := modules.Installed(r.before, called)
	return f, f.Problem == nil && isFolder(f.Dir)
}

func (r *run) reportProgress(called modules.CallRequest, p *pack) {
	if r.in.Listen != nil {
		text := p.address.Redacted()
		if p.address.Kind != source.Library {
			text = packageText(p.address)
		}
		r.in.Listen(Event{Download: true, Key: called.Key, Source: text, Version: p.shownVersion()})
	}
}

// packageText is the address of a whole package, without a password.
func packageText(a source.Address) string {
	if whole, err := source.Parse(a.Package); err == nil {
		return whole.Redacted()
	}
	return a.Redacted()
}

// shownVersion is the version that people know; the library's is none.
func (p *pack) shownVersion() string {
	if p.address.Kind == source.Library {
		return ""
	}
	return p.version
}

// fetch fetches packages, some at a time, and waits for all of them.
func (r *run) fetch(packs []*pack) {
	forEachAtOnce(packs, func(p *pack) { p.dir, p.sub, p.err = r.get(p) })
}

// forEachAtOnce does something with each of a list, atOnce at a time, and waits
// for all of them.
func forEachAtOnce[T any](list []T, do func(T)) {
	todo := make(chan T)
	var wg sync.WaitGroup
	for range min(atOnce, len(list)) {
		wg.Go(func() {
			for one := range todo {
				do(one)
			}
		})
	}
	for _, one := range list {
		todo <- one
	}
	close(todo)
	wg.Wait()
}

// get fetches one package into a folder next to the installed modules.
func (r *run) get(p *pack) (dir, sub string, err error) {
	if err := r.ctx.Err(); err != nil {
		return "", "", err
	}
	around, err := os.MkdirTemp(r.in.folder(), partial)
	if err != nil {
		return "", "", err
	}
	into := filepath.Join(around, "package")
	switch p.address.Kind {
	case source.Library:
		err = writeLibrary(p.address.Name(), into)
	case source.Published:
		var location source.Address
		if location, err = r.in.Fetcher.Registry.Location(r.ctx, p.address, p.version); err == nil {
			if sub, err = r.in.Fetcher.Fetch(r.ctx, location, into); err != nil {
				err = fmt.Errorf("from %s: %w", location.Redacted(), err)
			}
		}
	default:
		sub, err = r.in.Fetcher.Fetch(r.ctx, wholePackage(p.address), into)
	}
	if err != nil {
		_ = os.RemoveAll(around)
		return "", "", err
	}
	return into, sub, nil
}

// wholePackage is the address without its folder: calls that differ in that
// alone share what is fetched.
func wholePackage(a source.Address) source.Address {
	a.Subdir = ""
	return a
}

// place copies a package to where the manifest says that the module is. The
// old one goes when the new one is whole.
func (r *run) place(called modules.CallRequest, p *pack) modules.Location {
	call := called.Call
	if p.err != nil {
		return modules.Location{Problem: failure(&call.SourceRange, "Module cannot be fetched",
			"Module %q has the source %s, which cannot be fetched: %s.", call.Name, call.Address.Redacted(), reason(p.err))}
	}
	final := filepath.Join(r.in.folder(), called.Key)
	dir, err := source.FindSubfolder(p.dir, joined(p.sub, call.Address.Subdir))
	if err == nil {
		err = r.put(p.dir, final)
	}
	if err != nil {
		return modules.Location{Problem: failure(&call.SourceRange, "Module cannot be installed",
			"Module %q has the source %s, and cannot be put into %s: %s.", call.Name, call.Address.Redacted(), final, reason(err))}
	}
	r.fresh[called.Key] = true
	return modules.Location{Dir: filepath.Join(final, dir), Package: final, Version: p.version}
}

func joined(a, b string) string { return strings.Trim(a+"/"+b, "/") }

func (r *run) put(from, final string) error {
	around, err := os.MkdirTemp(r.in.folder(), partial)
	if err != nil {
		return err
	}
	defer os.RemoveAll(around) //nolint:errcheck // the next run sweeps
	whole := filepath.Join(around, "package")
	if err := source.Copy(from, whole); err != nil {
		return err
	}
	// A module that was there goes aside first, so that no mixture is ever seen.
	if err := os.Rename(final, filepath.Join(around, "old")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(whole, final)
}

// forget removes what was fetched: every call has its copy.
func (r *run) forget() {
	for _, p := range r.packs {
		if p.dir != "" {
			_ = os.RemoveAll(filepath.Dir(p.dir))
		}
	}
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func reason(err error) string {
	if errors.Is(err, context.Canceled) {
		return "it was interrupted"
	}
	return strings.TrimSuffix(err.Error(), ".")
}

func failure(at *hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at}
}
