package view

import (
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
)

const (
	knownAfterApply = "(known after apply)"
	sensitiveValue  = "(sensitive value)"
)

// number writes a known number in the shortest form that reads back equal;
// astronomical ones with an exponent.
func number(v cty.Value) string {
	f := v.AsBigFloat()
	if e := f.MantExp(nil); e > 512 || e < -512 {
		return f.Text('g', -1)
	}
	return f.Text('f', -1)
}

// scalar writes a known, non-null primitive on one line.
func scalar(v cty.Value) string {
	switch v.Type() {
	case cty.String:
		return address.Quote(v.AsString())
	case cty.Number:
		return number(v)
	case cty.Bool:
		return strconv.FormatBool(v.True())
	}
	return "(" + v.Type().FriendlyName() + ")"
}

// keyName writes the key of an object or map: bare where it is a valid
// identifier, unless always is set.
func keyName(name string, always bool) string {
	if !always && hclsyntax.ValidIdentifier(name) {
		return name
	}
	return address.Quote(name)
}

// amount writes a sum of money or the like with two decimals at most.
func amount(x float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 2, 64), ".00")
}
