package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// decodeAttributes reads attributes by their type. States hold many small objects,
// and cty's own decoder makes a new reader for every value in them; here the
// text is read once. Whatever is not plain is left to cty, which also has the
// words for what is wrong.
func decodeAttributes(js []byte, ty cty.Type) (cty.Value, error) {
	d := json.NewDecoder(bytes.NewReader(js))
	d.UseNumber()
	var x any
	if err := d.Decode(&x); err == nil {
		if _, err := d.Token(); err == io.EOF {
			if v, ok := plainValue(x, ty); ok {
				return v, nil
			}
		}
	}
	return unmarshal(js, ty)
}

// unmarshal is cty's decoder. It panics on collections whose dynamic elements
// differ in type, which a file may well hold.
func unmarshal(js []byte, ty cty.Type) (v cty.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = cty.DynamicVal, fmt.Errorf("inconsistent element types: %v", r)
		}
	}()
	return ctyjson.Unmarshal(js, ty)
}

// plainValue turns decoded JSON into a value of the type, and gives up (false)
// on everything that is not exactly of its form.
func plainValue(x any, ty cty.Type) (cty.Value, bool) {
	switch {
	case ty == cty.DynamicPseudoType:
		return dynamicValue(x)
	case x == nil:
		return cty.NullVal(ty), true
	case ty.IsPrimitiveType():
		return primitiveValue(x, ty)
	case ty.IsObjectType():
		return objectValue(x, ty)
	case ty.IsTupleType():
		return tupleValue(x, ty)
	case ty.IsMapType():
		members, ok := x.(map[string]any)
		if !ok {
			return cty.NilVal, false
		}
		values := make(map[string]cty.Value, len(members))
		for name, m := range members {
			if values[name], ok = plainValue(m, ty.ElementType()); !ok {
				return cty.NilVal, false
			}
		}
		if len(values) == 0 {
			return cty.MapValEmpty(ty.ElementType()), true
		}
		if !cty.CanMapVal(values) {
			return cty.NilVal, false
		}
		return cty.MapVal(values), true
	case ty.IsListType() || ty.IsSetType():
		return sequenceValue(x, ty)
	}
	return cty.NilVal, false
}

func primitiveValue(x any, ty cty.Type) (cty.Value, bool) {
	switch x := x.(type) {
	case string:
		return cty.StringVal(x), ty == cty.String
	case bool:
		return cty.BoolVal(x), ty == cty.Bool
	case json.Number:
		v, err := cty.ParseNumberVal(string(x))
		return v, err == nil && ty == cty.Number
	}
	return cty.NilVal, false
}

func objectValue(x any, ty cty.Type) (cty.Value, bool) {
	members, ok := x.(map[string]any)
	types := ty.AttributeTypes()
	if !ok || len(members) != len(types) || len(types) == 0 {
		return cty.NilVal, false
	}
	values := make(map[string]cty.Value, len(types))
	for name, aty := range types {
		m, ok := members[name]
		if !ok {
			return cty.NilVal, false
		}
		if values[name], ok = plainValue(m, aty); !ok {
			return cty.NilVal, false
		}
	}
	return cty.ObjectVal(values), true
}

func sequenceValue(x any, ty cty.Type) (cty.Value, bool) {
	elements, ok := x.([]any)
	if !ok {
		return cty.NilVal, false
	}
	values := make([]cty.Value, len(elements))
	for i, e := range elements {
		if values[i], ok = plainValue(e, ty.ElementType()); !ok {
			return cty.NilVal, false
		}
	}
	switch {
	case len(values) == 0 && ty.IsListType():
		return cty.ListValEmpty(ty.ElementType()), true
	case len(values) == 0:
		return cty.SetValEmpty(ty.ElementType()), true
	case ty.IsListType() && cty.CanListVal(values):
		return cty.ListVal(values), true
	case ty.IsSetType() && cty.CanSetVal(values):
		return cty.SetVal(values), true
	}
	return cty.NilVal, false
}

func tupleValue(x any, ty cty.Type) (cty.Value, bool) {
	elements, ok := x.([]any)
	types := ty.TupleElementTypes()
	if !ok || len(elements) != len(types) {
		return cty.NilVal, false
	}
	values := make([]cty.Value, len(elements))
	for i, e := range elements {
		if values[i], ok = plainValue(e, types[i]); !ok {
			return cty.NilVal, false
		}
	}
	return cty.TupleVal(values), true
}

// dynamicValue reads {"value":…,"type":…}.
func dynamicValue(x any) (cty.Value, bool) {
	if x == nil {
		return cty.NullVal(cty.DynamicPseudoType), true
	}
	members, ok := x.(map[string]any)
	if !ok || len(members) != 2 {
		return cty.NilVal, false
	}
	inner, has := members["value"]
	ty, ok := plainType(members["type"])
	if !ok || !has || ty == cty.DynamicPseudoType {
		return cty.NilVal, false
	}
	return plainValue(inner, ty)
}

// plainType turns decoded JSON into the type that it describes.
func plainType(x any) (cty.Type, bool) {
	if name, ok := x.(string); ok {
		ty, ok := map[string]cty.Type{"string": cty.String, "number": cty.Number, "bool": cty.Bool, "dynamic": cty.DynamicPseudoType}[name]
		return ty, ok
	}
	pair, ok := x.([]any)
	if !ok || len(pair) != 2 {
		return cty.NilType, false
	}
	kind, _ := pair[0].(string)
	switch inner := pair[1]; kind {
	case "object":
		members, ok := inner.(map[string]any)
		types := make(map[string]cty.Type, len(members))
		for name, m := range members {
			if types[name], ok = plainType(m); !ok {
				break
			}
		}
		return cty.Object(types), ok
	case "tuple":
		elements, ok := inner.([]any)
		types := make([]cty.Type, len(elements))
		for i, e := range elements {
			if types[i], ok = plainType(e); !ok {
				break
			}
		}
		return cty.Tuple(types), ok
	default:
		elem, ok := plainType(inner)
		of, known := map[string]func(cty.Type) cty.Type{"list": cty.List, "set": cty.Set, "map": cty.Map}[kind]
		if !ok || !known {
			return cty.NilType, false
		}
		return of(elem), true
	}
}
