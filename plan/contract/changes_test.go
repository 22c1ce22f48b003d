package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

func pathTexts(paths []cty.Path) []string {
	var out []string
	for _, p := range paths {
		out = append(out, pathText(p.NewErrorf("")))
	}
	return out
}

func TestFilterReplace(t *testing.T) {
	name, tag := cty.GetAttrPath("name"), cty.GetAttrPath("tags").IndexString("k")
	item := cty.GetAttrPath("items").IndexInt(1)
	inSet := cty.GetAttrPath("ports").Index(cty.NumberIntVal(2))
	v := func(n string, tags, items, ports cty.Value) cty.Value {
		return cty.ObjectVal(vals{"name": str(n), "tags": tags, "items": items, "ports": ports})
	}
	k := func(s string) cty.Value { return mapOf(vals{"k": str(s)}) }
	prior := v("a", k("x"), list(str("0"), str("1")), set(cty.NumberIntVal(2)))
	tests := []struct {
		name    string
		planned cty.Value
		want    []string
	}{
		{"nothing changed", prior, nil},
		{"changed", v("b", k("y"), list(str("0"), str("2")), set(cty.NumberIntVal(2))), []string{".name", `.tags["k"]`, ".items[000000000001]"}},
		{"gone", v("a", cty.MapValEmpty(cty.String), list(str("0")), set(cty.NumberIntVal(3))), []string{`.tags["k"]`, ".items[000000000001]", ".ports[000000000002]"}},
		{"gone with what held it", v("a", cty.NullVal(cty.Map(cty.String)), list(str("0"), str("1")), set(cty.NumberIntVal(2))), []string{`.tags["k"]`}},
		{"unknown", cty.ObjectVal(vals{"name": unknown, "tags": cty.UnknownVal(cty.Map(cty.String)), "items": list(str("0"), str("1")), "ports": set(cty.NumberIntVal(2))}), []string{".name", `.tags["k"]`}},
		{"destroyed", cty.NullVal(prior.Type()), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := FilterReplace([]cty.Path{name, name, tag, item, inSet, cty.GetAttrPath("none")}, prior, tt.planned)
			if d := cmp.Diff(tt.want, pathTexts(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestChangedPaths(t *testing.T) {
	o := func(v vals) cty.Value { return cty.ObjectVal(v) }
	tests := []struct {
		name          string
		before, after cty.Value
		want          []string
	}{
		{"same", o(vals{"a": str("x")}), o(vals{"a": str("x")}), nil},
		{"leaf", o(vals{"a": str("x"), "b": str("x")}), o(vals{"a": str("y"), "b": str("x")}), []string{".a"}},
		{"unknown", o(vals{"a": str("x")}), o(vals{"a": unknown}), []string{".a"}},
		{"null of another type is the same", o(vals{"a": cty.NullVal(cty.String)}), o(vals{"a": cty.NullVal(cty.DynamicPseudoType)}), nil},
		{"list", o(vals{"a": list(str("x"), str("y"))}), o(vals{"a": list(str("x"), str("z"), str("n"))}), []string{".a[000000000001]", ".a[000000000002]"}},
		{"map", o(vals{"a": mapOf(vals{"k": str("x"), "g": str("x")})}), o(vals{"a": mapOf(vals{"k": str("y"), "n": str("x")})}), []string{`.a["g"]`, `.a["k"]`, `.a["n"]`}},
		{"set as one", o(vals{"a": set(str("x"))}), o(vals{"a": set(str("x"), str("y"))}), []string{".a"}},
		{"kind", o(vals{"a": str("x")}), o(vals{"a": list(str("x"))}), []string{".a"}},
		{"gone", o(vals{"a": str("x")}), cty.NullVal(cty.DynamicPseudoType), []string{""}},
		{"nested", o(vals{"a": o(vals{"b": list(o(vals{"c": cty.True}))})}), o(vals{"a": o(vals{"b": list(o(vals{"c": cty.False}))})}), []string{".a.b[000000000000].c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, pathTexts(ChangedPaths(tt.before, tt.after))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestUnknownsToNull(t *testing.T) {
	v := cty.ObjectVal(vals{"a": unknown, "b": list(str("x"), unknown), "c": cty.DynamicVal, "d": set(unknown)})
	null := cty.NullVal(cty.String)
	equal(t, UnknownsToNull(v), cty.ObjectVal(vals{"a": null, "b": list(str("x"), null), "c": cty.NullVal(cty.DynamicPseudoType), "d": set(null)}))
}

func TestCheckConforms(t *testing.T) {
	ty := cty.Object(map[string]cty.Type{"a": cty.String, "b": cty.DynamicPseudoType})
	tests := []struct {
		v    cty.Value
		want bool
	}{
		{cty.ObjectVal(vals{"a": str("x"), "b": cty.True}), true},
		{cty.ObjectVal(vals{"a": unknown, "b": cty.DynamicVal}), true},
		{cty.NullVal(ty), true},
		{cty.ObjectVal(vals{"a": cty.True, "b": cty.True}), false},
		{cty.ObjectVal(vals{"a": str("x")}), false},
		{cty.ObjectVal(vals{"a": str("x").Mark("m"), "b": cty.True}), false},
		{cty.NilVal, false},
	}
	for _, tt := range tests {
		if got := len(CheckConforms(ty, tt.v)) == 0; got != tt.want {
			t.Errorf("%#v: got %v", tt.v, got)
		}
	}
}
