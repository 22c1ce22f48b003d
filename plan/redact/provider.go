package redact

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// Provider wraps a provider and removes secrets from its diagnostics, progress and notes: the
// sensitive values of the call's input and of its answer (for progress, which precedes the answer,
// only of the input). It has the methods of providers.Provider; methods with values as input also
// take the caller's sensitive paths, in addition to the schema, so that a caller cannot forget
// them. Sensitive paths count in every value of the call.
//
// A call costs nothing more until the provider says something. Then the texts
// of that call's values are gathered, once.
type Provider struct {
	server providers.Provider
	schema *providers.Schema

	mu     sync.Mutex
	places Places
	config []callValue
}

// NewProvider wraps a provider so that it repeats no secret. The schema is the
// provider's; nil where nothing but Schema is called.
func NewProvider(server providers.Provider, schema *providers.Schema) *Provider {
	return &Provider{server: server, schema: schema, places: Places{}}
}

// Schema is that of providers.Provider.
func (p *Provider) Schema(ctx context.Context) (*providers.Schema, providers.Diagnostics) {
	schema, diags := p.server.Schema(ctx)
	return schema, p.call(nil, nil).diagnostics(diags)
}

// ValidateProvider is that of providers.Provider. The sensitive values of the
// configuration are removed from the messages of all later calls.
func (p *Provider) ValidateProvider(ctx context.Context, config cty.Value, sensitive []cty.Path) providers.Diagnostics {
	p.configured(config, sensitive)
	c := p.call(nil, nil)
	return c.answered(p.server.ValidateProvider(c.context(ctx), config), nil)
}

// Configure implements providers.Provider, see ValidateProvider.
func (p *Provider) Configure(ctx context.Context, config cty.Value, sensitive []cty.Path) providers.Diagnostics {
	p.configured(config, sensitive)
	c := p.call(nil, nil)
	return c.answered(p.server.Configure(c.context(ctx), config), nil)
}

// Linked returns the wrapped provider, for its interfaces other than
// providers.Provider. The caller passes their texts through Clean.
func (p *Provider) Linked() providers.Provider { return p.server }

// Clean is a text without what is sensitive in the provider's configuration.
func (p *Provider) Clean(text string) string { return p.call(nil, nil).text(text) }

// configured remembers the last configuration.
func (p *Provider) configured(config cty.Value, sensitive []cty.Path) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.config = []callValue{{value: config, at: p.placesOf(p.providerBlock(), sensitive)}}
}

func (p *Provider) providerBlock() *providers.Block {
	if p.schema == nil {
		return nil
	}
	if p.schema.Provider == nil {
		return &providers.Block{}
	}
	return p.schema.Provider
}

// Stop is that of providers.Provider.
func (p *Provider) Stop(ctx context.Context) error { return p.cleanError(p.server.Stop(ctx)) }

// Close is that of providers.Provider.
func (p *Provider) Close() error { return p.cleanError(p.server.Close()) }

// cleanError leaves nothing but the text: what is wrapped has the secret still.
func (p *Provider) cleanError(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(p.call(nil, nil).text(err.Error()))
}

// callValue is a value that a call has in it, and where it is secret. Of at, nil
// is nowhere.
type callValue struct {
	value cty.Value
	at    []cty.Path
}

// everywhere is the place that is a whole value.
var everywhere = []cty.Path{{}}

// placesOf are the places in values that a block describes; of what nothing
// describes, everything is secret. p.mu is held.
func (p *Provider) placesOf(b *providers.Block, sensitive []cty.Path) []cty.Path {
	if b == nil {
		return everywhere
	}
	return p.places.SecretPaths(b, sensitive)
}

// call is one call: what it is about, and what a message of it may not say.
type call struct {
	p         *Provider
	block     *providers.Block // nil: unknown
	sensitive []cty.Path

	mu      sync.Mutex
	values  []callValue
	json    [][]byte // stored objects, of whatever schema
	secrets *Secrets // nil until the provider says something
	notes   []providers.Note
	ended   bool
	listen  func(providers.Note)
	address string // which the engine has given it
}

func (p *Provider) call(rs *providers.ResourceSchema, sensitive []cty.Path, values ...cty.Value) *call {
	c := &call{p: p, sensitive: sensitive}
	if rs != nil {
		c.block = rs.Block
	}
	c.noteValues(sensitive, values...)
	return c
}

func (p *Provider) resource(typeName string) *providers.ResourceSchema {
	if p.schema == nil {
		return nil
	}
	return p.schema.Resources[typeName]
}

func (p *Provider) data(typeName string) *providers.ResourceSchema {
	if p.schema == nil {
		return nil
	}
	return p.schema.Data[typeName]
}

