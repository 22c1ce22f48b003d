package contract

import (
	"github.com/zclconf/go-cty/cty"
)

// CheckConforms reports where v is not a value of type ty: the errors that a
// provider's answer is refused for before anything else looks at it. They are
// of type cty.PathError where a part of v is at fault.
func CheckConforms(ty cty.Type, v cty.Value) []error {
	if v == cty.NilVal {
		return []error{cty.Path(nil).NewErrorf("no value at all")}
	}
	if v.ContainsMarked() {
		return []error{cty.Path(nil).NewErrorf("value carries marks")}
	}
	return v.Type().TestConformance(ty)
}

// UnknownsToNull replaces every unknown part of v by null, as a failed apply
// needs it: what did not come about is not there. A wholly known value is
// returned as it is.
func UnknownsToNull(v cty.Value) cty.Value {
	if v.IsWhollyKnown() {
		return v
	}
	return cty.UnknownAsNull(v)
}

// equalValues reports whether a and b are the same value; what is known about an
// unknown value does not count, as not every provider carries it along.
func equalValues(a, b cty.Value) bool {
	return stripRefinements(a).RawEquals(stripRefinements(b))
}

// stripRefinements is v without what is known about its unknown parts.
func stripRefinements(v cty.Value) cty.Value {
	if v.IsWhollyKnown() {
		return v
	}
	plain, err := cty.Transform(v, func(_ cty.Path, part cty.Value) (cty.Value, error) {
		if !part.IsKnown() {
			return cty.UnknownVal(part.Type()), nil
		}
		return part, nil
	})
	if err != nil {
		panic(err) // the function above has none
	}
	return plain
}

// member is attribute name of an object. An absent or unknown object has
// absent or unknown attributes.
func member(obj cty.Value, name string) cty.Value {
	switch {
	case !obj.IsKnown():
		return cty.DynamicVal
	case obj.IsNull() || !obj.Type().IsObjectType() || !obj.Type().HasAttribute(name):
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return obj.GetAttr(name)
}

// element is what a list, tuple, map or object holds at key, and null where it
// holds nothing there.
func element(coll, key cty.Value) cty.Value {
	switch {
	case !coll.IsKnown():
		return cty.DynamicVal
	case coll.IsNull():
		return cty.NullVal(cty.DynamicPseudoType)
	case !hasElement(coll, key):
		return cty.NullVal(cty.DynamicPseudoType)
	case coll.Type().IsObjectType():
		return coll.GetAttr(key.AsString())
	}
	return coll.Index(key)
}

// hasElement reports whether a known collection has an element at key.
func hasElement(coll, key cty.Value) bool {
	if coll.Type().IsObjectType() {
		return key.Type() == cty.String && coll.Type().HasAttribute(key.AsString())
	}
	at := coll.HasIndex(key)
	return at.IsKnown() && at.True()
}

// length counts the elements of a known collection, tuple or object.
func length(v cty.Value) int {
	if v.Type().IsObjectType() {
		return len(v.Type().AttributeTypes())
	}
	return v.LengthInt()
}

func empty(v cty.Value) bool { return length(v) == 0 }

// rebuild maps the elements of a list, tuple, map or object that is not empty
// and keeps its kind. Where the new elements differ in type, which a list or a
// map cannot hold, v is returned as it is.
func rebuild(v cty.Value, f func(key, el cty.Value) cty.Value) cty.Value {
	ty := v.Type()
	if ty.IsListType() || ty.IsTupleType() {
		els := make([]cty.Value, 0, length(v))
		for key, el := range v.Elements() {
			els = append(els, f(key, el))
		}
		switch {
		case ty.IsTupleType():
			return cty.TupleVal(els)
		case !cty.CanListVal(els):
			return v
		}
		return cty.ListVal(els)
	}
	els := make(map[string]cty.Value, length(v))
	for key, el := range v.Elements() {
		els[key.AsString()] = f(key, el)
	}
	switch {
	case ty.IsObjectType():
		return cty.ObjectVal(els)
	case !cty.CanMapVal(els):
		return v
	}
	return cty.MapVal(els)
}
