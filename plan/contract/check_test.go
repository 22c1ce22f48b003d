package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

// texts renders errors as "path: message".
func texts(errs []error) []string {
	var out []string
	for _, err := range errs {
		out = append(out, strings.TrimPrefix(pathText(err)+": "+err.Error(), "."))
	}
	return out
}

func TestCheckPlanned(t *testing.T) {
	schema := everything()
	tests := []struct {
		name                   string
		prior, config, planned vals
		want                   []string
	}{
		{name: "as configured",
			config:  vals{"name": str("a"), "one": el("name", "x"), "bset": set(el("name", "s"))},
			planned: vals{"name": str("a"), "one": el("name", "x"), "bset": set(el("name", "s"))}},
		{name: "computed values may be chosen, or be unknown",
			config:  vals{"name": str("a"), "blist": list(el("name", "x")), "list": list(el("name", "y"))},
			planned: vals{"name": str("a"), "id": unknown, "mode": str("m"), "blist": list(el("name", "x", "id", unknown)), "list": list(el("name", "y", "id", unknown))}},
		{name: "the prior value may stay when both mean the same",
			prior:   vals{"name": str("A"), "one": el("name", "X")},
			config:  vals{"name": str("a"), "one": el("name", "x")},
			planned: vals{"name": str("A"), "one": el("name", "X")}},
		{name: "a configured value may not change",
			config:  vals{"name": str("a"), "mode": str("m")},
			planned: vals{"name": str("b"), "mode": str("n")},
			want: []string{
				`mode: planned "n", but the configuration says "m"`,
				`name: planned "b", but the configuration says "a"`}},
		{name: "nor to something that is neither prior nor configured",
			prior:   vals{"name": str("old")},
			config:  vals{"name": str("a")},
			planned: vals{"name": str("b")},
			want:    []string{`name: planned "b", but the configuration says "a" and the prior value was "old"`}},
		{name: "a secret is not shown",
			config:  vals{"secret": str("hunter2")},
			planned: vals{"secret": str("hunter3")},
			want:    []string{`secret: planned (sensitive value), but the configuration says (sensitive value)`}},
		{name: "null where nothing computes it",
			prior:   vals{"note": str("old")},
			config:  vals{},
			planned: vals{"note": str("old")},
			want:    []string{`note: planned "old" for an attribute that is neither configured nor computed`}},
		{name: "write-only is null in every plan",
			config:  vals{"token": str("t"), "one": el("name", "x", "token", "t"), "bone": el("name", "x", "token", "t"), "list": list(el("name", "x", "token", "t")), "bmap": mapOf(vals{"k": el("name", "x", "token", "t")})},
			planned: vals{"token": str("t"), "one": el("name", "x"), "bone": el("name", "x", "token", "t"), "list": list(el("name", "x", "token", "t")), "bmap": mapOf(vals{"k": el("name", "x")})},
			want: []string{
				`bone.token: planned a value for a write-only attribute`,
				`list[000000000000].token: planned a value for a write-only attribute`,
				`token: planned a value for a write-only attribute`}},
		{name: "a nested attribute that is configured is not unknown",
			config:  vals{"one": el("name", "x")},
			planned: vals{"one": cty.UnknownVal(elType)},
			want:    []string{`one: planned as unknown, but it is configured; only its computed parts may be unknown`}},
		{name: "a nested attribute that is not known yet stays so",
			config:  vals{"one": cty.UnknownVal(elType)},
			planned: vals{"one": el("name", "x")},
			want:    []string{`one: planned {"id":null,"mode":null,"name":"x","note":null,"token":null}, but the configuration says unknown`}},
		{name: "lists keep their length",
			config:  vals{"list": list(el("name", "x")), "blist": list(el("name", "x"))},
			planned: vals{"list": list(el("name", "x"), el("name", "y")), "blist": cty.ListValEmpty(elType)},
			want: []string{
				`blist: planned 0 blocks, but the configuration has 1`,
				`list: planned 2 elements, but the configuration has 1`}},
		{name: "maps keep their keys",
			config:  vals{"map": mapOf(vals{"a": el("name", "x")}), "bmap": mapOf(vals{"a": el("name", "x")})},
			planned: vals{"map": mapOf(vals{"b": el("name", "x")}), "bmap": mapOf(vals{"a": el("name", "y")})},
			want: []string{
				`bmap["a"].name: planned "y", but the configuration says "x"`,
				`map: planned key "b", which the configuration doesn't have`,
				`map: configured key "a" is not in the plan`}},
		{name: "sets are trusted",
			config:  vals{"set": set(el("name", "x")), "bset": set(el("name", "x"))},
			planned: vals{"set": set(el("name", "y")), "bset": set(el("name", "y"))}},
		{name: "but for the number of elements",
			config:  vals{"set": set(el("name", "x"))},
			planned: vals{"set": set(el("name", "x"), el("name", "y"))},
			want:    []string{`set: planned 2 elements, but the configuration has 1`}},
		{name: "blocks whose number is unknown",
			config:  vals{"blist": cty.UnknownVal(cty.List(elType))},
			planned: vals{"blist": list(el("name", "x"))},
			want:    []string{`blist: planned [{"id":null,"mode":null,"name":"x","note":null,"token":null}] for blocks whose number is not known yet`}},
		{name: "blocks may not become unknown",
			config:  vals{"bone": el("name", "x"), "blist": list(el("name", "x"))},
			planned: vals{"bone": cty.UnknownVal(elType), "blist": cty.UnknownVal(cty.List(elType))},
			want: []string{
				`blist: planned blocks as unknown; only attributes within them may be unknown`,
				`bone: planned blocks as unknown; only attributes within them may be unknown`}},
		{name: "blocks may not come or go",
			config:  vals{"bone": el("name", "x")},
			planned: vals{},
			want:    []string{`bone: planned for absence, but it is configured`}},
		{name: "errors in lists come in order",
			config: vals{"blist": list(manyEls(12, "x")...)}, planned: vals{"blist": list(manyEls(12, "y")...)},
			want: wantMany(12, `blist[%012d].name: planned "y", but the configuration says "x"`)},
		{name: "refinements do not count",
			config:  vals{"name": unknown},
			planned: vals{"name": unknown.RefineNotNull()}},
		{name: "nor do those within collections",
			config:  vals{"tags": mapOf(vals{"a": unknown.RefineNotNull(), "b": str("b")}), "any": cty.TupleVal([]cty.Value{unknown.RefineNotNull()})},
			planned: vals{"tags": mapOf(vals{"a": unknown, "b": str("b")}), "any": cty.TupleVal([]cty.Value{unknown})}},
		{name: "but what is known within them does",
			config:  vals{"tags": mapOf(vals{"a": unknown.RefineNotNull(), "b": str("b")})},
			planned: vals{"tags": mapOf(vals{"a": unknown, "b": str("c")})},
			want:    []string{`tags: planned {"a":null,"b":"c"}, but the configuration says {"a":null,"b":"b"}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prior := cty.NullVal(schema.ImpliedType())
			if tt.prior != nil {
				prior = object(t, schema, tt.prior)
			}
			errs := CheckPlanned(schema, prior, object(t, schema, tt.config), object(t, schema, tt.planned))
			if d := cmp.Diff(tt.want, texts(errs)); d != "" {
				t.Error(d)
			}
		})
	}
	null := cty.NullVal(schema.ImpliedType())
	some := object(t, schema, vals{})
	if errs := CheckPlanned(schema, some, some, null); len(errs) != 1 {
		t.Errorf("planned absence: %v", errs)
	}
	if errs := CheckPlanned(schema, some, null, some); len(errs) != 1 {
		t.Errorf("planned existence: %v", errs)
	}
	if errs := CheckPlanned(schema, some, null, null); len(errs) != 0 {
		t.Errorf("destroy: %v", errs)
	}
	if errs := CheckPlanned(schema, null, some, cty.UnknownVal(null.Type())); len(errs) != 1 {
		t.Errorf("wholly unknown: %v", errs)
	}
}

func manyEls(n int, name string) []cty.Value {
	out := make([]cty.Value, n)
	for i := range out {
		out[i] = el("name", name)
	}
	return out
}

func wantMany(n int, format string) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(format, i))
	}
	return out
}

func TestCheckApplied(t *testing.T) {
	schema := everything()
	tests := []struct {
		name            string
		planned, actual vals
		want            []string
	}{
		{name: "as planned",
			planned: vals{"name": str("a"), "id": unknown, "tags": mapOf(vals{"k": unknown}), "any": cty.DynamicVal},
			actual:  vals{"name": str("a"), "id": str("1"), "tags": mapOf(vals{"k": str("v")}), "any": cty.True}},
		{name: "unknown may become null",
			planned: vals{"id": unknown, "one": cty.UnknownVal(elType), "bone": cty.UnknownVal(elType)},
			actual:  vals{}},
		{name: "but not where the plan promised a value",
			planned: vals{"id": unknown.RefineNotNull()},
			actual:  vals{},
			want:    []string{`id: is null, which is outside of what the plan promised`}},
		{name: "known values stay",
			planned: vals{"name": str("a"), "note": str("n"), "tags": mapOf(vals{"k": str("v"), "x": str("y")})},
			actual:  vals{"name": str("b"), "tags": mapOf(vals{"k": str("w"), "z": str("y")})},
			want: []string{
				`name: was "a", but is now "b"`,
				`note: was "n", but is now null`,
				`tags: element "x" has vanished`,
				`tags: element "z" has appeared`,
				`tags["k"]: was "v", but is now "w"`}},
		{name: "null stays null",
			planned: vals{"note": cty.NullVal(cty.String)},
			actual:  vals{"note": str("n")},
			want:    []string{`note: was null, but is now "n"`}},
		{name: "secrets are not shown",
			planned: vals{"secret": str("hunter2")},
			actual:  vals{"secret": str("hunter3")},
			want:    []string{`secret: was (sensitive value), but is now (sensitive value)`}},
		{name: "nothing known becomes unknown",
			planned: vals{"name": str("a"), "id": unknown},
			actual:  vals{"name": unknown, "id": unknown},
			want:    []string{`name: was "a", but is now unknown`}},
		{name: "types stay",
			planned: vals{"any": str("a")},
			actual:  vals{"any": cty.True},
			want:    []string{`any: changed its type: string required, but received bool`}},
		{name: "a null in a dynamic attribute has any type",
			planned: vals{"any": cty.NullVal(cty.String)},
			actual:  vals{"any": cty.NullVal(cty.DynamicPseudoType)}},
		{name: "nested objects",
			planned: vals{"one": el("name", "a", "id", unknown), "list": list(el("name", "b")), "map": mapOf(vals{"k": el("name", "c")})},
			actual:  vals{"one": el("name", "a", "id", "1"), "list": list(el("name", "x")), "map": mapOf(vals{"k": el("name", "y")})},
			want: []string{
				`list[000000000000].name: was "b", but is now "x"`,
				`map["k"].name: was "c", but is now "y"`}},
		{name: "blocks",
			planned: vals{"bone": el("name", "a"), "blist": list(el("name", "b")), "bmap": mapOf(vals{"k": el("name", "c")}), "bgroup": el("id", unknown)},
			actual:  vals{"blist": list(el("name", "b"), el("name", "b")), "bmap": mapOf(vals{"l": el("name", "c")}), "bgroup": el("id", "1")},
			want: []string{
				`blist: number of blocks changed from 1 to 2`,
				`bmap: element "k" has vanished`,
				`bmap: element "l" has appeared`,
				`bone: was planned to exist, but is now absent`}},
		{name: "blocks whose number was unknown",
			planned: vals{"blist": cty.UnknownVal(cty.List(elType)), "bset": cty.UnknownVal(cty.Set(elType))},
			actual:  vals{"blist": list(el("name", "b"))}},
		{name: "sets by existence",
			planned: vals{"bset": set(el("name", "a", "id", unknown), el("name", "b", "id", unknown)), "ports": set(cty.Zero)},
			actual:  vals{"bset": set(el("name", "b", "id", "1"), el("name", "a", "id", "2")), "ports": set(cty.Zero)}},
		{name: "unknown elements may turn out to be equal",
			planned: vals{"ports": set(cty.UnknownVal(cty.Number), cty.UnknownVal(cty.Number))},
			actual:  vals{"ports": set(cty.Zero)}},
		{name: "set elements that differ",
			planned: vals{"ports": set(cty.NumberIntVal(1), cty.NumberIntVal(2))},
			actual:  vals{"ports": set(cty.NumberIntVal(2), cty.NumberIntVal(3))},
			want: []string{
				`ports: planned element 1 is not in the set`,
				`ports: element 3 was not planned`}},
		{name: "a set never grows",
			planned: vals{"ports": set(cty.UnknownVal(cty.Number))},
			actual:  vals{"ports": set(cty.NumberIntVal(2), cty.NumberIntVal(3))},
			want:    []string{`ports: has 2 elements, but 1 were planned`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			errs := CheckApplied(schema, object(t, schema, tt.planned), object(t, schema, tt.actual))
			if d := cmp.Diff(tt.want, texts(errs)); d != "" {
				t.Error(d)
			}
		})
	}
	null, some := cty.NullVal(schema.ImpliedType()), object(t, schema, vals{})
	for _, tt := range []struct {
		planned, actual cty.Value
		want            int
	}{{null, null, 0}, {null, some, 1}, {some, null, 1}, {cty.UnknownVal(null.Type()), some, 0}, {some, cty.UnknownVal(null.Type()), 1}} {
		if errs := CheckApplied(schema, tt.planned, tt.actual); len(errs) != tt.want {
			t.Errorf("%#v → %#v: %v", tt.planned, tt.actual, errs)
		}
	}
}

// A set of thousands that are only known after apply is compared by hash.
func TestCheckAppliedLargeSet(t *testing.T) {
	const n = 3000
	var planned, actual []cty.Value
	for i := range n {
		name := fmt.Sprint("n", i)
		planned = append(planned, el("name", name, "id", unknown))
		actual = append(actual, el("name", name, "id", fmt.Sprint(i)))
	}
	calls := 0
	var c checker
	c.appliedSet(set(planned...), set(actual...), func(p, a cty.Value) bool {
		calls++
		return becomes(p, a)
	})
	if len(c.errs) > 0 {
		t.Fatal(c.errs[0])
	}
	if calls > 2*n {
		t.Errorf("compared %d times for %d elements", calls, n)
	}
}
