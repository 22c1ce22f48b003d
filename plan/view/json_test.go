package view

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	tfjson "github.com/hashicorp/terraform-json"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

const dataProvider = `provider["terraform.io/builtin/terraform"]`

func schemas(provider string, _ address.Mode, typeName string) *providers.ResourceSchema {
	if provider == dataProvider && typeName == "terraform_data" {
		return dataSchema
	}
	return nil
}

// sampleState has objects in two modules, tainted and deposed ones, one whose
// provider is not at hand, and outputs.
func sampleState(t *testing.T) *state.State {
	t.Helper()
	object := func(m state.Meta) *state.Object {
		o, err := state.NewObject(data(str("i-1"), cty.ObjectVal(object{"key": str("hunter2"), "n": cty.TupleVal([]cty.Value{num(1)})}), noValue, noValue), dataSchema.Block.ImpliedType(), m)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	m := state.Meta{Provider: dataProvider, Sensitive: []cty.Path{cty.GetAttrPath("input").GetAttr("key")}}
	tainted := m
	tainted.Tainted, tainted.Dependencies = true, []string{"terraform_data.a"}
	return state.New("lineage").WithChanges([]state.Change{
		{Address: instance(t, "terraform_data.a"), Object: object(m)},
		{Address: instance(t, "terraform_data.a"), Deposed: "aabb", Object: object(m)},
		{Address: instance(t, `module.m[0].module.n["k"].terraform_data.b[1]`), Object: object(tainted)},
		{Address: instance(t, `foreign_thing.c["x"]`), Object: state.RawObject([]byte(`{"id":"f","list":["a"]}`), state.Meta{Provider: `module.m.provider["registry.terraform.io/x/foreign"].alias`})},
	}, map[string]state.Output{
		"accuracy": {Value: cty.NumberFloatVal(0.97)},
		"key":      {Value: str("hunter2"), Sensitive: true},
		"all":      {Value: cty.ObjectVal(object2())},
	})
}

func object2() object {
	return object{"l": cty.ListVal(strs("a")), "m": cty.MapVal(object{"a b": str("x")}), "s": cty.SetVal(strs("q")), "text": str("a\nb\n"), "nul": noValue, "e": cty.EmptyTupleVal, "t": cty.True}
}

func TestState(t *testing.T) {
	s := sampleState(t)
	var b bytes.Buffer
	p := &Printer{Out: &b}
	p.State(s, schemas)
	b.WriteString("== empty\n")
	p.State(state.New("x"), schemas)
	if strings.Contains(b.String(), "hunter") {
		t.Error("a sensitive value is shown")
	}
	golden(t, "state.txt", b.String())

	var text bytes.Buffer
	if err := StateJSON(&text, s, schemas); err != nil {
		t.Fatal(err)
	}
	var got tfjson.State
	if err := json.Unmarshal(text.Bytes(), &got); err != nil {
		t.Fatalf("terraform-json does not read it: %v", err)
	}
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	golden(t, "state.json", indented(t, text.Bytes()))
	var empty bytes.Buffer
	if err := StateJSON(&empty, state.New("x"), schemas); err != nil || empty.String() != `{"format_version":"1.0"}` {
		t.Errorf("the empty state is %s, %v", &empty, err)
	}
}

func indented(t *testing.T, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}

func TestPlanJSON(t *testing.T) {
	path := cty.GetAttrPath("input").GetAttr("key")
	before := data(str("i-1"), cty.ObjectVal(object{"key": str("k"), "n": cty.TupleVal([]cty.Value{num(1), num(2)})}), noValue, noValue)
	after := data(later, cty.ObjectVal(object{"key": str("k"), "n": cty.TupleVal([]cty.Value{num(1), cty.UnknownVal(cty.Number)})}), cty.DynamicVal, num(1))
	null := cty.NullVal(before.Type())
	pl := &plan.Plan{
		Made: time.Unix(0, 0), Complete: true,
		Variables: map[string]cty.Value{"v": cty.ListVal(strs("x"))},
		Changes: []*plan.Change{
			{Addr: instance(t, "module.m[0].terraform_data.a"), Action: plan.DeleteThenCreate, Reason: plan.ReplaceCannotUpdate, Provider: dataProvider,
				Before: before, After: after, Schema: dataSchema, AfterSensitive: []cty.Path{path}, Replace: []cty.Path{cty.GetAttrPath("triggers_replace").IndexInt(0)}},
			{Addr: instance(t, "terraform_data.new"), Action: plan.Create, Provider: dataProvider, Before: null, After: after, Schema: dataSchema},
			{Addr: instance(t, `terraform_data.old["k"]`), Deposed: "aabb", Action: plan.Delete, Provider: dataProvider, Before: before, After: null, Schema: dataSchema},
			{Addr: instance(t, "terraform_data.same"), Provider: dataProvider, Before: before, After: before, Schema: dataSchema},
		},
		Drift: []*plan.Change{{Addr: instance(t, "terraform_data.same"), Provider: dataProvider, Before: before, After: null, Schema: dataSchema}},
		Outputs: []*plan.OutputChange{
			{Name: "a", Action: plan.Update, Before: str("x"), After: later},
			{Name: "b", Action: plan.Create, After: num(1), Sensitive: true},
			{Name: "c", Action: plan.Delete, Before: num(1), After: cty.NullVal(cty.DynamicPseudoType)},
		},
	}
	var text bytes.Buffer
	if err := PlanJSON(&text, pl, Configuration{}); err != nil {
		t.Fatal(err)
	}
	var got tfjson.Plan
	if err := json.Unmarshal(text.Bytes(), &got); err != nil {
		t.Fatalf("terraform-json does not read it: %v", err)
	}
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	if !got.ResourceChanges[len(got.ResourceChanges)-1].Change.Actions.DestroyBeforeCreate() {
		t.Error("the replacement is not recognised")
	}
	golden(t, "plan.json", indented(t, text.Bytes()))
}

func TestOutputs(t *testing.T) {
	outputs := sampleState(t).Outputs()
	text, err := OutputsJSON(outputs)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "outputs.json", string(text)+"\n")
	for _, c := range []struct {
		v         cty.Value
		want, err string
	}{
		{str("a b"), "a b", ""}, {num(3), "3", ""}, {cty.NumberFloatVal(0.05), "0.05", ""}, {cty.True, "true", ""},
		{cty.NullVal(cty.String), "", "its value is null"}, {cty.EmptyObjectVal, "", "it is an object"}, {cty.ListValEmpty(cty.String), "", "it is a list of string"},
	} {
		got, err := Raw(c.v)
		if got != c.want || (err == nil) != (c.err == "") || (err != nil && err.Error() != c.err) {
			t.Errorf("Raw(%#v) = %q, %v; want %q, %s", c.v, got, err, c.want, c.err)
		}
	}
}

func TestValidateJSON(t *testing.T) {
	r := hcl.Range{Filename: "main.tf", Start: hcl.Pos{Line: 6, Column: 11, Byte: 78}, End: hcl.Pos{Line: 6, Column: 16, Byte: 83}}
	diags := hcl.Diagnostics{
		{Severity: hcl.DiagError, Summary: "Bad", Detail: "Very.", Subject: &r},
		{Severity: hcl.DiagWarning, Summary: "Hm"},
	}
	text, err := ValidateJSON(diags, func(string) []byte { return []byte(source) })
	if err != nil {
		t.Fatal(err)
	}
	var got tfjson.ValidateOutput
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("terraform-json does not read it: %v", err)
	}
	s := got.Diagnostics[0].Snippet
	if code := s.Code[s.HighlightStartOffset:s.HighlightEndOffset]; code != "var.x" {
		t.Errorf("%q is highlighted", code)
	}
	golden(t, "validate.json", string(text)+"\n")
}
