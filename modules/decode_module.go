package modules

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules/source"
)

var callSchema = newSchema(
	[]string{"!source", "version", "providers", "count", "for_each", "depends_on"},
	map[string][]string{"lifecycle": nil, "provider": {"name"}, "_": nil},
)

func (d *decoder) call(block *hcl.Block) {
	name := block.Labels[0]
	if !d.name("module", name, block.LabelRanges[0]) {
		return
	}
	if first := d.module.Calls[name]; first != nil {
		d.duplicate("module", name, block.DefRange, first.Range)
		return
	}
	content, rest, diags := callSchema.split(block.Body)
	d.diags = append(d.diags, diags...)
	c := &Call{
		Name:      name,
		DependsOn: d.references(content.Attributes["depends_on"]),
		Providers: d.passedProviders(content.Attributes["providers"]),
		Range:     block.DefRange,
	}
	c.Count, c.ForEach = d.repetition(content)
	d.callSource(c, content.Attributes)
	for _, b := range content.Blocks {
		if b.Type != "_" {
			d.fail(&b.DefRange, "Block not expected here", "A module call has no %s block.", b.Type)
		}
	}
	c.Args, diags = d.escaped(rest, content.Blocks).JustAttributes()
	d.diags = append(d.diags, diags...)
	d.module.Calls[name] = c
}

// callSource reads where the module of a call comes from.
func (d *decoder) callSource(c *Call, attrs hcl.Attributes) {
	attr := attrs["source"]
	text := d.str(attr)
	if attr == nil || text == "" && d.diags.HasErrors() {
		return
	}
	c.SourceRange = attr.Expr.Range()
	if source.Redact(text) != text {
		c.SourceRange = c.Range // messages quote what they are about
	}
	address, err := source.Parse(text)
	if err != nil {
		d.fail(&c.SourceRange, "Invalid module source", "%q cannot be read as the source of a module: %s.", clip(source.Redact(text)), err)
		return
	}
	if version := attrs["version"]; version != nil {
		if address.Kind != source.Published {
			d.fail(&c.SourceRange, "Version of a module without versions",
				"Only modules of a registry have versions; %s. Remove the argument \"version\".", versionHint(address))
		} else if text := d.str(version); d.constraint(text, version.Expr.Range()) {
			c.Version = text
		}
	}
	c.Source, c.Address = text, address
}

// versionHint says how else a source says which version it means.
func versionHint(a source.Address) string {
	switch {
	case a.Kind == source.Folder:
		return "a folder has none"
	case a.Kind == source.Library:
		return "the library has one of each, this program's"
	case strings.HasPrefix(a.Text, "git::"):
		return "a repository's is chosen by ?ref=TAG at the end of the source"
	}
	return "this address names a fixed one"
}

// passedProviders reads providers = { theirs = ours, … }.
func (d *decoder) passedProviders(attr *hcl.Attribute) map[string]ProviderRef {
	if attr == nil {
		return nil
	}
	pairs, diags := hcl.ExprMap(attr.Expr)
	d.diags = append(d.diags, diags...)
	passed := make(map[string]ProviderRef, len(pairs))
	for _, pair := range pairs {
		theirs, ok := d.providerRef(pair.Key)
		ours, ok2 := d.providerRef(pair.Value)
		if !ok || !ok2 {
			continue
		}
		if first, ok := passed[theirs.Key()]; ok {
			d.duplicate("provider of the module", theirs.Key(), pair.Key.Range(), first.Range)
			continue
		}
		passed[theirs.Key()] = ours
	}
	return passed
}

var providerSchema = newSchema(
	[]string{"alias", "version", "count", "for_each", "depends_on", "source"},
	map[string][]string{"lifecycle": nil, "_": nil},
)

func (d *decoder) provider(block *hcl.Block) {
	name := block.Labels[0]
	if !d.providerName(name, block.LabelRanges[0]) {
		return
	}
	content, rest, diags := providerSchema.split(block.Body)
	d.diags = append(d.diags, diags...)
	p := &ProviderConfig{Name: name, Body: d.escaped(rest, content.Blocks), Range: block.DefRange}
	p.Empty = emptyBody(p.Body)
	for _, reserved := range []string{"count", "for_each", "depends_on", "source"} {
		if attr := content.Attributes[reserved]; attr != nil {
			d.fail(&attr.NameRange, "Reserved argument", "A provider block has no argument %q.", reserved)
		}
	}
	if attr := content.Attributes["version"]; attr != nil {
		d.fail(&attr.NameRange, "Version in a provider block", "It is not looked at. Say the version in terraform { required_providers { … } } instead.")
		d.diags[len(d.diags)-1].Severity = hcl.DiagWarning // old configurations have it
	}
	for _, b := range content.Blocks {
		if b.Type != "_" {
			d.fail(&b.DefRange, "Block not expected here", "A provider block has no %s block.", b.Type)
		}
	}
	if attr := content.Attributes["alias"]; attr != nil {
		p.Alias = d.str(attr)
		if p.Alias == "" || !d.name("provider's alias", p.Alias, attr.Expr.Range()) {
			return
		}
	}
	key := ProviderRef{Name: p.Name, Alias: p.Alias}.Key()
	if first := d.module.Providers[key]; first != nil {
		d.duplicate("provider configuration", key, block.DefRange, first.Range)
		return
	}
	d.module.Providers[key] = p
}

// checkProviders finds references to aliased configurations that the module
// neither has nor expects from its caller.
func (d *decoder) checkProviders() {
	known := map[string]bool{}
	for key := range d.module.Providers {
		known[key] = true
	}
	for _, required := range d.module.Settings.RequiredProviders {
		for _, alias := range required.Aliases {
			known[alias] = true
		}
	}
	check := func(ref ProviderRef) {
		if ref.Alias == "" || known[ref.Key()] {
			return
		}
		d.fail(ref.Range.Ptr(), "Unknown provider configuration", "This module has no block provider %q with alias = %q.%s",
			ref.Name, ref.Alias, didYouMean(ref.Key(), slices.Collect(maps.Keys(known))))
	}
	for _, r := range d.module.Resources {
		check(r.Provider)
	}
	for _, c := range d.module.Calls {
		for _, ref := range c.Providers {
			check(ref)
		}
	}
}
