package contract

import (
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

func TestProposed(t *testing.T) {
	schema := everything()
	tests := []struct {
		name                string
		prior, config, want vals
		create              bool
	}{
		{name: "create leaves computed attributes to the provider", create: true,
			config: vals{"name": str("a")},
			want:   vals{"name": str("a")}},
		{name: "write-only values are proposed, never kept",
			prior:  vals{"name": str("a"), "blist": list(el("name", "x"))},
			config: vals{"name": str("a"), "token": str("t"), "blist": list(el("name", "x", "token", "t"))},
			want:   vals{"name": str("a"), "token": str("t"), "blist": list(el("name", "x", "token", "t"))}},
		{name: "computed values stay, configured ones win",
			prior:  vals{"name": str("a"), "id": str("1"), "mode": str("auto"), "note": str("old")},
			config: vals{"name": str("b"), "note": str("new")},
			want:   vals{"name": str("b"), "id": str("1"), "mode": str("auto"), "note": str("new")}},
		{name: "an argument taken out becomes null, unless it is computed too",
			prior:  vals{"note": str("old"), "mode": str("mine")},
			config: vals{},
			want:   vals{"mode": str("mine")}},
		{name: "unknown configuration stays unknown",
			prior:  vals{"name": str("a"), "mode": str("x"), "tags": mapOf(vals{"a": str("b")})},
			config: vals{"name": unknown, "mode": unknown, "tags": cty.UnknownVal(cty.Map(cty.String))},
			want:   vals{"name": unknown, "mode": unknown, "tags": cty.UnknownVal(cty.Map(cty.String))}},
		{name: "a dynamic attribute may change its type",
			prior:  vals{"any": str("x")},
			config: vals{"any": cty.TupleVal([]cty.Value{cty.True})},
			want:   vals{"any": cty.TupleVal([]cty.Value{cty.True})}},
		{name: "single nested attribute and blocks",
			prior:  vals{"one": el("name", "a", "id", "1"), "bone": el("name", "a", "id", "2"), "bgroup": el("id", "3")},
			config: vals{"one": el("name", "b"), "bone": el("name", "b"), "bgroup": el("note", "n")},
			want:   vals{"one": el("name", "b", "id", "1"), "bone": el("name", "b", "id", "2"), "bgroup": el("note", "n", "id", "3")}},
		{name: "a single that is gone is gone",
			prior:  vals{"one": el("name", "a", "id", "1"), "bone": el("name", "a", "id", "2")},
			config: vals{},
			want:   vals{}},
		{name: "a computed single stays when nobody wrote it",
			prior:  vals{"auto": el("id", "1", "mode", "m")},
			config: vals{},
			want:   vals{"auto": el("id", "1", "mode", "m")}},
		{name: "a computed single goes when somebody had written it",
			prior:  vals{"auto": el("name", "mine", "id", "1")},
			config: vals{},
			want:   vals{}},
		{name: "lists are merged by index",
			prior:  vals{"list": list(el("name", "a", "id", "1"), el("name", "b", "id", "2")), "blist": list(el("name", "a", "id", "1"))},
			config: vals{"list": list(el("name", "x")), "blist": list(el("name", "x"), el("name", "y"))},
			want:   vals{"list": list(el("name", "x", "id", "1")), "blist": list(el("name", "x", "id", "1"), el("name", "y"))}},
		{name: "maps are merged by key",
			prior:  vals{"map": mapOf(vals{"k": el("name", "a", "id", "1"), "gone": el("name", "b")}), "bmap": mapOf(vals{"k": el("name", "a", "id", "1")})},
			config: vals{"map": mapOf(vals{"k": el("name", "x"), "new": el("name", "y")}), "bmap": mapOf(vals{"k": el("name", "x")})},
			want:   vals{"map": mapOf(vals{"k": el("name", "x", "id", "1"), "new": el("name", "y")}), "bmap": mapOf(vals{"k": el("name", "x", "id", "1")})}},
		{name: "set elements are found again by what is configured",
			prior:  vals{"set": set(el("name", "a", "id", "1", "mode", "m"), el("name", "b", "id", "2")), "bset": set(el("name", "a", "id", "1"))},
			config: vals{"set": set(el("name", "a"), el("name", "b", "note", "new")), "bset": set(el("name", "a"))},
			want:   vals{"set": set(el("name", "a", "id", "1", "mode", "m"), el("name", "b", "note", "new")), "bset": set(el("name", "a", "id", "1"))}},
		{name: "a configured computed attribute of a set element has to agree",
			prior:  vals{"set": set(el("name", "a", "id", "1", "mode", "m"), el("name", "a", "id", "2", "mode", "n"))},
			config: vals{"set": set(el("name", "a", "mode", "n"), el("name", "a", "mode", "o"))},
			want:   vals{"set": set(el("name", "a", "id", "2", "mode", "n"), el("name", "a", "mode", "o"))}},
		{name: "each prior set element is used once",
			prior:  vals{"set": set(el("name", "a", "id", "1", "mode", "m"))},
			config: vals{"set": set(el("name", "a"), el("name", "a", "mode", "m"))},
			want:   vals{"set": set(el("name", "a", "id", "1", "mode", "m"), el("name", "a"))}},
		{name: "a set element that is not known matches nothing",
			prior:  vals{"set": set(el("name", "a", "id", "1"))},
			config: vals{"set": set(el("name", unknown))},
			want:   vals{"set": set(el("name", unknown))}},
		{name: "unknown collections stay unknown",
			prior:  vals{"list": list(el("name", "a")), "set": set(el("name", "a")), "blist": list(el("name", "a"))},
			config: vals{"list": cty.UnknownVal(cty.List(elType)), "set": cty.UnknownVal(cty.Set(elType)), "blist": cty.UnknownVal(cty.List(elType))},
			want:   vals{"list": cty.UnknownVal(cty.List(elType)), "set": cty.UnknownVal(cty.Set(elType)), "blist": cty.UnknownVal(cty.List(elType))}},
		{name: "empty collections stay empty",
			prior:  vals{"list": list(el("name", "a")), "map": mapOf(vals{"k": el("name", "a")})},
			config: vals{"list": cty.ListValEmpty(elType), "map": cty.MapValEmpty(elType), "set": cty.SetValEmpty(elType)},
			want:   vals{"list": cty.ListValEmpty(elType), "map": cty.MapValEmpty(elType), "set": cty.SetValEmpty(elType)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prior := cty.NullVal(schema.ImpliedType())
			if !tt.create {
				prior = object(t, schema, tt.prior)
			}
			got := Proposed(schema, prior, object(t, schema, tt.config))
			equal(t, got, object(t, schema, tt.want))
			conforms(t, schema, got)
		})
	}
}

func TestProposedDestroy(t *testing.T) {
	schema := everything()
	null := cty.NullVal(schema.ImpliedType())
	equal(t, Proposed(schema, object(t, schema, vals{"name": str("a")}), null), null)
}

func TestProposedUnknown(t *testing.T) {
	schema := everything()
	got := ProposedUnknown(schema, object(t, schema, vals{
		"name": str("a"), "one": el("name", "x", "mode", "m"),
		"set": set(el("name", "a")), "blist": list(el("name", "b")), "bmap": mapOf(vals{"k": el("name", "c")}),
	}))
	open := func(name string) cty.Value { return el("name", name, "id", unknown, "mode", unknown) }
	equal(t, got, object(t, schema, vals{
		"name": str("a"), "id": unknown, "mode": unknown,
		"one": el("name", "x", "mode", "m", "id", unknown), "auto": cty.UnknownVal(elType),
		"set": set(open("a")), "blist": list(open("b")), "bmap": mapOf(vals{"k": open("c")}),
		"bgroup": el("id", unknown, "mode", unknown),
	}))
	conforms(t, schema, got)
}

// Blocks with a dynamic part are tuples and objects instead of lists and maps.
func TestProposedDynamicBlocks(t *testing.T) {
	inner := &providers.Block{Attributes: attrs{
		"v":  {Type: cty.DynamicPseudoType, Optional: true},
		"id": {Type: cty.String, Computed: true},
	}}
	schema := &providers.Block{Blocks: map[string]*providers.NestedBlock{
		"l": {Nesting: providers.List, Block: inner},
		"m": {Nesting: providers.Map, Block: inner},
	}}
	one := func(v, id cty.Value) cty.Value { return cty.ObjectVal(vals{"v": v, "id": id}) }
	null := cty.NullVal(cty.String)
	got := Proposed(schema,
		cty.ObjectVal(vals{"l": cty.TupleVal([]cty.Value{one(str("x"), str("1"))}), "m": cty.ObjectVal(vals{"k": one(cty.True, str("2"))})}),
		cty.ObjectVal(vals{"l": cty.TupleVal([]cty.Value{one(cty.Zero, null), one(str("y"), null)}), "m": cty.ObjectVal(vals{"k": one(cty.False, null), "n": one(str("z"), null)})}))
	want := cty.ObjectVal(vals{
		"l": cty.TupleVal([]cty.Value{one(cty.Zero, str("1")), one(str("y"), null)}),
		"m": cty.ObjectVal(vals{"k": one(cty.False, str("2")), "n": one(str("z"), null)}),
	})
	equal(t, got, want)
	if errs := CheckPlanned(schema, cty.NullVal(schema.ImpliedType()), want, want); len(errs) > 0 {
		t.Error(errs)
	}
}

// Sets of thousands are matched without comparing all with all: the number of
// comparisons that reach values equals the number of elements.
func TestProposedLargeSet(t *testing.T) {
	schema := everything()
	const n = 3000
	var prior, config, want []cty.Value
	for i := range n {
		name, id := fmt.Sprint("n", i), fmt.Sprint("i", i)
		prior = append(prior, el("name", name, "id", id, "mode", "m"))
		if i%2 == 0 {
			config = append(config, el("name", name))
		} else {
			config = append(config, el("name", name, "mode", "m"))
		}
		want = append(want, el("name", name, "id", id, "mode", "m"))
	}
	got := Proposed(schema, object(t, schema, vals{"bset": set(prior...)}), object(t, schema, vals{"bset": set(config...)}))
	equal(t, got.GetAttr("bset"), set(want...))
	groups := (&priorSet{shape: blockShape(schema.Blocks["bset"]), els: prior, used: make([]bool, n)})
	for _, c := range config {
		groups.take(c)
	}
	for name, index := range groups.groups {
		for _, waiting := range index {
			if len(waiting) > 3 {
				t.Errorf("group %q has %d elements under one hash", name, len(waiting))
			}
		}
	}
	if len(groups.groups) != 2 {
		t.Errorf("got %d groups, want 2", len(groups.groups))
	}
}

func equal(t *testing.T, got, want cty.Value) {
	t.Helper()
	if got.RawEquals(want) {
		return
	}
	if got.Type().IsObjectType() && want.Type().IsObjectType() && !got.IsNull() && !want.IsNull() {
		for name := range want.Type().AttributeTypes() {
			if !got.Type().HasAttribute(name) {
				t.Errorf("%s: missing", name)
			} else if g, w := got.GetAttr(name), want.GetAttr(name); !g.RawEquals(w) {
				t.Errorf("%s:\n got %#v\nwant %#v", name, g, w)
			}
		}
	}
	if !t.Failed() {
		t.Errorf("got %#v\nwant %#v", got, want)
	}
}

func conforms(t *testing.T, schema *providers.Block, v cty.Value) {
	t.Helper()
	if errs := CheckConforms(schema.ImpliedType(), v); len(errs) > 0 {
		t.Errorf("does not conform: %v", errs)
	}
}
