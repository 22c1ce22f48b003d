package metal

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/metal/facts"
)

func factsTypes() map[string]attr.Type {
	return typeOf(reflect.TypeFor[facts.Facts]()).(types.ObjectType).AttrTypes
}

func factsObject(ctx context.Context, f facts.Facts) (types.Object, diag.Diagnostics) {
	return types.ObjectValueFrom(ctx, factsTypes(), f)
}

func nameOf(f reflect.StructField) string { return f.Tag.Get("tfsdk") }

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
