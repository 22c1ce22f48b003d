package modules

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// escaped is what is left of a body after its meta-arguments, with what a
// block named _ adds: arguments that are the provider's or the module's own
// although they are called like a meta-argument.
func (d *decoder) escaped(rest hcl.Body, blocks hcl.Blocks) hcl.Body {
	var escape *hcl.Block
	for _, b := range blocks {
		switch {
		case b.Type != "_":
		case escape != nil:
			d.duplicate("block", "_", b.DefRange, escape.DefRange)
		default:
			escape = b
		}
	}
	if escape == nil {
		return rest
	}
	native, ok := rest.(*hclsyntax.Body)
	more, ok2 := escape.Body.(*hclsyntax.Body)
	if !ok || !ok2 {
		return hcl.MergeBodies([]hcl.Body{rest, escape.Body})
	}
	for name, attr := range more.Attributes {
		if first := native.Attributes[name]; first != nil {
			d.duplicate("argument", name, attr.NameRange, first.NameRange)
			continue
		}
		native.Attributes[name] = attr
	}
	native.Blocks = append(native.Blocks, more.Blocks...)
	return native
}
