package modules

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// override changes blocks by the blocks of override files, in the order in
// which the files are read, and returns them all: an argument there replaces
// one of the same name, nested blocks replace all of their type, and a
// lifecycle block is changed argument by argument. What settings and local
// values there are is known once they are read, so those wait for afterwards.
func (d *decoder) override(blocks, overrides hcl.Blocks) hcl.Blocks {
	byKey := map[string]*hcl.Block{}
	for _, b := range blocks {
		if key := blockKey(b); byKey[key] == nil {
			byKey[key] = b
		}
	}
	for _, b := range overrides {
		switch b.Type {
		case "variable", "output", "resource", "data", "ephemeral", "module", "provider":
		case "terraform", "stoke", "locals":
			continue
		default:
			d.fail(&b.DefRange, "Block cannot be overridden",
				"An override file can have no %s block. Move it to a file with another name.", b.Type)
			continue
		}
		key := blockKey(b)
		base := byKey[key]
		switch {
		case base != nil:
			d.checkOverride(b)
			base.Body = overridden(base.Body, b.Body)
		case b.Type == "provider" && !strings.Contains(key, "\x00alias\x00"):
			// Every provider has a default configuration, written or not.
			byKey[key] = b
			blocks = append(blocks, b)
		default:
			d.fail(&b.DefRange, "Nothing to override", "No other file has this %s block. An override file only changes what is declared elsewhere.",
				strings.Join(append([]string{b.Type}, b.Labels...), " "))
		}
	}
	return blocks
}

// overrideRest does what has to wait until all other files are read.
func (d *decoder) overrideRest(overrides hcl.Blocks) {
	for _, b := range overrides {
		switch b.Type {
		case "terraform", "stoke":
			d.settings(b, true)
		case "locals":
			d.overrideLocals(b)
		}
	}
}

func blockKey(b *hcl.Block) string {
	key := b.Type + "\x00" + strings.Join(b.Labels, "\x00")
	if b.Type != "provider" {
		return key
	}
	content, _, _ := b.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "alias"}}})
	if attr := content.Attributes["alias"]; attr != nil {
		alias, _ := attr.Expr.Value(nil)
		key += "\x00alias\x00" + alias.GoString()
	}
	return key
}

// notOverridden are the parts that lists are built of: whether an override
// would replace or extend them is nothing that a reader could tell.
var notOverridden = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "depends_on"}},
	Blocks:     []hcl.BlockHeaderSchema{{Type: "validation"}, {Type: "precondition"}, {Type: "postcondition"}},
}

func (d *decoder) checkOverride(b *hcl.Block) {
	bodies := []hcl.Body{b.Body}
	switch b.Type {
	case "provider", "module":
		return // what the provider or the module calls so
	case "resource", "data", "ephemeral":
		content, _, _ := b.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "lifecycle"}}})
		for _, lifecycle := range content.Blocks {
			bodies = append(bodies, lifecycle.Body)
		}
	}
	for i, body := range bodies {
		content, _, _ := body.PartialContent(notOverridden)
		if attr := content.Attributes["depends_on"]; attr != nil {
			d.fail(&attr.NameRange, "Argument cannot be overridden",
				"An override file cannot change depends_on. Change it where the %s is declared.", b.Type)
		}
		for _, nested := range content.Blocks {
			if i == 0 && b.Type != "variable" && b.Type != "output" {
				continue // a nested block of the resource's own that is called so
			}
			d.fail(&nested.DefRange, "Block cannot be overridden",
				"An override file cannot change %s blocks. Change them where the %s is declared.", nested.Type, b.Type)
		}
	}
}

func (d *decoder) overrideLocals(block *hcl.Block) {
	attrs, diags := block.Body.JustAttributes()
	d.diags = append(d.diags, diags...)
	for name, attr := range attrs {
		if d.module.Locals[name] == nil {
			d.fail(&attr.NameRange, "Nothing to override", "No other file has a local value %q.", name)
			continue
		}
		d.module.Locals[name] = &Local{Name: name, Expr: attr.Expr, Range: attr.NameRange}
	}
}

// overridden is base as over changes it. Native bodies are changed in place:
// they stay as cheap, and as well explained in messages, as any other.
func overridden(base, over hcl.Body) hcl.Body {
	nativeBase, ok := base.(*hclsyntax.Body)
	nativeOver, ok2 := over.(*hclsyntax.Body)
	if !ok || !ok2 {
		return &overlay{base: base, over: over}
	}
	overrideNative(nativeBase, nativeOver)
	return nativeBase
}

func overrideNative(base, over *hclsyntax.Body) {
	for name, attr := range over.Attributes {
		delete(base.Attributes, exclusive[name])
		base.Attributes[name] = attr
	}
	replaced := map[string]bool{}
	var added hclsyntax.Blocks
	for _, block := range over.Blocks {
		at := slices.IndexFunc(base.Blocks, func(b *hclsyntax.Block) bool { return b.Type == block.Type })
		if mergedBlocks[block.Type] && at >= 0 {
			overrideNative(base.Blocks[at].Body, block.Body)
			continue
		}
		replaced[replacedType(block.Type, block.Labels)] = true
		added = append(added, block)
	}
	base.Blocks = append(slices.DeleteFunc(base.Blocks, func(b *hclsyntax.Block) bool {
		return replaced[replacedType(b.Type, b.Labels)]
	}), added...)
}
