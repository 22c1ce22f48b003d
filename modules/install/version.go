package install

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	goversion "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/library"
	"github.com/stokehq/stoke/modules/source"
)

// versions is what a registry has of a package, newest first.
type versions struct {
	list []*goversion.Version
	err  error
}

// want is the package that a call asks for, in the version that it gets.
func (r *run) want(called modules.CallRequest) (*pack, *hcl.Diagnostic) {
	call := called.Call
	a := call.Address
	key, version := a.Package, ""
	switch a.Kind {
	case source.Library:
		if version = library.Version(a.Name()); version == "" {
			return nil, failure(&call.SourceRange, "No such module in the library",
				"The library has no module %q. It has: %s.", a.Name(), strings.Join(library.Names(), ", "))
		}
	case source.Published:
		chosen, problem := r.choose(call)
		if problem != nil {
			return nil, problem
		}
		version = chosen
		key += "@" + version
	}
	p := r.packs[key]
	if p == nil {
		p = &pack{address: a, version: version}
		r.packs[key] = p
	}
	return p, nil
}

// choose picks the newest version that a call accepts. One that is only a
// candidate is chosen when it is named.
func (r *run) choose(call *modules.Call) (string, *hcl.Diagnostic) {
	a := call.Address
	known := r.picks[a.Package]
	if known.err != nil {
		return "", failure(&call.SourceRange, "Registry cannot be asked",
			"Module %q has the source %s, and its versions are unknown: %s.", call.Name, a.Redacted(), reason(known.err))
	}
	wanted := strings.TrimSpace(call.Version)
	var constraints goversion.Constraints
	if wanted != "" {
		var err error
		if constraints, err = goversion.NewConstraint(wanted); err != nil {
			return "", failure(&call.SourceRange, "Invalid version constraint", "%q cannot be read as a version constraint.", wanted)
		}
	}
	exact := strings.TrimSpace(strings.TrimPrefix(wanted, "="))
	for _, v := range known.list {
		if v.Prerelease() != "" && exact != v.Original() && exact != v.String() {
			continue
		}
		if constraints.Check(v) {
			return v.String(), nil
		}
	}
	if len(known.list) == 0 {
		return "", failure(&call.SourceRange, "Module has no versions", "The registry %s has no version of %s.", a.Host(), a.Redacted())
	}
	return "", failure(&call.SourceRange, "No version is accepted",
		"The registry %s has no version of %s that %q accepts. The newest is %s.", a.Host(), a.Redacted(), wanted, known.list[0])
}

// askAll asks registries about everything that calls want from them, once.
func (r *run) askAll(calls []modules.CallRequest) {
	type question struct {
		about source.Address
		known *versions
	}
	var all []question
	for _, called := range calls {
		a := called.Call.Address
		if a.Kind != source.Published || r.picks[a.Package] != nil {
			continue
		}
		if _, ok := r.installedModule(called); ok {
			continue
		}
		r.picks[a.Package] = &versions{}
		all = append(all, question{a, r.picks[a.Package]})
	}
	forEachAtOnce(all, func(q question) { r.ask(q.about, q.known) })
}

func (r *run) ask(a source.Address, known *versions) {
	var texts []string
	texts, known.err = r.in.Fetcher.Registry.Versions(r.ctx, a)
	for _, text := range texts {
		if v, err := goversion.NewVersion(text); err == nil { // others cannot be named
			known.list = append(known.list, v)
		}
	}
	slices.SortFunc(known.list, func(a, b *goversion.Version) int { return b.Compare(a) })
}

// writeLibrary writes a module of the library into a folder.
func writeLibrary(name, into string) error {
	files, err := library.Files(name)
	if err != nil {
		return err
	}
	return fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(into, filepath.FromSlash(path))
		if d.IsDir() {
			return os.Mkdir(to, 0o755)
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		return os.WriteFile(to, text, 0o644)
	})
}
