package eval

import (
	"sync/atomic"

	"github.com/zclconf/go-cty/cty"
)

// shapes are the types that objects of one resource type were last seen with.
// They differ from the implied type where an attribute takes any type.
type shapes struct {
	seen [4]atomic.Pointer[cty.Type]
	next atomic.Uint32
}

// Share returns v with the type value of an earlier object of an equal type.
// Each object has its own type value, as large as its contents: thousands of
// equal instances then share a single one.
func (ty *Type) Share(v cty.Value) cty.Value {
	own := v.Type()
	if !own.IsObjectType() || v.IsMarked() {
		return v
	}
	for i := range ty.shapes.seen {
		if seen := ty.shapes.seen[i].Load(); seen != nil && seen.Equals(own) {
			// A list has the type of its first element for all.
			return cty.ListVal([]cty.Value{cty.UnknownVal(*seen), v}).Index(cty.NumberIntVal(1))
		}
	}
	ty.shapes.seen[ty.shapes.next.Add(1)%uint32(len(ty.shapes.seen))].Store(&own)
	return v
}
