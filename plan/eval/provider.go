package eval

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/providers"
)

// Provider is a configured provider.
type Provider struct {
	Addr   string // as the state writes it: provider["registry.terraform.io/stokehq/train"]
	Source string // registry.terraform.io/stokehq/train
	Schema *providers.Schema
	Server *redact.Provider
	Node   *Node
	// Unknown reports that the configuration depends on values that only an apply
	// can know: the provider is not configured, and the caller must not send it
	// objects.
	Unknown bool
	// Excluded is the same for a configuration that depends on something excluded.
	Excluded bool
	Type     func(schema *providers.ResourceSchema) *Type
}

// providerSchema is what the provider offers that a reference means.
func (m *Module) providerSchema(t *Task, ref modules.ProviderRef) (*providers.Schema, string, bool) {
	source, ok := m.source(t, ref)
	if !ok {
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
		server, ok := t.open(source, nil, rng)
		if !ok {
			return nil, false
		}
		schema, diags := server.Schema(ev.ctx)
		t.Report(FromProvider(diags, nil, rng, "provider "+source)...)
		return schema, !diags.HasErrors()
	})
}

// open starts a provider; the schema is nil where it is only asked for that.
func (t *Task) open(source string, schema *providers.Schema, rng hcl.Range) (*redact.Provider, bool) {
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
		d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Provider not available", Detail: detail}
		if rng.Filename != "" { // else the state asks for it
			d.Subject = rng.Ptr()
		}
		t.ev.reportOnce("source "+source, d)
		return nil, false
	}
	raw, err := entry.New()
	if err != nil {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Failed to start provider", Detail: fmt.Sprintf("%s: %s.", source, err), Subject: rng.Ptr()})
		return nil, false
	}
	server := redact.NewProvider(raw, schema)
	t.ev.shared.Lock()
	t.ev.shared.opened = append(t.ev.shared.opened, server)
	t.ev.shared.Unlock()
	return server, true
}

// Provider is the configured provider that a module means by a reference.
func (m *Module) Provider(t *Task, ref modules.ProviderRef) (*Provider, bool) {
	h, ok := m.home(t, ref)
	if !ok {
		return nil, false
	}
	return m.ev.provider(t, h)
}

func (ev *Evaluator) provider(t *Task, h home) (*Provider, bool) {
	key := h.key()
	ev.shared.Lock()
	c := ev.shared.providers[key]
	if c == nil {
		c = &cell[*Provider]{}
		c.node = &Node{Provider: true}
		c.name = h.addr
		if decl := h.decl(); decl != nil {
			c.rng = &decl.Range
		}
		ev.shared.providers[key] = c
	}
	ev.shared.Unlock()
	return c.get(t, func(t *Task) (*Provider, bool) {
		p, ok := t.configure(h)
		if p != nil {
			p.Node = c.node
		}
		return p, ok
	})
}

func (t *Task) configure(h home) (*Provider, bool) {
	decl, ref := h.decl(), h.ref
	if decl == nil && ref.Alias != "" {
		t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Provider configuration not present",
			Detail:  fmt.Sprintf("Block provider %q with alias %q does not exist.", ref.Name, ref.Alias),
			Subject: ref.Range.Ptr(),
		})
		return nil, false
	}
	schema, ok := t.Schema(h.source, ref.Range)
	if !ok {
		return nil, false
	}
	p := &Provider{Addr: h.addr(), Source: h.source, Schema: schema, Type: t.ev.typeOf}
	block := schema.Provider
	if block == nil {
		block = &providers.Block{}
	}
	ty := NewType(&providers.ResourceSchema{Block: block})
	body, rng := hcl.EmptyBody(), ref.Range
	if decl != nil {
		body, rng = decl.Body, decl.Range
	}
	config, ok := t.decodeProvider(h.module, body, ty)
	if !ok {
		return nil, false
	}
	server, ok := t.open(h.source, schema, rng)
	if !ok {
		return nil, false
	}
	p.Server = server
	p.Excluded = lang.HasMark(config, lang.Excluded)
	config, marked, _ := lang.Unmark(config)
	sensitive := marked.Secret()
	p.Unknown = t.ev.opts.Deferring && !config.IsWhollyKnown() && t.readsResources()
	diags := server.ValidateProvider(t.ev.ctx, config, sensitive)
	if !diags.HasErrors() && !t.ev.opts.Validating && !p.Unknown && !p.Excluded {
		diags = append(diags, server.Configure(t.ev.stoppable(), config, sensitive)...)
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
	v, diags := decode(body, ty, ctx)
	t.Report(diags...)
	return v, !diags.HasErrors()
}
