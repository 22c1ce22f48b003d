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

// dynamicValue reads {"value":…,"type":…} where the type is a primitive one.
func dynamicValue(x any) (cty.Value, bool) {
	if x == nil {
		return cty.NullVal(cty.DynamicPseudoType), true
	}
	members, ok := x.(map[string]any)
	if !ok || len(members) != 2 {
		return cty.NilVal, false
	}
	name, _ := members["type"].(string)
	ty, ok := map[string]cty.Type{"string": cty.String, "number": cty.Number, "bool": cty.Bool}[name]
	inner, has := members["value"]
	if !ok || !has {
		return cty.NilVal, false
	}
	return plainValue(inner, ty)
}
