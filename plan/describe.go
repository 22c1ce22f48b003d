package plan

import (
	"errors"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Describe renders an error that may say where in a value it is.
func Describe(err error) string {
	var at cty.PathError
	if errors.As(err, &at) && len(at.Path) > 0 {
		return PathString(at.Path) + ": " + at.Error()
	}
	return err.Error()
}

// PathString renders a path as people write it: a.b[0]["c"].
func PathString(path cty.Path) string {
	var b strings.Builder
	for i, step := range path {
		switch s := step.(type) {
		case cty.GetAttrStep:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.Name)
		case cty.IndexStep:
			switch {
			case !s.Key.IsKnown() || s.Key.IsNull():
				b.WriteString("[…]")
			case s.Key.Type() == cty.String:
				b.WriteString(`["` + s.Key.AsString() + `"]`)
			case s.Key.Type() == cty.Number:
				b.WriteString("[" + s.Key.AsBigFloat().Text('f', -1) + "]")
			default:
				b.WriteString("[…]")
			}
		}
	}
	return b.String()
}
