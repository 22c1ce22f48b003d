package modules

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stokehq/stoke/modules/source"
)

// visit is one module on the way from the root.
type visit struct {
	module *Module
	call   *Call  // that leads there; nil for the root
	caller *visit // nil for the root
	pack   string // folder that its own calls cannot leave, "" for anywhere
	depth  int
}

func (v *visit) key() string { return strings.Join(v.module.Path, ".") }

// tree loads all modules that a module calls, those of the same distance
// together: what has to be fetched for them can be fetched at once.
func (l *loader) tree(root *Module) {
	level := []*visit{{module: root}}
	var all []*visit
	for len(level) > 0 {
		var next []*visit
		for _, v := range l.findCalled(level) {
			l.enter(v)
			next = append(next, v)
		}
		all = append(all, next...)
		level = next
	}
	for _, v := range slices.Backward(all) { // what it calls comes first
		l.checkPassed(v.call)
	}
}

// enter reads the module of a call whose folder is known.
func (l *loader) enter(v *visit) {
	v.module = l.folder(v.module.Dir, v.call).atPath(append(slices.Clone(v.caller.module.Path), v.call.Name))
	v.call.Module = v.module
	l.checkCall(v.call)
	l.checkNoImports(v.call)
}

// findCalled finds the folders of all modules that some modules call. The
// results have no more of a module than its folder.
func (l *loader) findCalled(level []*visit) []*visit {
	var all []*visit
	var wanted []CallRequest
	var waiting []*visit
	for _, caller := range level {
		for _, name := range slices.Sorted(maps.Keys(caller.module.Calls)) {
			call := caller.module.Calls[name]
			v := &visit{call: call, caller: caller, pack: caller.pack, depth: caller.depth + 1, module: &Module{}}
			switch {
			case call.Address.Kind == 0 || !l.mayCall(v):
				continue // said when it was decoded, or just now
			case call.Address.Kind != source.Folder:
				wanted = append(wanted, CallRequest{Key: strings.TrimPrefix(caller.key()+"."+name, "."), Call: call})
				waiting = append(waiting, v)
			default:
				v.module.Dir = filepath.Join(caller.module.Dir, filepath.FromSlash(call.Address.Text))
				if !l.stays(v) || !l.ends(v) {
					continue
				}
			}
			all = append(all, v)
		}
	}
	for i, found := range l.finder.Find(wanted) {
		v := waiting[i]
		if found.Problem != nil {
			l.diags = append(l.diags, found.Problem)
			continue
		}
		v.module.Dir, v.pack = filepath.Clean(found.Dir), found.Package
		v.call.Installed = found.Version
	}
	return slices.DeleteFunc(all, func(v *visit) bool { return v.module.Dir == "" || v.call.Address.Kind != source.Folder && !l.ends(v) })
}

// stays finds folders outside of the package that the caller came in: they
// are there by chance, and elsewhere they would not be.
func (l *loader) stays(v *visit) bool {
	if v.pack == "" {
		return true
	}
	if inside, err := filepath.Rel(v.pack, v.module.Dir); err == nil && filepath.IsLocal(inside) {
		return true
	}
	l.fail(&v.call.SourceRange, "Module leaves its package",
		"The source %q of module %q leads out of the package that the calling module came in. Call it by an address of its own, or with // and the folder within the package.", v.call.Source, v.call.Name)
	return false
}

// ends finds folders that lead back to themselves.
func (l *loader) ends(v *visit) bool {
	for up := v.caller; up != nil; up = up.caller {
		if up.module.Dir != v.module.Dir {
			continue
		}
		chain := []string{v.module.Dir}
		for back := v.caller; back != up; back = back.caller {
			chain = append(chain, back.module.Dir)
		}
		chain = append(chain, up.module.Dir)
		slices.Reverse(chain)
		l.fail(&v.call.SourceRange, "Module calls itself",
			"Module %q leads back to its own folder: %s.", v.call.Name, strings.Join(chain, " → "))
		return false
	}
	return true
}

// mayCall finds calls that would never end.
func (l *loader) mayCall(v *visit) bool {
	call := v.call
	if call.Address.Kind != source.Folder {
		for up := v.caller; up.call != nil; up = up.caller {
			if up.call.Address.Text == call.Address.Text && up.call.Version == call.Version {
				l.fail(&call.SourceRange, "Module calls itself",
					"Module %q has the source %s, like the module that calls it.", call.Name, call.Address.Redacted())
				return false
			}
		}
	}
	if v.depth > maxModuleDepth {
		l.fail(&call.SourceRange, "Modules nested too deeply",
			"Module %q is more than %d calls away from the root module. Look for folders that link to each other.", call.Name, maxModuleDepth)
		return false
	}
	if l.calls++; l.calls > maxModuleCalls {
		if l.calls == maxModuleCalls+1 {
			l.fail(&call.SourceRange, "Too many module calls",
				"The configuration calls more than %d modules. Use count or for_each in place of that many calls.", maxModuleCalls)
		}
		return false
	}
	return true
}
