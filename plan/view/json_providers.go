package view

import (
	"maps"
	"slices"
	"strings"

	"github.com/stokehq/stoke/modules"
)

type jsonProviderConfig struct {
	Name              string         `json:"name,omitempty"`
	FullName          string         `json:"full_name,omitempty"`
	Alias             string         `json:"alias,omitempty"`
	VersionConstraint string         `json:"version_constraint,omitempty"`
	ModuleAddress     string         `json:"module_address,omitempty"`
	Expressions       map[string]any `json:"expressions,omitempty"`
}

// frame is a module under the calls that lead to it.
type frame struct {
	module *modules.Module
	call   *modules.Call // nil at the root
	parent *frame
	path   string // module.a.module.b
}

func (f *frame) key(ref modules.ProviderRef) string {
	if f.path == "" {
		return ref.Key()
	}
	return f.path + ":" + ref.Key()
}

// listedProvider is an entry of provider_config, and the key of the entry in a
// calling module that it refers to, if any.
type listedProvider struct {
	jsonProviderConfig
	above string
}

// list lists what a module says of providers: its blocks, what it requires,
// and the default configuration of each provider that it has to do with.
func (w *configWriter) list(f *frame) {
	m := f.module
	var names []string
	for _, p := range m.Providers {
		w.add(f, modules.ProviderRef{Name: p.Name, Alias: p.Alias})
		names = append(names, p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Settings.RequiredProviders)) {
		for _, alias := range m.Settings.RequiredProviders[name].Aliases {
			_, alias, _ = strings.Cut(alias, ".")
			w.add(f, modules.ProviderRef{Name: name, Alias: alias})
		}
		w.add(f, modules.ProviderRef{Name: name})
		names = append(names, name)
	}
	for _, r := range m.Resources {
		names = append(names, r.Provider.Name)
	}
	for _, name := range names {
		source := w.Source(m, name)
		ref := modules.ProviderRef{Name: source[strings.LastIndexByte(source, '/')+1:]}
		if _, listed := w.listed[f.key(ref)]; !listed {
			w.enter(f, ref, jsonProviderConfig{Name: ref.Name, FullName: source, ModuleAddress: f.path})
		}
	}
}

// add lists a configuration that a module has a block for, or requires.
func (w *configWriter) add(f *frame, ref modules.ProviderRef) {
	if _, listed := w.listed[f.key(ref)]; listed {
		return
	}
	j := jsonProviderConfig{
		Name: ref.Name, FullName: w.Source(f.module, ref.Name), Alias: ref.Alias, ModuleAddress: f.path,
		VersionConstraint: f.module.Settings.RequiredProviders[ref.Name].Version,
	}
	if block := f.module.Providers[ref.Key()]; block != nil {
		if schema := w.Schema(j.FullName); schema != nil {
			j.Expressions = bodyJSON(block.Body, schema.Provider)
		}
		w.listed[f.key(ref)] = listedProvider{jsonProviderConfig: j}
		return
	}
	w.enter(f, ref, j)
}

// pass lists what a call hands to a module.
func (w *configWriter) pass(child *frame) {
	for key, given := range child.call.Providers {
		name, alias, _ := strings.Cut(key, ".")
		j := jsonProviderConfig{Name: name, FullName: w.Source(child.module, name), Alias: alias, ModuleAddress: child.path}
		w.listed[child.key(modules.ProviderRef{Name: name, Alias: alias})] = listedProvider{j,
			w.followKey(child.parent.key(given), j.FullName)}
	}
}

// enter lists a configuration that a module has without a block: a default one
// refers to the default configuration of the calling module, if that lists it.
func (w *configWriter) enter(f *frame, ref modules.ProviderRef, j jsonProviderConfig) {
	l := listedProvider{jsonProviderConfig: j}
	if f.parent != nil && ref.Alias == "" {
		l.above = w.followKey(f.parent.key(ref), j.FullName)
	}
	w.listed[f.key(ref)] = l
}

// followKey follows a key up to the configuration that it refers to; it is empty
// where nothing of that provider is listed.
func (w *configWriter) followKey(key, source string) string {
	l, listed := w.listed[key]
	switch {
	case !listed || l.FullName != source:
		return ""
	case l.above == "":
		return key
	}
	return l.above // which ends there: entries are made from the root down
}

// configKey is the key of the configuration that a resource has.
func (w *configWriter) configKey(f *frame, ref modules.ProviderRef) string {
	key := f.key(ref)
	if above := w.listed[key].above; above != "" {
		return above
	}
	return key
}

// providerConfigs are the configurations that stand for no other.
func (w *configWriter) providerConfigs() map[string]jsonProviderConfig {
	out := make(map[string]jsonProviderConfig)
	for key, l := range w.listed {
		if l.above == "" {
			out[key] = l.jsonProviderConfig
		}
	}
	return out
}