// noteValues notes values that the call is given or answers.
func (c *call) noteValues(sensitive []cty.Path, values ...cty.Value) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range values {
		if v == cty.NilVal || v.IsNull() {
			continue
		}
		one := callValue{value: v, at: sensitive}
		c.values = append(c.values, one)
		if c.secrets != nil {
			c.add(one)
		}
	}
}

// add takes in the texts of a value. at has the sensitive places that the
// schema does not name. c.mu is held.
func (c *call) add(one callValue) {
	c.p.mu.Lock()
	at := c.p.placesOf(c.block, one.at)
	c.p.mu.Unlock()
	v := one.value
	if v.ContainsMarked() { // an answer that is refused for it
		v, _ = v.UnmarkDeep()
	}
	c.secrets.AddAt(v, at)
}

// answered ends the call: it notes what the answer holds, and returns what the
// provider says without what is secret. Notes have waited for that, as they may
// tell what the answer holds; progress cannot wait.
func (c *call) answered(diags providers.Diagnostics, sensitive []cty.Path, values ...cty.Value) providers.Diagnostics {
	c.noteValues(sensitive, values...)
	c.mu.Lock()
	notes := c.notes
	c.notes, c.ended = nil, true
	c.mu.Unlock()
	for _, n := range notes {
		c.listen(c.note(n, c.address))
	}
	return c.diagnostics(diags)
}

// hold keeps a note until the answer is there.
func (c *call) hold(n providers.Note) {
	c.mu.Lock()
	if !c.ended {
		c.notes = append(c.notes, n)
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.listen(c.note(n, c.address))
}

// text is a text without what is secret in the call.
func (c *call) text(text string) string {
	if text == "" {
		return text
	}
	c.mu.Lock()
	if c.secrets == nil {
		c.secrets = &Secrets{}
		for _, one := range c.values {
			c.add(one)
		}
		for _, js := range c.json {
			c.addJSON(js)
		}
		c.p.mu.Lock()
		config := c.p.config
		c.p.mu.Unlock()
		for _, one := range config {
			c.secrets.AddAt(one.value, one.at)
		}
	}
	s := c.secrets
	c.mu.Unlock()
	return s.Redact(text)
}

// diagnostics are what the provider says, cleaned. The list belongs to the
// call.
func (c *call) diagnostics(diags providers.Diagnostics) providers.Diagnostics {
	diags = slices.Clone(diags)
	for i, d := range diags {
		diags[i].Summary, diags[i].Detail = c.text(d.Summary), c.text(d.Detail)
		diags[i].Path, diags[i].Address = c.path(d.Path), c.text(d.Address)
	}
	return diags
}

// path is a path as far as it names no secret: an element of a map or a set may
// be one.
func (c *call) path(path cty.Path) cty.Path {
	for i, step := range path {
		name := ""
		switch step := step.(type) {
		case cty.GetAttrStep:
			name = step.Name
		case cty.IndexStep:
			if !secretFree(step.Key, c.text) {
				return path[:i:i]
			}
		}
		if name != "" && c.text(name) != name {
			return path[:i:i]
		}
	}
	return path
}

// secretFree reports whether a key, or anything in it, is left as it is.
func secretFree(key cty.Value, text func(string) string) bool {
	free := true
	if key == cty.NilVal {
		return free
	}
	key, _ = key.UnmarkDeep()
	eachLeaf(key, []*places{placesOf(everywhere)}, func(leaf cty.Value) {
		if leaf.Type() == cty.String {
			free = free && text(leaf.AsString()) == leaf.AsString()
		}
	})
	return free
}

func (c *call) note(n providers.Note, address string) providers.Note {
	n.Text, n.Path, n.Kind = c.text(n.Text), c.path(n.Path), providers.NoteKind(c.text(string(n.Kind)))
	if n.Address != address {
		n.Address = c.text(n.Address)
	}
	return n
}

// context returns the context of the call: progress and notes are cleaned on
// their way.
func (c *call) context(ctx context.Context) context.Context {
	outer := providers.CallFrom(ctx)
	if outer.Replaces != cty.NilVal {
		c.noteValues(c.sensitive, outer.Replaces)
	}
	if outer.Progress == nil && outer.Note == nil {
		return ctx
	}
	inner := *outer
	if outer.Progress != nil {
		inner.Progress = func(p providers.Progress) {
			p.Step, p.Line = c.text(p.Step), c.text(p.Line)
			outer.Progress(p)
		}
	}
	if outer.Note != nil {
		c.listen, c.address = outer.Note, outer.Address
		inner.Note = c.hold
	}
	return providers.WithCall(ctx, &inner)
}
