package modules

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stokehq/stoke/modules/lang"
)

// schema names the arguments (a "!" in front: required) and nested blocks
// (each with its labels) of a block.
type schema struct {
	attrs  []string
	blocks map[string][]string
	hcl    *hcl.BodySchema
}

func newSchema(attrs []string, blocks map[string][]string) *schema {
	s := &schema{blocks: blocks, hcl: &hcl.BodySchema{}}
	for _, name := range attrs {
		required := name[0] == '!'
		if required {
			name = name[1:]
		}
		s.attrs = append(s.attrs, name)
		s.hcl.Attributes = append(s.hcl.Attributes, hcl.AttributeSchema{Name: name, Required: required})
	}
	for name, labels := range blocks {
		s.hcl.Blocks = append(s.hcl.Blocks, hcl.BlockHeaderSchema{Type: name, LabelNames: labels})
	}
	// hcl suggests the first name that is near enough.
	slices.SortFunc(s.hcl.Blocks, func(a, b hcl.BlockHeaderSchema) int {
		return len(a.Type) - len(b.Type)
	})
	return s
}

// all takes a body apart that has nothing but what the schema names.
// A required argument that is there under a mistyped name is one mistake.
func (s *schema) all(body hcl.Body) (*hcl.BodyContent, hcl.Diagnostics) {
	content, diags := body.Content(s.hcl)
	if len(diags) < 2 {
		return content, diags
	}
	kept := diags[:0:0]
	for _, d := range diags {
		mistyped := d.Summary == "Missing required argument" && slices.ContainsFunc(diags, func(o *hcl.Diagnostic) bool {
			_, name, ok := strings.Cut(o.Detail, "Did you mean ")
			return ok && strings.Contains(d.Detail, strings.TrimSuffix(name, "?"))
		})
		if !mistyped {
			kept = append(kept, d)
		}
	}
	return content, kept
}

// split takes out of a body what the schema names and returns the rest. A
// native body is changed in place, which costs a tenth of hcl's own way:
// configurations have thousands of resources.
func (s *schema) split(body hcl.Body) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		return body.PartialContent(s.hcl)
	}
	content := &hcl.BodyContent{MissingItemRange: native.MissingItemRange()}
	var diags hcl.Diagnostics
	for _, attr := range s.hcl.Attributes {
		found := native.Attributes[attr.Name]
		if found == nil {
			if attr.Required {
				diags = append(diags, missingArgument(content.MissingItemRange, attr.Name))
			}
			continue
		}
		if content.Attributes == nil {
			content.Attributes = hcl.Attributes{}
		}
		content.Attributes[attr.Name] = found.AsHCLAttribute()
		delete(native.Attributes, attr.Name)
	}
	kept := native.Blocks[:0]
	for _, block := range native.Blocks {
		labels, ok := s.blocks[block.Type]
		switch {
		case !ok:
			kept = append(kept, block)
		case len(labels) != len(block.Labels):
			diags = append(diags, failure(block.DefRange().Ptr(), "Wrong number of labels",
				"A %s block has %d labels here.", block.Type, len(labels)))
		default:
			content.Blocks = append(content.Blocks, block.AsHCLBlock())
		}
	}
	native.Blocks = kept
	return content, native, diags
}

// didYouMean is the end of a message about a name that does not exist.
func didYouMean(name string, names []string) string {
	if near := lang.Nearest(name, names); near != "" {
		return " Did you mean \"" + near + "\"?"
	}
	return ""
}
