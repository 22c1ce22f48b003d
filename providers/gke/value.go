package gke

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/stokehq/stoke/providers/connect"
)

// fill is what was planned, with what is there in the places that were not known.
func fill(planned, there tftypes.Value) (tftypes.Value, error) {
	if planned.IsFullyKnown() {
		return planned, nil
	}
	if !planned.IsKnown() {
		return nullUnknown(there)
	}
	var parts, now map[string]tftypes.Value
	if _, ok := planned.Type().(tftypes.Object); !ok || planned.IsNull() || there.IsNull() {
		return nullUnknown(there)
	}
	if err := planned.As(&parts); err != nil {
		return planned, err
	}
	if err := there.As(&now); err != nil {
		return planned, err
	}
	all := make(map[string]tftypes.Value, len(parts))
	for name, p := range parts {
		v, err := fill(p, now[name])
		if err != nil {
			return planned, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = v
	}
	return tftypes.NewValue(planned.Type(), all), nil
}

// nullUnknown makes null what nobody came to know.
func nullUnknown(v tftypes.Value) (tftypes.Value, error) {
	return tftypes.Transform(v, func(_ *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		if !v.IsKnown() {
			return tftypes.NewValue(v.Type(), nil), nil
		}
		return v, nil
	})
}

// texts is a map of strings; nil for null.
func texts(m types.Map) map[string]string {
	if m.IsNull() || m.IsUnknown() {
		return nil
	}
	out := make(map[string]string, len(m.Elements()))
	for k, v := range m.Elements() {
		if s, ok := v.(types.String); ok {
			out[k] = s.ValueString()
		}
	}
	return out
}

// list is a set or list of strings, sorted; nil for null.
func list(v interface {
	attr.Value
	Elements() []attr.Value
}) []string {
	if v.IsNull() || v.IsUnknown() {
		return nil
	}
	out := make([]string, 0, len(v.Elements()))
	for _, e := range v.Elements() {
		if s, ok := e.(types.String); ok {
			out = append(out, s.ValueString())
		}
	}
	slices.Sort(out)
	return out
}

func setOf(all []string) types.Set {
	return connect.MustConvert(types.SetValueFrom(context.Background(), types.StringType, all))
}

func listOf(all []string) types.List {
	return connect.MustConvert(types.ListValueFrom(context.Background(), types.StringType, all))
}

// setOrNull keeps null where nothing was declared and nothing is there.
func setOrNull(was types.Set, all []string) types.Set {
	if len(all) == 0 && was.IsNull() {
		return was
	}
	if all == nil {
		all = []string{}
	}
	return setOf(all)
}

// mapOrNull keeps null where nothing was declared and nothing is there.
func mapOrNull(was types.Map, all map[string]string) types.Map {
	if len(all) == 0 && (was.IsNull() || was.IsUnknown()) {
		return types.MapNull(types.StringType)
	}
	if all == nil {
		all = map[string]string{} // {} was declared
	}
	return connect.MustConvert(types.MapValueFrom(context.Background(), types.StringType, all))
}

// last is the last part of a link or a path.
func last(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }

// link is what is there, unless what was declared names the same thing by fewer words.
func link(was types.String, now string) types.String {
	if s := was.ValueString(); s != "" && last(s) == last(now) {
		return was
	}
	return textOrNull(now)
}

// textAs is what is there; "" that was declared stays.
func textAs(was types.String, now string) types.String {
	if now == "" && isGiven(was) && was.ValueString() == "" {
		return was
	}
	return textOrNull(now)
}

func textOrNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

func numberOrNull[N int | int32 | int64](n N) types.Int64 {
	if n == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(int64(n))
}

// changed tells whether an update has to bring a value about: what is not known
// is the server's choice.
func changed(plan, prior attr.Value) bool {
	return !plan.IsUnknown() && !plan.Equal(prior)
}

// isGiven tells whether a value was declared or is known of the object.
func isGiven(v attr.Value) bool { return !v.IsNull() && !v.IsUnknown() }

// sentence is an error as one.
func sentence(err error) string {
	s := []rune(strings.TrimSuffix(err.Error(), "."))
	if len(s) == 0 {
		return ""
	}
	s[0] = unicode.ToUpper(s[0])
	return string(s) + "."
}

func lower(s string) string {
	r := []rune(s)
	if len(r) > 1 && unicode.IsUpper(r[1]) || strings.HasPrefix(s, "Google") {
		return s
	}
	r[0] = unicode.ToLower(r[0])
	return string(r)
}

// objectOf is a nested object as its model; nil for null and for what is not known yet.
func objectOf[T any](o types.Object) *T {
	if o.IsNull() || o.IsUnknown() {
		return nil
	}
	out := new(T)
	return connect.MustConvert(out, o.As(context.Background(), out, basetypes.ObjectAsOptions{}))
}

// blockOf and blockNull are a nested block as it is stored.
func blockOf[T any](b schema.Block, now *T) types.Object {
	return connect.MustConvert(types.ObjectValueFrom(context.Background(), b.Type().(attr.TypeWithAttributeTypes).AttributeTypes(), now))
}

func blockNull(b schema.Block) types.Object {
	return types.ObjectNull(b.Type().(attr.TypeWithAttributeTypes).AttributeTypes())
}

// elementsOf are those of a list as their models; nil for null and for what is not
// known yet.
func elementsOf[T any](l types.List) []T {
	if l.IsNull() || l.IsUnknown() || !allGiven(l.Elements()) {
		return nil
	}
	var out []T
	diags := l.ElementsAs(context.Background(), &out, false)
	return connect.MustConvert(out, diags)
}

// allGiven reports whether no element is null or unknown: a model has no room for such an element.
func allGiven(all []attr.Value) bool {
	return !slices.ContainsFunc(all, func(v attr.Value) bool { return !isGiven(v) })
}

// typesOf are the attribute types of a nested attribute.
func typesOf(a schema.Attribute) map[string]attr.Type {
	return a.GetType().(attr.TypeWithAttributeTypes).AttributeTypes()
}
