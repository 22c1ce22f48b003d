package metal

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/metal/facts"
)

// factsTypes is the type of a machine's facts in the framework's terms: that of
// facts.Facts, by the names that its fields have in JSON.
func factsTypes() map[string]attr.Type {
	return typeOf(reflect.TypeFor[facts.Facts]()).(types.ObjectType).AttrTypes
}

// factsObject is the facts as the framework stores them.
func factsObject(ctx context.Context, f facts.Facts) (types.Object, diag.Diagnostics) {
	v, err := valueOf(ctx, reflect.ValueOf(f))
	if err != nil {
		return types.ObjectNull(factsTypes()), diag.Diagnostics{diag.NewErrorDiagnostic("Facts cannot be stored", err.Error()+".")}
	}
	return v.(types.Object), nil
}

// factsFrom is the way back; false where the object is null, or not wholly
// known.
func factsFrom(o types.Object) (f facts.Facts, ok bool) {
	if o.IsNull() || o.IsUnknown() {
		return f, false
	}
	return f, fill(reflect.ValueOf(&f).Elem(), o) == nil
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// typeOf translates the few kinds of types that facts are made of.
func typeOf(t reflect.Type) attr.Type {
	switch t.Kind() {
	case reflect.String:
		return types.StringType
	case reflect.Bool:
		return types.BoolType
	case reflect.Int, reflect.Int64:
		return types.Int64Type
	case reflect.Float64:
		return types.Float64Type
	case reflect.Slice:
		return types.ListType{ElemType: typeOf(t.Elem())}
	case reflect.Map:
		return types.MapType{ElemType: typeOf(t.Elem())}
	}
	fields := map[string]attr.Type{}
	for i := range t.NumField() {
		fields[nameOf(t.Field(i))] = typeOf(t.Field(i).Type)
	}
	return types.ObjectType{AttrTypes: fields}
}

func valueOf(ctx context.Context, v reflect.Value) (attr.Value, error) {
	var diags diag.Diagnostics
	var value attr.Value
	switch v.Kind() {
	case reflect.String:
		return types.StringValue(v.String()), nil
	case reflect.Bool:
		return types.BoolValue(v.Bool()), nil
	case reflect.Int, reflect.Int64:
		return types.Int64Value(v.Int()), nil
	case reflect.Float64:
		return types.Float64Value(v.Float()), nil
	case reflect.Slice:
		list := make([]attr.Value, v.Len())
		for i := range list {
			e, err := valueOf(ctx, v.Index(i))
			if err != nil {
				return nil, err
			}
			list[i] = e
		}
		value, diags = types.ListValue(typeOf(v.Type().Elem()), list)
	case reflect.Map:
		m := map[string]attr.Value{}
		for _, key := range v.MapKeys() {
			e, err := valueOf(ctx, v.MapIndex(key))
			if err != nil {
				return nil, err
			}
			m[key.String()] = e
		}
		value, diags = types.MapValue(typeOf(v.Type().Elem()), m)
	default:
		m := map[string]attr.Value{}
		for i := range v.NumField() {
			e, err := valueOf(ctx, v.Field(i))
			if err != nil {
				return nil, err
			}
			m[nameOf(v.Type().Field(i))] = e
		}
		value, diags = types.ObjectValue(typeOf(v.Type()).(types.ObjectType).AttrTypes, m)
	}
	if diags.HasError() {
		return nil, fmt.Errorf("%s: %s", diags[0].Summary(), diags[0].Detail())
	}
	return value, nil
}

var errNotKnown = fmt.Errorf("it is not known")

// fill sets a part of the facts from its value.
func fill(to reflect.Value, from attr.Value) error {
	if from.IsNull() || from.IsUnknown() {
		return errNotKnown
	}
	switch from := from.(type) {
	case types.String:
		to.SetString(from.ValueString())
	case types.Bool:
		to.SetBool(from.ValueBool())
	case types.Int64:
		to.SetInt(from.ValueInt64())
	case types.Float64:
		to.SetFloat(from.ValueFloat64())
	case types.List:
		list := reflect.MakeSlice(to.Type(), len(from.Elements()), len(from.Elements()))
		for i, e := range from.Elements() {
			if err := fill(list.Index(i), e); err != nil {
				return err
			}
		}
		to.Set(list)
	case types.Map:
		m := reflect.MakeMap(to.Type())
		for key, e := range from.Elements() {
			v := reflect.New(to.Type().Elem()).Elem()
			if err := fill(v, e); err != nil {
				return err
			}
			m.SetMapIndex(reflect.ValueOf(key), v)
		}
		to.Set(m)
	case types.Object:
		for i := range to.NumField() {
			e, ok := from.Attributes()[nameOf(to.Type().Field(i))]
			if !ok {
				return errNotKnown
			}
			if err := fill(to.Field(i), e); err != nil {
				return err
			}
		}
	}
	return nil
}
