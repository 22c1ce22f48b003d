package modules

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
)

// Check is a condition with the message to show when it is false: of a
// variable's validation, a precondition, a postcondition or a check block.
type Check struct {
	Condition    hcl.Expression
	ErrorMessage hcl.Expression
	Range        hcl.Range
}

// CheckBlock is a check block: assertions about the whole, of which a false
// one is a warning.
type CheckBlock struct {
	Name    string
	Data    *Resource // its own data source; nil where it has none
	Asserts []*Check
	Range   hcl.Range
}

var conditionSchema = newSchema([]string{"!condition", "!error_message"}, nil)

// appendCheck decodes a validation, precondition, postcondition or assert
// block.
func (d *decoder) appendCheck(checks []*Check, block *hcl.Block) []*Check {
	content, diags := conditionSchema.all(block.Body)
	d.diags = append(d.diags, diags...)
	if diags.HasErrors() {
		return checks
	}
	c := &Check{
		Condition:    content.Attributes["condition"].Expr,
		ErrorMessage: content.Attributes["error_message"].Expr,
		Range:        block.DefRange,
	}
	if len(c.Condition.Variables()) == 0 {
		d.fail(c.Condition.Range().Ptr(), "Condition that checks nothing",
			"The condition of this %s refers to nothing else, so it always has the same result. Refer to the object that it is about.", block.Type)
		return checks
	}
	return append(checks, c)
}

// appendValidation is appendCheck for a variable's own conditions, which have
// to be about the variable.
func (d *decoder) appendValidation(v *Variable, block *hcl.Block) {
	before := len(v.Validations)
	v.Validations = d.appendCheck(v.Validations, block)
	if len(v.Validations) == before {
		return
	}
	condition := v.Validations[before].Condition
	refs, diags := lang.References(condition)
	for _, ref := range refs {
		if ref.Subject == (lang.Variable{Name: v.Name}) {
			return
		}
	}
	if !diags.HasErrors() {
		d.fail(condition.Range().Ptr(), "Validation of another value",
			"The condition of a validation of variable %q must refer to var.%s, whose value it is there to judge.", v.Name, v.Name)
	}
}

var checkBlockSchema = newSchema(nil, map[string][]string{"data": {"type", "name"}, "assert": nil})

func (d *decoder) check(block *hcl.Block) {
	content, diags := checkBlockSchema.all(block.Body)
	d.diags = append(d.diags, diags...)
	name := block.Labels[0]
	if !d.name("check", name, block.LabelRanges[0]) {
		return
	}
	if first := d.module.Checks[name]; first != nil {
		d.duplicate("check", name, block.DefRange, first.Range)
		return
	}
	c := &CheckBlock{Name: name, Range: block.DefRange}
	asserts := 0
	for _, b := range content.Blocks {
		switch {
		case b.Type == "assert":
			asserts++
			c.Asserts = d.appendCheck(c.Asserts, b)
		case c.Data != nil:
			d.fail(&b.DefRange, "Second data source in a check",
				"The check %q has the data source at %s already. Give each data source a check of its own, or declare it outside of checks.", name, c.Data.Range)
		default:
			c.Data = d.scopedData(c, b)
		}
	}
	if asserts == 0 && !diags.HasErrors() {
		d.fail(&block.DefRange, "Check without assertions", "The check %q asserts nothing. Add an assert block with a condition and an error_message.", name)
	}
	d.module.Checks[name] = c
}

// scopedData decodes a data source that only the check around it can see.
func (d *decoder) scopedData(c *CheckBlock, block *hcl.Block) *Resource {
	name := ResourceName{Mode: address.Data, Type: block.Labels[0], Name: block.Labels[1]}
	before := d.module.Resources[name]
	d.resource(block)
	r := d.module.Resources[name]
	if r == nil || r == before {
		return nil
	}
	r.Check = c.Name
	for what, expr := range map[string]hcl.Expression{"count": r.Count, "for_each": r.ForEach} {
		if expr != nil {
			d.fail(expr.Range().Ptr(), "Repeated data source in a check",
				"The data source of a check is read once and has no %q. Declare it outside of the check, and refer to it.", what)
			r.Count, r.ForEach = nil, nil
		}
	}
	if r.Lifecycle.Range != (hcl.Range{}) {
		d.fail(&r.Lifecycle.Range, "Lifecycle of a check's data source",
			"The data source of a check has no lifecycle of its own. Write its conditions as assert blocks.")
	}
	return r
}
