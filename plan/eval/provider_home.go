package eval

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	tfaddr "github.com/hashicorp/terraform-registry-address"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
)

// home is where a provider configuration is written, or would be: the module,
// and the reference as that module writes it.
type home struct {
	module *Module
	ref    modules.ProviderRef
	source string
}

// providerKey names a provider configuration. All instances of a module share
// those in it: a module with arguments in its provider blocks has one
// instance only.
type providerKey struct{ path, source, alias string }

func (h home) key() providerKey {
	return providerKey{strings.Join(h.module.Decl.Path, "."), h.source, h.ref.Alias}
}

// decl is the configuration's block; nil where there is none.
func (h home) decl() *modules.ProviderConfig { return h.module.Decl.Providers[h.ref.Key()] }

// addr is the configuration's address, as the state writes it.
func (h home) addr() string {
	var b strings.Builder
	for _, name := range h.module.Decl.Path {
		b.WriteString("module." + name + ".")
	}
	b.WriteString(`provider["` + h.source + `"]`)
	if h.ref.Alias != "" {
		b.WriteString("." + h.ref.Alias)
	}
	return b.String()
}

// home follows a reference to where its configuration is written. A
// configuration that the caller passes takes precedence over an empty block of
// the module; a default configuration that is neither passed nor written is the
// caller's of the same provider, whatever its local name there.
func (m *Module) home(t *Task, ref modules.ProviderRef) (home, bool) {
	source, ok := m.source(t, ref)
	if !ok {
		return home{}, false
	}
	h := home{m, ref, source}
	for h.module.parent != nil {
		key := h.ref.Key()
		own := h.module.Decl.Providers[key]
		passed, isPassed := h.module.call.Providers[key]
		switch {
		case own != nil && !(isPassed && own.Empty):
			return h, true
		case isPassed:
			up := h.module.parent
			if other, ok := up.source(t, passed); !ok || other != source {
				if ok {
					t.Report(&hcl.Diagnostic{
						Severity: hcl.DiagError, Summary: "Provider type mismatch", Subject: passed.Range.Ptr(),
						Detail: fmt.Sprintf("The passed configuration is for %s, but %s in the module is %s. Pass one of the same provider, or mend source in required_providers.", other, key, source),
					})
				}
				return home{}, false
			}
			h.module, h.ref = up, passed
		case h.ref.Alias != "":
			return h, true // it does not exist, and its user reports that
		default:
			h.module = h.module.parent
			h.ref.Name = h.module.localName(source)
		}
	}
	return h, true
}

// localName is what the module calls the provider of a source address.
func (m *Module) localName(source string) string {
	for name := range m.Decl.Settings.RequiredProviders {
		if s, err := m.sourceOf(name); err == nil && s == source {
			return name
		}
	}
	return source[strings.LastIndexByte(source, '/')+1:]
}

// source is the full source address of the provider that a reference means.
func (m *Module) source(t *Task, ref modules.ProviderRef) (string, bool) {
	s, err := m.sourceOf(ref.Name)
	if err != nil {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid provider source", Detail: err.Error(), Subject: ref.Range.Ptr()})
		return "", false
	}
	return s, true
}

func (m *Module) sourceOf(name string) (string, error) {
	if r, ok := m.Decl.Settings.RequiredProviders[name]; ok && r.Source != "" {
		return m.ev.parsedSource(r.Source)
	}
	if name == "terraform" {
		return "terraform.io/builtin/terraform", nil
	}
	ours := "registry.terraform.io/stokehq/" + name
	if _, ok := m.ev.opts.Catalogue[ours]; ok {
		return ours, nil
	}
	return "registry.terraform.io/hashicorp/" + name, nil
}

// parsedSource completes a source address as it is written, each once.
func (ev *Evaluator) parsedSource(text string) (string, error) {
	ev.shared.Lock()
	defer ev.shared.Unlock()
	if s, ok := ev.shared.sources[text]; ok {
		return s, nil
	}
	p, err := tfaddr.ParseProviderSource(text)
	if err != nil {
		return "", err
	}
	ev.shared.sources[text] = p.String()
	return p.String(), nil
}

