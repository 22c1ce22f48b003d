package view

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

func instance(t *testing.T, text string) address.Instance {
	t.Helper()
	i, err := address.ParseInstance(text)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func str(s string) cty.Value { return cty.StringVal(s) }
func num(n int64) cty.Value  { return cty.NumberIntVal(n) }

func strs(s ...string) []cty.Value {
	var out []cty.Value
	for _, x := range s {
		out = append(out, str(x))
	}
	return out
}

type object = map[string]cty.Value

// dataSchema is the schema of terraform_data.
var dataSchema = &providers.ResourceSchema{Block: &providers.Block{Attributes: map[string]*providers.Attribute{
	"id":               {Type: cty.String, Computed: true},
	"input":            {Type: cty.DynamicPseudoType, Optional: true},
	"output":           {Type: cty.DynamicPseudoType, Computed: true},
	"triggers_replace": {Type: cty.DynamicPseudoType, Optional: true},
}}}

func data(id, input, output, triggers cty.Value) cty.Value {
	return cty.ObjectVal(object{"id": id, "input": input, "output": output, "triggers_replace": triggers})
}

var (
	noValue = cty.NullVal(cty.DynamicPseudoType)
	later   = cty.UnknownVal(cty.String)
)

func TestPlanValues(t *testing.T) {
	before := cty.ObjectVal(object{
		"str": str("a"), "num": num(1), "b": cty.True, "nul": noValue, "empty": cty.EmptyObjectVal, "el": cty.EmptyTupleVal,
		"list":   cty.TupleVal(strs("a", "b", "c", "d", "e", "f", "g", "h")),
		"map":    cty.MapVal(object{"a": str("1"), "b c": str("2"), "keep": str("x")}),
		"obj":    cty.TupleVal([]cty.Value{cty.ObjectVal(object{"a": num(1), "b": str("x")}), cty.ObjectVal(object{"a": num(2), "b": str("y")})}),
		"multi":  str("line1\nline2\nline3\n"),
		"js":     str(`{"a":1,"b":[1,2,3],"c":{"d":"e"}}`),
		"space":  str(`{"a": 1}`),
		"set":    cty.SetVal(strs("a", "b")),
		"secret": str("hunter2"), "kind": str("x"), "esc": str("a\x1b[31m${x}"),
		"tail": str("one\ntwo"),
	})
	after := cty.ObjectVal(object{
		"str": str("b"), "num": cty.NumberFloatVal(0.05), "b": cty.False, "nul": str("x"), "empty": cty.EmptyObjectVal, "el": cty.TupleVal(strs("q")),
		"list":   cty.TupleVal(strs("a", "c", "d", "X", "e", "f", "g", "h")),
		"map":    cty.MapVal(object{"a": str("1"), "b c": str("3"), "new": str("y")}),
		"obj":    cty.TupleVal([]cty.Value{cty.ObjectVal(object{"a": num(1), "b": str("z")}), cty.ObjectVal(object{"a": num(2), "b": str("y")}), cty.ObjectVal(object{"a": num(3), "b": str("w")})}),
		"multi":  str("line1\nline2 changed\nline3\nline4\n"),
		"js":     str(`{"a":1,"b":[1,3],"c":{"d":"f"},"n":null}`),
		"space":  str(`{"a":1}`),
		"set":    cty.SetVal(strs("a", "c")),
		"secret": str("hunter3"), "kind": cty.TupleVal(strs("x")), "esc": str("b"),
		"tail": str("one\ntwo\n"),
	})
	hide := []cty.Path{cty.GetAttrPath("input").GetAttr("secret"), cty.GetAttrPath("output").GetAttr("secret")}
	pl := &plan.Plan{Changes: []*plan.Change{
		{
			Addr: instance(t, "terraform_data.a"), Action: plan.Update, Schema: dataSchema,
			Before: data(str("i-1"), before, before, noValue), After: data(str("i-1"), after, cty.DynamicVal, noValue),
			BeforeSensitive: hide, AfterSensitive: hide[:1],
		},
		{
			Addr: instance(t, "terraform_data.b"), Action: plan.Create, Schema: dataSchema,
			Before: cty.NullVal(cty.DynamicPseudoType), After: data(later, after, cty.DynamicVal, noValue),
			AfterSensitive: hide,
		},
		{
			Addr: instance(t, "terraform_data.c"), Action: plan.Delete, Schema: dataSchema, Reason: plan.DeleteNoResourceConfig,
			Before: data(str("i-1"), before, noValue, noValue), After: cty.NullVal(cty.DynamicPseudoType),
			BeforeSensitive: hide,
		},
	}}
	text := render(t, pl)
	if strings.Contains(text, "hunter") {
		t.Error("a sensitive value is shown")
	}
	if strings.Contains(text, "\x1b") {
		t.Error("an escape sequence got through")
	}
	golden(t, "values.txt", text)
}

func render(t *testing.T, pl *plan.Plan) string {
	t.Helper()
	var b bytes.Buffer
	p := &Printer{Out: &b}
	p.Plan(pl)
	return b.String()
}

func TestPlanReasons(t *testing.T) {
	null := cty.NullVal(cty.DynamicPseudoType)
	old, renewed := data(str("i-1"), str("k"), str("k"), cty.TupleVal([]cty.Value{num(1)})), data(later, str("k"), cty.DynamicVal, cty.TupleVal([]cty.Value{num(2)}))
	again := data(later, str("k"), cty.DynamicVal, cty.TupleVal([]cty.Value{num(1)}))
	change := func(addr string, a plan.Action, r plan.Reason, before, after cty.Value) *plan.Change {
		return &plan.Change{Addr: instance(t, addr), Action: a, Reason: r, Before: before, After: after, Schema: dataSchema}
	}
	trigger := change("terraform_data.cannot", plan.DeleteThenCreate, plan.ReplaceCannotUpdate, old, renewed)
	trigger.Replace = []cty.Path{cty.GetAttrPath("triggers_replace")}
	deposed := change("terraform_data.deposed", plan.Delete, plan.NoReason, old, null)
	deposed.Deposed = "1f2e3d4c"
	pl := &plan.Plan{
		Changes: []*plan.Change{
			trigger, deposed,
			change("terraform_data.tainted", plan.DeleteThenCreate, plan.ReplaceTainted, old, again),
			change("terraform_data.asked", plan.CreateThenDelete, plan.ReplaceByRequest, old, again),
			change("terraform_data.triggered", plan.DeleteThenCreate, plan.ReplaceByTriggers, old, again),
			change("terraform_data.count[1]", plan.Delete, plan.DeleteCountIndex, old, null),
			change(`terraform_data.each["a b"]`, plan.Delete, plan.DeleteEachKey, old, null),
			change("terraform_data.single", plan.Delete, plan.DeleteWrongRepetition, old, null),
			change("module.gone.terraform_data.x", plan.Delete, plan.DeleteNoModule, old, null),
			change("data.terraform_data.read", plan.Read, plan.ReadConfigUnknown, null, again),
			change("terraform_data.still", plan.NoOp, plan.NoReason, old, old),
		},
		Outputs: []*plan.OutputChange{
			{Name: "accuracy", Action: plan.Update, Before: cty.NumberFloatVal(0.97), After: cty.UnknownVal(cty.Number)},
			{Name: "new", Action: plan.Create, After: cty.TupleVal(strs("x"))},
			{Name: "gone", Action: plan.Delete, Before: str("x"), After: null},
			{Name: "key", Action: plan.Update, Before: str("hunter2"), After: str("hunter3"), BeforeSensitive: true, Sensitive: true},
			{Name: "same", Action: plan.NoOp, Before: str("x"), After: str("x")},
		},
		Notes: []providers.Note{
			{Address: "terraform_data.cannot", Kind: providers.NoteChange, Path: cty.GetAttrPath("triggers_replace"), Text: "a new run"},
			{Address: "terraform_data.cannot", Kind: providers.NoteDisruption, Text: "stops 2 workers"},
			{Address: "terraform_data.cannot", Kind: providers.NoteCost, Text: "2.50 a month", Number: 2.5},
			{Address: "terraform_data.asked", Kind: providers.NoteCost, Text: "1 a month", Number: 1},
			{Address: "terraform_data.still", Kind: providers.NoteFact, Text: "3 GPUs free\x1b[2J"},
		},
	}
	text := render(t, pl)
	if strings.Contains(text, "hunter") || strings.Contains(text, "\x1b") {
		t.Error("something got through that must not")
	}
	golden(t, "reasons.txt", text)
	pl.Warnings = []plan.Warning{{Summary: "Argument is deprecated", Detail: "Use another.", File: "main.tf", Line: 3}, {Summary: "Argument is deprecated", Detail: "Use another."}}
	golden(t, "reasons.md", markdown(t, pl))
}

// blockSchema has every nesting, and secrets at two depths.
var blockSchema = &providers.ResourceSchema{Block: &providers.Block{
	Attributes: map[string]*providers.Attribute{
		"id":       {Type: cty.String, Computed: true},
		"password": {Type: cty.String, Optional: true, Sensitive: true},
		"nested": {Optional: true, Nested: &providers.NestedType{Nesting: providers.List, Attributes: map[string]*providers.Attribute{
			"a": {Type: cty.String, Optional: true}, "token": {Type: cty.String, Optional: true, Sensitive: true}}}},
	},
	Blocks: map[string]*providers.NestedBlock{
		"timeouts": {Nesting: providers.Single, Block: leaf()},
		"worker":   {Nesting: providers.List, Block: leaf()},
		"disk":     {Nesting: providers.Set, Block: leaf()},
		"port":     {Nesting: providers.Map, Block: leaf()},
	},
}}

func leaf() *providers.Block {
	return &providers.Block{Attributes: map[string]*providers.Attribute{
		"size": {Type: cty.Number, Optional: true}, "key": {Type: cty.String, Optional: true, Sensitive: true},
	}}
}

func leafValue(size int64, key string) cty.Value {
	return cty.ObjectVal(object{"size": num(size), "key": str(key)})
}

func TestPlanBlocks(t *testing.T) {
	nested := func(a, token string) cty.Value {
		return cty.ListVal([]cty.Value{cty.ObjectVal(object{"a": str(a), "token": str(token)})})
	}
	leafType := blockSchema.Block.Blocks["worker"].Block.ImpliedType()
	before := cty.ObjectVal(object{
		"id": str("i-1"), "password": str("hunter2"), "nested": nested("x", "hunter2"),
		"timeouts": cty.NullVal(leafType),
		"worker":   cty.ListVal([]cty.Value{leafValue(1, "hunter2"), leafValue(2, "hunter2")}),
		"disk":     cty.SetVal([]cty.Value{leafValue(1, "hunter2"), leafValue(2, "hunter2")}),
		"port":     cty.MapVal(object{"a": leafValue(1, "hunter2"), "b": leafValue(1, "hunter2")}),
	})
	after := cty.ObjectVal(object{
		"id": str("i-1"), "password": str("hunter3"), "nested": nested("y", "hunter3"),
		"timeouts": leafValue(9, "hunter2"),
		"worker":   cty.ListVal([]cty.Value{leafValue(1, "hunter2"), leafValue(4, "hunter2"), leafValue(5, "hunter2")}),
		"disk":     cty.SetVal([]cty.Value{leafValue(1, "hunter2"), leafValue(3, "hunter2")}),
		"port":     cty.MapVal(object{"a": leafValue(1, "hunter3"), "c": leafValue(1, "hunter2")}),
	})
	null := cty.NullVal(before.Type())
	pl := &plan.Plan{Changes: []*plan.Change{
		{Addr: instance(t, "x_y.update"), Action: plan.Update, Before: before, After: after, Schema: blockSchema},
		{Addr: instance(t, "x_y.create"), Action: plan.Create, Before: null, After: after, Schema: blockSchema},
		{Addr: instance(t, "x_y.delete"), Action: plan.Delete, Before: before, After: null, Schema: blockSchema},
	}}
	text := render(t, pl)
	if strings.Contains(text, "hunter") {
		t.Error("a value that the schema calls sensitive is shown")
	}
	golden(t, "blocks.txt", text)
}

func TestPlanNothing(t *testing.T) {
	drifted := &plan.Change{Addr: instance(t, "terraform_data.d"), Schema: dataSchema,
		Before: data(str("i"), str("a"), str("a"), noValue), After: data(str("i"), str("b"), str("a"), noValue)}
	deleted := &plan.Change{Addr: instance(t, "terraform_data.e"), Schema: dataSchema,
		Before: data(str("i"), str("a"), str("a"), noValue), After: cty.NullVal(cty.DynamicPseudoType)}
	var b strings.Builder
	for name, pl := range map[string]*plan.Plan{"normal": {}} {
		b.WriteString("== " + name + "\n" + render(t, pl))
	}
	b.WriteString("== unseen\n" + render(t, &plan.Plan{Unseen: 1}))
	b.WriteString("== noted\n" + render(t, &plan.Plan{Notes: []providers.Note{{Address: "metal_node.a", Kind: providers.NoteFact, Text: "a GPU is lost"}}}))
	b.WriteString("== destroy\n" + render(t, &plan.Plan{Mode: plan.Destroy}))
	b.WriteString("== refresh-only\n" + render(t, &plan.Plan{Mode: plan.RefreshOnly}))
	b.WriteString("== drift\n" + render(t, &plan.Plan{Drift: []*plan.Change{drifted, deleted}}))
	b.WriteString("== refresh-only with drift\n" + render(t, &plan.Plan{Mode: plan.RefreshOnly, Drift: []*plan.Change{drifted}, Refreshed: []*plan.Change{drifted}}))
	b.WriteString("== outputs alone\n" + render(t, &plan.Plan{Outputs: []*plan.OutputChange{{Name: "o", Action: plan.Create, After: str("x")}}}))
	golden(t, "nothing.txt", b.String())
}

// A list of many elements must not cost their product.
func TestLongSequences(t *testing.T) {
	const n = 20000
	a, b := make([]int, n), make([]int, n)
	for i := range a {
		a[i], b[i] = i, n-i
	}
	steps := edits(a, b)
	i, j := 0, 0
	for _, s := range steps {
		if s.i >= 0 {
			i++
		}
		if s.j >= 0 {
			j++
		}
		if s.same && a[s.i] != b[s.j] {
			t.Fatalf("%v is called the same", s)
		}
	}
	if i != n || j != n {
		t.Errorf("%d and %d elements are left of %d", i, j, n)
	}
}

func FuzzEdits(f *testing.F) {
	f.Add([]byte("abcabba"), []byte("cbabac"))
	f.Fuzz(func(t *testing.T, x, y []byte) {
		a, b := make([]int, len(x)), make([]int, len(y))
		for i := range x {
			a[i] = int(x[i])
		}
		for i := range y {
			b[i] = int(y[i])
		}
		i, j := 0, 0 // every element once, in order
		for _, s := range edits(a, b) {
			if s.i >= 0 {
				if s.i != i {
					t.Fatalf("got element %d, want %d", s.i, i)
				}
				i++
			}
			if s.j >= 0 {
				if s.j != j {
					t.Fatalf("got element %d, want %d", s.j, j)
				}
				j++
			}
			if s.same && a[s.i] != b[s.j] {
				t.Fatalf("%v is called the same", s)
			}
		}
		if i != len(a) || j != len(b) {
			t.Fatal("elements are missing")
		}
	})
}

// Costs must grow with the plan and no faster.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		pl := &plan.Plan{}
		for i := range n {
			addr := address.Resource{Type: "terraform_data", Name: "x"}.Instance(address.IntKey(i))
			pl.Changes = append(pl.Changes, &plan.Change{
				Addr: addr, Action: plan.Update, Schema: dataSchema,
				Before: data(str("i-1"), str("a"), str("a"), noValue), After: data(str("i-1"), str("b"), cty.DynamicVal, noValue),
			})
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				(&Printer{Out: io.Discard}).Plan(pl)
			}
		})
	}
}
