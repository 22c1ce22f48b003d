package view

import (
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
)

// Expression writes a value in the syntax of configuration, as outputs and the
// console show it: with the function that makes its type where the brackets
// would make another, and without sensitive parts.
func Expression(v cty.Value) string {
	if v != cty.NilVal && v.HasMark(lang.TypeName) {
		plain, _ := v.Unmark()
		return plain.AsString() // the name of a type is not a text
	}
	return expression(v, 0)
}

func expression(v cty.Value, indent int) string {
	switch {
	case v == cty.NilVal:
		return "null"
	case v.HasMark(lang.Sensitive):
		return sensitiveValue
	case v.HasMark(lang.Ephemeral):
		return "(ephemeral value)"
	case v.IsMarked():
		v, _ = v.Unmark()
	}
	ty := v.Type()
	switch {
	case !v.IsKnown():
		return knownAfterApply
	case v.IsNull():
		return nullExpression(ty)
	case ty == cty.String:
		return stringExpression(v.AsString(), indent)
	case ty == cty.Number:
		return v.AsBigFloat().Text('f', -1)
	case ty.IsListType():
		return "tolist(" + sequenceExpression(v, indent) + ")"
	case ty.IsSetType():
		return "toset(" + sequenceExpression(v, indent) + ")"
	case ty.IsMapType():
		return "tomap(" + keyedExpression(v, indent) + ")"
	case ty.IsTupleType():
		return sequenceExpression(v, indent)
	case ty.IsObjectType():
		return keyedExpression(v, indent)
	}
	return scalar(v)
}

// nullExpression is the null of a type.
func nullExpression(ty cty.Type) string {
	switch {
	case ty == cty.DynamicPseudoType:
		return "null"
	case ty == cty.String:
		return "tostring(null)"
	case ty == cty.Number:
		return "tonumber(null)"
	case ty == cty.Bool:
		return "tobool(null)"
	case ty.IsListType():
		return "tolist(null) /* of " + ty.ElementType().FriendlyName() + " */"
	case ty.IsSetType():
		return "toset(null) /* of " + ty.ElementType().FriendlyName() + " */"
	case ty.IsMapType():
		return "tomap(null) /* of " + ty.ElementType().FriendlyName() + " */"
	}
	return "null /* " + ty.FriendlyName() + " */"
}

// stringExpression is a quoted string, or a heredoc where there is more than
// one line. Text that a terminal could take for a command is always quoted.
func stringExpression(s string, indent int) string {
	lines := strings.Split(s, "\n")
	if len(lines) == 1 {
		return strconv.Quote(s)
	}
	end, taken := "EOT", make(map[string]bool, len(lines))
	for _, line := range lines {
		if bare := strings.TrimSuffix(line, "\r"); printable(bare) != bare {
			return strconv.Quote(s)
		}
		taken[strings.TrimSpace(line)] = true
	}
	for taken[end] {
		end += "_"
	}
	start, pad := "<<", strings.Repeat(" ", indent)
	if indent > 0 {
		start = "<<-"
	}
	return start + end + "\n" + pad + strings.Join(lines, "\n"+pad) + "\n" + pad + end
}

func sequenceExpression(v cty.Value, indent int) string {
	if v.LengthInt() == 0 {
		return "[]"
	}
	var b strings.Builder
	b.WriteString("[\n")
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		b.WriteString(strings.Repeat(" ", indent+2) + expression(e, indent+2) + ",\n")
	}
	b.WriteString(strings.Repeat(" ", indent) + "]")
	return b.String()
}

func keyedExpression(v cty.Value, indent int) string {
	names, values := elements(v)
	if len(names) == 0 {
		return "{}"
	}
	var b strings.Builder
	b.WriteString("{\n")
	for _, n := range names {
		b.WriteString(strings.Repeat(" ", indent+2) + stringExpression(n, indent+2) + " = " + expression(values[n], indent+2) + "\n")
	}
	b.WriteString(strings.Repeat(" ", indent) + "}")
	return b.String()
}
