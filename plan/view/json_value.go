package view

import (
	"encoding/json"
	"sort"

	"github.com/zclconf/go-cty/cty"
)

// jsonValue is a value for encoding/json. What is not known is left out of
// objects and null elsewhere; ok is false for what is not known itself.
func jsonValue(v cty.Value) (out any, ok bool) {
	switch {
	case v == cty.NilVal:
		return nil, true
	case !v.IsKnown():
		return nil, false
	case v.IsNull():
		return nil, true
	}
	ty := v.Type()
	switch {
	case ty == cty.String:
		return v.AsString(), true
	case ty == cty.Number && v.AsBigFloat().IsInf(): // 1/0, written out where nothing uses it
		return nil, true
	case ty == cty.Number:
		return json.Number(jsonNumber(v)), true
	case ty == cty.Bool:
		return v.True(), true
	case keyed(ty):
		m := make(map[string]any)
		for name, e := range v.AsValueMap() {
			if x, known := jsonValue(e); known {
				m[name] = x
			}
		}
		return m, true
	case v.CanIterateElements():
		list := make([]any, 0, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			x, _ := jsonValue(e)
			list = append(list, x)
		}
		return list, true
	}
	return nil, true
}

func jsonNumber(v cty.Value) string {
	text := number(v)
	if !json.Valid([]byte(text)) { // infinities
		return "null"
	}
	return text
}

// outline has the shape of a value, with true where the question is answered
// with yes: which parts are unknown, or sensitive. In objects, plain parts
// that are not are left out.
func outline(v cty.Value, hide secret, yes func(cty.Value, secret) bool) any {
	switch {
	case v == cty.NilVal:
		return false
	case yes(v, hide):
		return true
	case v.IsNull():
		return false
	case !v.IsKnown():
		return nothingIn(v.Type())
	}
	switch {
	case keyed(v.Type()):
		m := make(map[string]any)
		for name, e := range v.AsValueMap() {
			if x := outline(e, hide.name(name), yes); x != false {
				m[name] = x
			}
		}
		return m
	case v.CanIterateElements():
		list := make([]any, 0, v.LengthInt())
		i := 0
		for it := v.ElementIterator(); it.Next(); i++ {
			_, e := it.Element()
			list = append(list, outline(e, hide.index(i), yes))
		}
		return list
	}
	return false
}

// nothingIn is the outline of a value of which nothing is known but its type.
func nothingIn(ty cty.Type) any {
	switch {
	case keyed(ty):
		return map[string]any{}
	case ty.IsListType() || ty.IsSetType() || ty.IsTupleType():
		return []any{}
	}
	return false
}

func isSecret(_ cty.Value, hide secret) bool { return hide.atSecret() }
func isUnknown(v cty.Value, _ secret) bool   { return !v.IsKnown() }

// jsonPath is a path as an array of names and numbers.
func jsonPath(path cty.Path) []any {
	out := make([]any, 0, len(path))
	for _, step := range path {
		switch s := step.(type) {
		case cty.GetAttrStep:
			out = append(out, s.Name)
		case cty.IndexStep:
			if x, ok := jsonValue(s.Key); ok {
				out = append(out, x)
			}
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