// ProviderAt is the configured provider of an address that the state names;
// about is the object that needs it. The block may be gone; then only a
// default configuration of the root module can do without.
func (ev *Evaluator) ProviderAt(t *Task, addr, about string) (*Provider, bool) {
	path, source, alias, ok := parseProviderAddr(addr)
	if !ok {
		return nil, t.badAddress(addr, about)
	}
	m := ev.anyInstance(t, path)
	if m == nil {
		return nil, t.noProvider(addr, about)
	}
	h := home{m, modules.ProviderRef{Name: m.localName(source), Alias: alias}, source}
	if h.decl() == nil && (alias != "" || path != "") {
		return nil, t.noProvider(addr, about)
	}
	return ev.provider(t, h)
}

// Unconfigured is the provider of an address that the state names, for what
// needs no configuration: schemas, and objects in their present form.
func (ev *Evaluator) Unconfigured(t *Task, addr, about string) (*Provider, bool) {
	_, source, _, ok := parseProviderAddr(addr)
	if !ok {
		return nil, t.badAddress(addr, about)
	}
	ev.shared.Lock()
	c := ev.shared.unconfigured[source]
	if c == nil {
		c = &cell[*Provider]{}
		ev.shared.unconfigured[source] = c
	}
	ev.shared.Unlock()
	return c.get(t, func(t *Task) (*Provider, bool) {
		schema, ok := t.Schema(source, hcl.Range{})
		if !ok {
			return nil, false
		}
		server, ok := t.open(source, schema, hcl.Range{})
		return &Provider{Addr: addr, Source: source, Schema: schema, Server: server, Type: ev.typeOf, Node: &Node{Provider: true}}, ok
	})
}

func (t *Task) badAddress(addr, about string) bool {
	t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid provider address in state", Detail: fmt.Sprintf("The state names the provider configuration %s for %s, which is not a provider address.", addr, about)})
	return false
}

func (t *Task) noProvider(addr, about string) bool {
	t.Report(&hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Provider configuration not present",
		Detail: fmt.Sprintf("%s was made with the provider configuration %s, which is no longer in the configuration; reading or destroying it needs the same one. "+
			"Put the provider block back, apply, and take it out afterwards; or let a removed block forget the object.", about, addr),
	})
	return false
}

// anyInstance is an instance of the module at a path, whatever its keys; nil
// if the configuration has no such module. Where count or for_each leave it
// without instances, one is made up: it has nothing but empty provider blocks.
func (ev *Evaluator) anyInstance(t *Task, path address.Module) *Module {
	m, ghosts := ev.root, false
	for _, step := range path.Steps() {
		call := m.calls[step.Name]
		if call == nil || call.Decl.Module == nil {
			return nil
		}
		if call.Decl.Count == nil && call.Decl.ForEach == nil && !ghosts {
			instances, ok := call.Instances(t)
			if !ok {
				return nil
			}
			m = instances[0]
			continue
		}
		m, ghosts = call.ghost(address.Key{}), true
	}
	return m
}

// ghost is an instance of the called module that the configuration does not
// want. Walk does not visit it.
func (c *Call) ghost(key address.Key) *Module {
	return unlisted(c.module.ev, c.Decl.Module, c.module.Addr.Child(c.Decl.Name, key), c.module, c.Decl, orphanRepetition(key))
}

// ParseProviderAddr splits provider["SOURCE"] with an optional .ALIAS, with
// whatever module path before it.
func ParseProviderAddr(addr string) (source, alias string, ok bool) {
	_, source, alias, ok = parseProviderAddr(addr)
	return source, alias, ok
}

func parseProviderAddr(addr string) (path address.Module, source, alias string, ok bool) {
	const open = `provider["`
	i := strings.LastIndex(addr, open)
	if i < 0 {
		return "", "", "", false
	}
	source, alias, ok = strings.Cut(addr[i+len(open):], `"]`)
	if !ok || source == "" {
		return "", "", "", false
	}
	path, err := address.ParseModule(strings.TrimSuffix(addr[:i], "."))
	return path, source, strings.TrimPrefix(alias, "."), err == nil
}
