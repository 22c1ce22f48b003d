package eval

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	tfaddr "github.com/hashicorp/terraform-registry-address"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/providers"
)

// Provider is a configured provider.
type Provider struct {
	Addr   string // as the state writes it: provider["registry.terraform.io/stokehq/train"]
	Source string // registry.terraform.io/stokehq/train
	Schema *providers.Schema
	Server providers.Provider
	Node   *Node
	// Unknown says that the configuration rests on what only an apply can
	// tell: the provider is not configured, and must not be asked about objects.
	Unknown bool
	Type    func(schema *providers.ResourceSchema) *Type
}

// owner returns the module instance whose provider block (or lack of one) the
// reference ends at, and the reference as that module writes it.
func (m *Module) owner(ref modules.ProviderRef) (*Module, modules.ProviderRef) {
	for {
		if m.Decl.Providers[ref.Key()] != nil || m.parent == nil {
			return m, ref
		}
		if passed, ok := m.call.Providers[ref.Key()]; ok {
			m, ref = m.parent, passed
			continue
		}
		if ref.Alias != "" {
			return m, ref
		}
		m = m.parent
	}
}

// source is the full source address of a provider's local name.
func (m *Module) source(name string) (string, error) {
	if name == "terraform" {
		return "terraform.io/builtin/terraform", nil
	}
	if r, ok := m.Decl.Settings.RequiredProviders[name]; ok && r.Source != "" {
		p, err := tfaddr.ParseProviderSource(r.Source)
		if err != nil {
			return "", err
		}
		return p.String(), nil
	}
	ours := "registry.terraform.io/stokehq/" + name
	if _, ok := m.ev.opts.Catalogue[ours]; ok {
		return ours, nil
	}
	return "registry.terraform.io/hashicorp/" + name, nil
}

func (m *Module) providerSchema(t *Task, ref modules.ProviderRef) (*providers.Schema, string, bool) {
	owner, ref := m.owner(ref)
	source, err := owner.source(ref.Name)
	if err != nil {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid provider source", Detail: err.Error(), Subject: ref.Range.Ptr()})
		return nil, "", false
	}
	s, ok := t.Schema(source, ref.Range)
	return s, source, ok
}

// Schema is what the provider of a source address offers; rng is where it is
// needed.
func (t *Task) Schema(source string, rng hcl.Range) (*providers.Schema, bool) {
	ev := t.ev
	ev.shared.Lock()
	c := ev.shared.schemas[source]
	if c == nil {
		c = &cell[*providers.Schema]{}
		ev.shared.schemas[source] = c
	}
	ev.shared.Unlock()
	return c.get(t, func(t *Task) (*providers.Schema, bool) {
		server, ok := t.open(source, rng)
		if !ok {
			return nil, false
		}
		schema, diags := server.Schema(ev.ctx)
		t.Report(FromProvider(diags, nil, rng, "provider "+source)...)
		return schema, !diags.HasErrors()
	})
}

