package modules

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/syntax"
)

// Lifecycle is a lifecycle block.
type Lifecycle struct {
	CreateBeforeDestroy bool
	PreventDestroy      bool
	IgnoreAll           bool            // ignore_changes = all
	IgnoreChanges       []hcl.Traversal // relative to the resource
	ReplaceTriggeredBy  []hcl.Expression
	Preconditions       []*Check
	Postconditions      []*Check
	Range               hcl.Range // zero where there is no block
	// Dynamic holds the arguments above that are expressions and have no value
	// yet; nil where there are none.
	Dynamic *DynamicLifecycle
}

// DynamicLifecycle holds arguments of a lifecycle block that have to be
// evaluated, instance by instance; nil members have a literal value or none.
type DynamicLifecycle struct {
	CreateBeforeDestroy hcl.Expression
	PreventDestroy      hcl.Expression
	IgnoreChanges       *Ignored
}

// Expressions are all that have to be evaluated.
func (l *DynamicLifecycle) Expressions() []hcl.Expression {
	if l == nil {
		return nil
	}
	list := l.IgnoreChanges.expressions(nil)
	for _, expr := range []hcl.Expression{l.CreateBeforeDestroy, l.PreventDestroy} {
		if expr != nil {
			list = append(list, expr)
		}
	}
	return list
}

// Ignored is an ignore_changes that depends on values: arguments that are
// named as they are, texts that name some, or a choice between two such.
type Ignored struct {
	All   bool
	Paths []hcl.Traversal
	// Texts are expressions that yield a text such as labels["team"], a list
	// of such texts, or the text all.
	Texts []hcl.Expression

	If         hcl.Expression // nil: there is no choice
	Then, Else *Ignored
}

func (i *Ignored) expressions(list []hcl.Expression) []hcl.Expression {
	if i == nil {
		return list
	}
	list = append(list, i.Texts...)
	if i.If != nil {
		list = append(list, i.If)
	}
	return i.Else.expressions(i.Then.expressions(list))
}

// literal reports whether no value decides about it.
func (i *Ignored) literal() bool { return i.If == nil && len(i.Texts) == 0 }

var lifecycleSchema = newSchema(
	[]string{"create_before_destroy", "prevent_destroy", "ignore_changes", "replace_triggered_by"},
	map[string][]string{"precondition": nil, "postcondition": nil},
)

func (d *decoder) lifecycle(block *hcl.Block, mode address.Mode) Lifecycle {
	content, diags := lifecycleSchema.all(block.Body)
	d.diags = append(d.diags, diags...)
	l := Lifecycle{Range: block.DefRange}
	if mode == address.Data {
		for _, attr := range content.Attributes {
			d.fail(&attr.NameRange, "Not for data sources",
				"The argument %q is about changes; nothing changes a data source. Only conditions make sense in its lifecycle block.", attr.Name)
		}
		content.Attributes = nil
	}
	var dynamic DynamicLifecycle
	l.CreateBeforeDestroy, dynamic.CreateBeforeDestroy = d.choice(content.Attributes["create_before_destroy"])
	l.PreventDestroy, dynamic.PreventDestroy = d.choice(content.Attributes["prevent_destroy"])
	if attr := content.Attributes["ignore_changes"]; attr != nil {
		if ignored := d.ignored(attr.Expr, false); ignored.literal() {
			l.IgnoreAll, l.IgnoreChanges = ignored.All, ignored.Paths
		} else {
			dynamic.IgnoreChanges = ignored
		}
	}
	if dynamic != (DynamicLifecycle{}) {
		l.Dynamic = &dynamic
	}
	if attr := content.Attributes["replace_triggered_by"]; attr != nil {
		exprs, diags := hcl.ExprList(attr.Expr)
		d.diags = append(d.diags, diags...)
		for _, expr := range exprs {
			if expr, ok := d.unquoted(expr); ok {
				l.ReplaceTriggeredBy = append(l.ReplaceTriggeredBy, expr)
			}
		}
	}
	for _, b := range content.Blocks {
		if b.Type == "precondition" {
			l.Preconditions = d.appendCheck(l.Preconditions, b)
		} else {
			l.Postconditions = d.appendCheck(l.Postconditions, b)
		}
	}
	return l
}

// choice reads true or false, or the expression that will say which.
func (d *decoder) choice(attr *hcl.Attribute) (bool, hcl.Expression) {
	if attr == nil {
		return false, nil
	}
	if !isLiteral(attr.Expr) {
		return false, attr.Expr
	}
	return d.flag(attr, false), nil
}

// ignored reads ignore_changes or one side of a choice in it. Old
// configurations have a text by itself, which Terraform no longer accepts
// either.
func (d *decoder) ignored(expr hcl.Expression, side bool) *Ignored {
	for {
		parens, ok := expr.(*hclsyntax.ParenthesesExpr)
		if !ok {
			break
		}
		expr = parens.Expression
	}
	if hcl.ExprAsKeyword(expr) == "all" {
		return &Ignored{All: true}
	}
	if choice, ok := expr.(*hclsyntax.ConditionalExpr); ok {
		return &Ignored{If: choice.Condition, Then: d.ignored(choice.TrueResult, true), Else: d.ignored(choice.FalseResult, true)}
	}
	exprs, diags := hcl.ExprList(expr)
	if diags.HasErrors() {
		if v, diags := expr.Value(&hcl.EvalContext{}); !diags.HasErrors() && !(side && v.Type() == cty.String) && !v.Type().IsTupleType() {
			d.fail(expr.Range().Ptr(), "Invalid ignore_changes",
				"It must be a list of the resource's arguments in brackets, all without quotes, or an expression that gives such names as texts.")
			return &Ignored{}
		}
		return &Ignored{Texts: []hcl.Expression{expr}}
	}
	list := &Ignored{}
	for _, expr := range exprs {
		path, diags := hcl.RelTraversalForExpr(d.formerlyQuoted(expr))
		switch {
		case !diags.HasErrors():
			list.Paths = append(list.Paths, path)
		case isLiteral(expr):
			d.fail(expr.Range().Ptr(), "Invalid ignore_changes",
				"Each element must name an argument of the resource without quotes, such as labels or labels[\"team\"].")
		default:
			list.Texts = append(list.Texts, expr)
		}
	}
	return list
}

// isLiteral reports whether the expression's value is there already. Without a
// context JSON would take templates for plain text.
func isLiteral(expr hcl.Expression) bool {
	_, diags := expr.Value(&hcl.EvalContext{})
	return !diags.HasErrors()
}

// unquoted turns JSON text that is a reference into the expression it is.
func (d *decoder) unquoted(expr hcl.Expression) (hcl.Expression, bool) {
	if !json.IsJSONExpression(expr) {
		return expr, true
	}
	text, diags := expr.Value(nil)
	if diags.HasErrors() || text.Type() != cty.String || text.IsNull() {
		d.fail(expr.Range().Ptr(), "Reference required", "Write a reference as text, such as \"metal_host.machine\".")
		return nil, false
	}
	start := expr.Range().Start
	start.Column++ // after the quote
	start.Byte++
	parsed, diags := syntax.ParseExpression(expr.Range().Filename, []byte(text.AsString()), start)
	d.diags = append(d.diags, diags...)
	return parsed, parsed != nil && !diags.HasErrors()
}
