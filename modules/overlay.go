package modules

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// overlay is a body that another body of an override file changes: its
// arguments replace those of the same name, its blocks replace all of their
// type. It serves JSON, where what is a block is known only when somebody
// asks with a schema.
type overlay struct {
	base, over hcl.Body
}

var _ hcl.Body = (*overlay)(nil)

// mergedBlocks are changed argument by argument rather than replaced.
var mergedBlocks = map[string]bool{"lifecycle": true}

// exclusive are arguments of which one makes the other void.
var exclusive = map[string]string{"count": "for_each", "for_each": "count"}

func (o *overlay) Content(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	optional := withoutRequired(schema)
	base, diags := o.base.Content(optional)
	over, more := o.over.Content(optional)
	content := merged(base, over)
	return content, append(append(diags, more...), missing(schema, content)...)
}

func (o *overlay) PartialContent(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	optional := withoutRequired(schema)
	base, baseRest, diags := o.base.PartialContent(optional)
	over, overRest, more := o.over.PartialContent(optional)
	content := merged(base, over)
	return content, &overlay{base: baseRest, over: overRest}, append(append(diags, more...), missing(schema, content)...)
}

func (o *overlay) JustAttributes() (hcl.Attributes, hcl.Diagnostics) {
	base, diags := o.base.JustAttributes()
	over, more := o.over.JustAttributes()
	return mergedAttributes(base, over), append(diags, more...)
}

func (o *overlay) MissingItemRange() hcl.Range { return o.base.MissingItemRange() }

// merged puts the content of an overriding body over that of its base.
func merged(base, over *hcl.BodyContent) *hcl.BodyContent {
	content := &hcl.BodyContent{
		Attributes:       mergedAttributes(base.Attributes, over.Attributes),
		MissingItemRange: base.MissingItemRange,
	}
	replaced := map[string]bool{}
	var added hcl.Blocks
	for _, block := range over.Blocks {
		if at := slices.IndexFunc(base.Blocks, func(b *hcl.Block) bool { return b.Type == block.Type }); mergedBlocks[block.Type] && at >= 0 {
			base.Blocks[at].Body = overridden(base.Blocks[at].Body, block.Body)
			continue
		}
		replaced[replacedType(block.Type, block.Labels)] = true
		added = append(added, block)
	}
	for _, block := range base.Blocks {
		if !replaced[replacedType(block.Type, block.Labels)] {
			content.Blocks = append(content.Blocks, block)
		}
	}
	content.Blocks = append(content.Blocks, added...)
	return content
}

// replacedType returns the type of the generated blocks for a dynamic block
// (its label), and the block's own type otherwise.
func replacedType(blockType string, labels []string) string {
	if blockType == "dynamic" && len(labels) == 1 {
		return labels[0]
	}
	return blockType
}

func mergedAttributes(base, over hcl.Attributes) hcl.Attributes {
	attrs := make(hcl.Attributes, len(base)+len(over))
	for name, attr := range base {
		if other := exclusive[name]; other == "" || over[other] == nil {
			attrs[name] = attr
		}
	}
	for name, attr := range over {
		attrs[name] = attr
	}
	return attrs
}

// withoutRequired is a schema that neither half has to fulfil by itself.
func withoutRequired(schema *hcl.BodySchema) *hcl.BodySchema {
	optional := &hcl.BodySchema{Blocks: schema.Blocks, Attributes: slices.Clone(schema.Attributes)}
	for i := range optional.Attributes {
		optional.Attributes[i].Required = false
	}
	return optional
}

func missing(schema *hcl.BodySchema, content *hcl.BodyContent) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, attr := range schema.Attributes {
		if attr.Required && content.Attributes[attr.Name] == nil {
			diags = append(diags, missingArgument(content.MissingItemRange, attr.Name))
		}
	}
	return diags
}

func missingArgument(at hcl.Range, name string) *hcl.Diagnostic {
	return failure(&at, "Missing required argument", "The argument %q is required, but no definition was found.", name)
}
