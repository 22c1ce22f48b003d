package modules

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// override changes blocks by the blocks of override files: an argument there
// replaces one of the same name, nested blocks replace all of their type, but
// lifecycle and required_providers are changed argument by argument.
func (d *decoder) override(blocks, overrides hcl.Blocks) {
	byName := map[string]*hclsyntax.Body{}
	var locals []*hclsyntax.Body
	for _, b := range blocks {
		native, ok := b.Body.(*hclsyntax.Body)
		if !ok {
			continue
		}
		if b.Type == "locals" {
			locals = append(locals, native)
		} else if key := blockKey(b); byName[key] == nil {
			byName[key] = native
		}
	}
	for _, b := range overrides {
		native, ok := b.Body.(*hclsyntax.Body)
		if !ok {
			d.fail(&b.DefRange, "Overrides in JSON are not supported", "Write the override in a file that ends in _override.tf.")
			continue
		}
		if b.Type == "locals" {
			d.overrideLocals(locals, native)
			continue
		}
		base := byName[blockKey(b)]
		if base == nil {
			d.fail(&b.DefRange, "Nothing to override", "No other file has this %s block (in native syntax). An override file only changes what is declared elsewhere.",
				strings.Join(append([]string{b.Type}, b.Labels...), " "))
			continue
		}
		overrideBody(base, native)
	}
}

func blockKey(b *hcl.Block) string {
	key := b.Type + "\x00" + strings.Join(b.Labels, "\x00")
	if b.Type == "provider" {
		if body, ok := b.Body.(*hclsyntax.Body); ok && body.Attributes["alias"] != nil {
			alias, _ := body.Attributes["alias"].Expr.Value(nil)
			key += "\x00" + alias.GoString()
		}
	}
	return key
}

func (d *decoder) overrideLocals(bases []*hclsyntax.Body, over *hclsyntax.Body) {
	for name, attr := range over.Attributes {
		found := false
		for _, base := range bases {
			if base.Attributes[name] != nil {
				base.Attributes[name], found = attr, true
				break
			}
		}
		if !found {
			d.fail(&attr.NameRange, "Nothing to override", "No other file has a local value %q.", name)
		}
	}
}

func overrideBody(base, over *hclsyntax.Body) {
	for name, attr := range over.Attributes {
		base.Attributes[name] = attr
	}
	replaced := map[string]bool{}
	for _, block := range over.Blocks {
		merged := block.Type == "lifecycle" || block.Type == "required_providers"
		if at := slices.IndexFunc(base.Blocks, func(b *hclsyntax.Block) bool { return b.Type == block.Type }); merged && at >= 0 {
			overrideBody(base.Blocks[at].Body, block.Body)
			continue
		}
		if !replaced[block.Type] {
			replaced[block.Type] = true
			base.Blocks = slices.DeleteFunc(base.Blocks, func(b *hclsyntax.Block) bool { return b.Type == block.Type })
		}
		base.Blocks = append(base.Blocks, block)
	}
}
