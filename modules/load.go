package modules

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules/source"
)

const (
	// maxModuleDepth and maxModuleCalls bound trees of modules that call each
	// other in ways that a cycle check cannot see, such as through symbolic
	// links, or that double with every level.
	maxModuleDepth = 64
	maxModuleCalls = 20_000
)

// Load reads the module in dir and all modules that it calls. Both results
// are best effort when there are errors, and never nil.
func Load(src Source, dir string) (*Module, *Files, hcl.Diagnostics) {
	return LoadWith(src, dir, nil)
}

// LoadWith is Load with somebody else who finds modules that come from
// elsewhere; nil is the manifest of what is installed.
func LoadWith(src Source, dir string, finder Finder) (*Module, *Files, hcl.Diagnostics) {
	l := &loader{src: src, files: NewFiles(), finder: finder, read: map[string]*Module{}}
	if finder == nil {
		l.finder = &installed{src: src, files: l.files}
	}
	dir = filepath.Clean(dir)
	root := l.folder(dir, nil)
	l.tree(root)
	l.checkImports(root)
	return root, l.files, inOrder(l.diags)
}

// LoadRoot reads only the module in dir, for callers without interest in called
// modules: its calls have no modules.
func LoadRoot(src Source, dir string) (*Module, *Files, hcl.Diagnostics) {
	l := &loader{src: src, files: NewFiles(), read: map[string]*Module{}}
	root := l.folder(filepath.Clean(dir), nil)
	return root, l.files, inOrder(l.diags)
}

// inOrder sorts by place, and says once what was found on several ways.
func inOrder(diags hcl.Diagnostics) hcl.Diagnostics {
	place := func(d *hcl.Diagnostic) hcl.Range {
		if d.Subject == nil {
			return hcl.Range{}
		}
		return *d.Subject
	}
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int {
		pa, pb := place(a), place(b)
		return cmp.Or(strings.Compare(pa.Filename, pb.Filename), pa.Start.Byte-pb.Start.Byte)
	})
	return slices.CompactFunc(diags, func(a, b *hcl.Diagnostic) bool {
		// hcl says several things about one wrong JSON value.
		json := strings.HasSuffix(place(a).Filename, ".json")
		return place(a) == place(b) && (json || a.Summary == b.Summary && a.Detail == b.Detail)
	})
}

// loader reads one tree of modules.
type loader struct {
	src    Source
	files  *Files
	finder Finder
	read   map[string]*Module // by folder, as declared, without their children
	calls  int
	diags  hcl.Diagnostics
}

// folder reads the module in dir, once: further calls of it get copies that
// know their own path. The call is nil for the root.
func (l *loader) folder(dir string, call *Call) *Module {
	if m, ok := l.read[dir]; ok {
		return m
	}
	d := &decoder{module: newModule(dir)}
	names, err := l.src.List(dir)
	switch {
	case err != nil && call != nil && call.Address.Kind != source.Folder:
		d.fail(&call.SourceRange, "Module not installed",
			"Module %q should be installed in the folder %s, which cannot be read: %s. Run \"stoke init\" to install it again.", call.Name, dir, cause(err))
	case err != nil && call != nil:
		d.fail(&call.SourceRange, "Module folder cannot be read",
			"The source %q of module %q is the folder %s, which cannot be read: %s.", call.Source, call.Name, dir, cause(err))
	case err != nil:
		d.fail(nil, "Configuration folder cannot be read", "The folder %s cannot be read: %s.", dir, cause(err))
	default:
		files := l.parse(dir, configurationFiles(names))
		d.decode(files)
		if len(files) == 0 {
			noConfiguration(d, dir, call)
		}
	}
	l.diags = append(l.diags, d.diags...)
	l.read[dir] = d.module
	return d.module
}

// NoConfiguration is the summary of the error that says that a folder has no
// configuration files, for commands that can do without.
const NoConfiguration = "No configuration files"

func noConfiguration(d *decoder, dir string, call *Call) {
	if call != nil {
		d.fail(&call.SourceRange, "Module folder without configuration",
			"The source %q of module %q is the folder %s, which has no *.tf, *.tf.json or *.stoke.hcl files.", call.Source, call.Name, dir)
		return
	}
	d.fail(nil, NoConfiguration,
		"The folder %s has no *.tf, *.tf.json or *.stoke.hcl files. Change to the folder of a configuration or name it with -chdir.", dir)
}

// checkCall compares the arguments of a call with what the child declares.
func (l *loader) checkCall(call *Call) {
	child := call.Module
	if len(child.Variables)+len(child.Outputs)+len(child.Resources)+len(child.Calls)+len(child.Locals) == 0 && l.diags.HasErrors() {
		return // it could not be read, which has been said
	}
	for _, name := range slices.Sorted(maps.Keys(call.Args)) {
		if child.Variables[name] == nil {
			arg := call.Args[name]
			l.misuse(&arg.NameRange, "Unsupported argument", "Module %q has no variable %q.%s",
				call.Name, name, didYouMean(name, slices.Collect(maps.Keys(child.Variables))))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(child.Variables)) {
		if v := child.Variables[name]; v.Required() && call.Args[name] == nil {
			l.misuse(&call.Range, "Missing required argument", "Module %q needs the argument %q, a variable without default at %s.",
				call.Name, name, v.Range)
		}
	}
}

// misuse is the Extra of a diagnostic about the arguments of a call.
type misuse struct{}

// misuse reports a mistake in the arguments of a call.
func (l *loader) misuse(at *hcl.Range, summary, format string, args ...any) {
	d := failure(at, summary, format, args...)
	d.Extra = misuse{}
	l.diags = append(l.diags, d)
}

// Structural leaves out what is wrong with the arguments of module calls:
// whoever installs modules or lists them does not need those to be right.
func Structural(diags hcl.Diagnostics) hcl.Diagnostics {
	return slices.DeleteFunc(slices.Clone(diags), func(d *hcl.Diagnostic) bool {
		_, is := d.Extra.(misuse)
		return is
	})
}

func (l *loader) fail(at *hcl.Range, summary, format string, args ...any) {
	l.diags = append(l.diags, failure(at, summary, format, args...))
}

func failure(at *hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at}
}

func newModule(dir string) *Module {
	return &Module{
		Dir:       dir,
		Settings:  Settings{RequiredProviders: map[string]RequiredProvider{}},
		Variables: map[string]*Variable{},
		Locals:    map[string]*Local{},
		Outputs:   map[string]*Output{},
		Resources: map[ResourceName]*Resource{},
		Calls:     map[string]*Call{},
		Checks:    map[string]*CheckBlock{},
		Providers: map[string]*ProviderConfig{},
	}
}

// atPath returns the module as it is called by another path. What is the same
// for all callers is shared.
func (m *Module) atPath(path []string) *Module {
	c := *m
	c.Path = path
	c.Resources = make(map[ResourceName]*Resource, len(m.Resources))
	for name, r := range m.Resources {
		copied := *r
		copied.ModuleOwner = &c
		c.Resources[name] = &copied
	}
	c.Calls = make(map[string]*Call, len(m.Calls))
	for name, call := range m.Calls {
		copied := *call
		c.Calls[name] = &copied
	}
	return &c
}
