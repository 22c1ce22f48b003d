package modules

import (
	"github.com/hashicorp/hcl/v2"
)

// decoder turns the files of one folder into declarations.
type decoder struct {
	module   *Module
	required *hcl.Block // required_providers
	cloud    *hcl.Block
	diags    hcl.Diagnostics
}

func (d *decoder) fail(at *hcl.Range, summary, format string, args ...any) {
	d.diags = append(d.diags, failure(at, summary, format, args...))
}

// rootBlocks are the blocks of a file with their labels. Those that are not
// supported are here to be named.
var rootBlocks = map[string][]string{
	"terraform": nil,
	"variable":  {"name"},
	"locals":    nil,
	"output":    {"name"},
	"resource":  {"type", "name"},
	"data":      {"type", "name"},
	"module":    {"name"},
	"provider":  {"name"},

	"moved": nil, "import": nil, "removed": nil, "check": {"name"},
	"ephemeral": {"type", "name"}, "action": {"type", "name"},
}

var (
	rootSchema  = newSchema(nil, rootBlocks)
	stokeSchema = newSchema(nil, withStoke(rootBlocks))
)

func withStoke(blocks map[string][]string) map[string][]string {
	all := map[string][]string{"stoke": nil}
	for name, labels := range blocks {
		all[name] = labels
	}
	return all
}

// decode reads the blocks of all files. Those of override files change the
// blocks of the others first.
func (d *decoder) decode(files []*file) {
	var blocks, overrides hcl.Blocks
	for _, f := range files {
		d.diags = append(d.diags, f.diags...)
		if f.broken != nil {
			d.sniffVersion(f.broken)
		}
		s := rootSchema
		if f.stoke {
			s = stokeSchema
		}
		content, diags := s.all(f.body)
		d.diags = append(d.diags, diags...)
		if content == nil {
			continue
		}
		if f.override {
			overrides = append(overrides, content.Blocks...)
		} else {
			blocks = append(blocks, content.Blocks...)
		}
	}
	if len(overrides) > 0 {
		blocks = d.override(blocks, overrides)
	}
	for _, block := range blocks {
		d.block(block)
	}
	d.overrideRest(overrides)
	d.checkCloud()
	d.checkProviders()
	d.checkRefactorings()
}

func (d *decoder) block(block *hcl.Block) {
	switch block.Type {
	case "terraform", "stoke":
		d.settings(block, false)
	case "variable":
		d.variable(block)
	case "locals":
		d.locals(block)
	case "output":
		d.output(block)
	case "resource", "data":
		d.resource(block)
	case "module":
		d.call(block)
	case "provider":
		d.provider(block)
	case "import":
		d.importBlock(block)
	case "moved":
		d.moved(block)
	case "check":
		d.check(block)
	case "removed":
		d.removed(block)
	default:
		d.fail(&block.DefRange, "Block not supported yet",
			"Blocks of type %q come with a later version of stoke. Remove the block to go on without what it does.", block.Type)
	}
}

// duplicate reports that something is declared twice.
func (d *decoder) duplicate(what, name string, again, first hcl.Range) {
	d.fail(&again, "Duplicate "+what, "The %s %q is already declared at %s. Rename or remove one of the two.", what, name, first)
}

func (d *decoder) locals(block *hcl.Block) {
	attrs, diags := block.Body.JustAttributes()
	d.diags = append(d.diags, diags...)
	for name, attr := range attrs {
		if !d.name("local value", name, attr.NameRange) {
			continue
		}
		if first := d.module.Locals[name]; first != nil {
			d.duplicate("local value", name, attr.NameRange, first.Range)
			continue
		}
		d.module.Locals[name] = &Local{Name: name, Expr: attr.Expr, Range: attr.NameRange}
	}
}

var outputSchema = newSchema(
	[]string{"!value", "description", "sensitive", "ephemeral", "depends_on", "deprecated"},
	map[string][]string{"precondition": nil},
)

func (d *decoder) output(block *hcl.Block) {
	content, diags := outputSchema.all(block.Body)
	d.diags = append(d.diags, diags...)
	name := block.Labels[0]
	if !d.name("output", name, block.LabelRanges[0]) {
		return
	}
	if first := d.module.Outputs[name]; first != nil {
		d.duplicate("output", name, block.DefRange, first.Range)
		return
	}
	o := &Output{
		Name:        name,
		Description: d.str(content.Attributes["description"]),
		Sensitive:   d.flag(content.Attributes["sensitive"], false),
		Ephemeral:   d.flag(content.Attributes["ephemeral"], false),
		DependsOn:   d.references(content.Attributes["depends_on"]),
		Range:       block.DefRange,
	}
	if value := content.Attributes["value"]; value != nil {
		o.Value = value.Expr
	}
	for _, b := range content.Blocks {
		o.Preconditions = d.appendCheck(o.Preconditions, b)
	}
	if o.Value != nil {
		d.module.Outputs[name] = o
	}
}
