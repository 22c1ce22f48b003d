package providers

import (
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// PathString writes a path as people write it in a configuration, such as
// worker.replicas or tags["a"]. An element of a set has no name there and is
// written as [*].
func PathString(p cty.Path) string {
	var b strings.Builder
	for _, step := range p {
		switch step := step.(type) {
		case cty.GetAttrStep:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step.Name)
		case cty.IndexStep:
			b.WriteByte('[')
			b.WriteString(keyString(step.Key))
			b.WriteByte(']')
		}
	}
	return b.String()
}

func keyString(k cty.Value) string {
	if k != cty.NilVal && k.IsWhollyKnown() && !k.IsNull() && !k.IsMarked() {
		switch k.Type() {
		case cty.String:
			return strconv.Quote(k.AsString())
		case cty.Number:
			return k.AsBigFloat().Text('f', -1)
		}
	}
	return "*"
}