func (t *Task) open(source string, rng hcl.Range) (providers.Provider, bool) {
	entry, ok := t.ev.opts.Catalogue[source]
	if !ok {
		detail := fmt.Sprintf("No provider %s is built into this version of stoke, and it cannot install others yet.", source)
		var short []string
		for s := range t.ev.opts.Catalogue {
			short = append(short, s[strings.LastIndexByte(s, '/')+1:])
		}
		if near := Nearest(source[strings.LastIndexByte(source, '/')+1:], short); near != "" {
			detail += fmt.Sprintf(" Did you mean %q?", near)
		}
		t.ev.reportOnce("source "+source, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Provider not available", Detail: detail, Subject: rng.Ptr()})
		return nil, false
	}
	server, err := entry.New()
	if err != nil {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Failed to start provider", Detail: fmt.Sprintf("%s: %s.", source, err), Subject: rng.Ptr()})
		return nil, false
	}
	t.ev.shared.Lock()
	t.ev.shared.opened = append(t.ev.shared.opened, server)
	t.ev.shared.Unlock()
	return server, true
}

// Provider is the configured provider that a module means by a reference.
func (m *Module) Provider(t *Task, ref modules.ProviderRef) (*Provider, bool) {
	owner, ref := m.owner(ref)
	key := ref.Key()
	ev := m.ev
	ev.shared.Lock()
	c := owner.providers[key]
	if c == nil {
		c = &cell[*Provider]{}
		c.node = &Node{Provider: true}
		c.name = func() string { return owner.qualify("provider." + key) }
		if decl := owner.Decl.Providers[key]; decl != nil {
			c.rng = &decl.Range
		}
		owner.providers[key] = c
	}
	ev.shared.Unlock()
	return c.get(t, func(t *Task) (*Provider, bool) {
		p, ok := t.configure(owner, ref)
		if p != nil {
			p.Node = c.node
		}
		return p, ok
	})
}

func (t *Task) configure(m *Module, ref modules.ProviderRef) (*Provider, bool) {
	decl := m.Decl.Providers[ref.Key()]
	if decl == nil && ref.Alias != "" {
		t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Provider configuration not present",
			Detail:  fmt.Sprintf("There is no block provider %q with alias %q.", ref.Name, ref.Alias),
			Subject: ref.Range.Ptr(),
		})
		return nil, false
	}
	schema, source, ok := m.providerSchema(t, ref)
	if !ok {
		return nil, false
	}
	p := &Provider{Addr: m.providerAddr(source, ref.Alias), Source: source, Schema: schema, Type: t.ev.typeOf}
	block := schema.Provider
	if block == nil {
		block = &providers.Block{}
	}
	ty := NewType(&providers.ResourceSchema{Block: block})
	body, rng := hcl.EmptyBody(), ref.Range
	if decl != nil {
		body, rng = decl.Body, decl.Range
	}
	config, ok := t.decodeProvider(m, body, ty)
	if !ok {
		return nil, false
	}
	server, ok := t.open(source, rng)
	if !ok {
		return nil, false
	}
	p.Server = server
	config, _ = config.UnmarkDeep()
	p.Unknown = t.ev.opts.Deferring && !config.IsWhollyKnown() && t.readsResources()
	diags := server.ValidateProvider(t.ev.ctx, config)
	if !diags.HasErrors() && !t.ev.opts.Validating && !p.Unknown {
		diags = append(diags, server.Configure(t.ev.ctx, config)...)
	}
	t.Report(FromProvider(diags, body, rng, "provider "+ref.Key())...)
	return p, !diags.HasErrors()
}

func (t *Task) decodeProvider(m *Module, body hcl.Body, ty *Type) (cty.Value, bool) {
	var refs []lang.Reference
	ok := true
	for _, tr := range variablesIn(body, ty) {
		ref, diags := lang.ParseReference(tr)
		t.Report(diags...)
		ok = ok && !diags.HasErrors()
		if !diags.HasErrors() {
			refs = append(refs, ref)
		}
	}
	ctx, fine := t.context(scope{module: m}, refs)
	if !ok || !fine {
		return cty.DynamicVal, false
	}
	return t.decode(body, ty, ctx)
}

func (m *Module) providerAddr(source, alias string) string {
	s := `provider["` + source + `"]`
	if alias != "" {
		s += "." + alias
	}
	if m.Addr != "" {
		s = string(m.Addr) + "." + s
	}
	return s
}

// ProviderAt is the configured provider of an address that the state names. A
// block that is not there any more leaves the provider unconfigured only if it
// has no required arguments.
func (ev *Evaluator) ProviderAt(t *Task, addr string) (*Provider, bool) {
	source, alias, ok := ParseProviderAddr(addr)
	if !ok {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid provider address in state", Detail: fmt.Sprintf("The state names the provider configuration %s, which is not a provider address.", addr)})
		return nil, false
	}
	m := ev.root
	name := source[strings.LastIndexByte(source, '/')+1:]
	for local := range m.Decl.Settings.RequiredProviders {
		if s, err := m.source(local); err == nil && s == source {
			name = local
		}
	}
	return m.Provider(t, modules.ProviderRef{Name: name, Alias: alias})
}

// ParseProviderAddr splits provider["SOURCE"] with an optional .ALIAS, with
// whatever module path before it.
func ParseProviderAddr(addr string) (source, alias string, ok bool) {
	const open = `provider["`
	i := strings.LastIndex(addr, open)
	if i < 0 {
		return "", "", false
	}
	rest := addr[i+len(open):]
	source, alias, ok = strings.Cut(rest, `"]`)
	if !ok || source == "" {
		return "", "", false
	}
	return source, strings.TrimPrefix(alias, "."), true
}
