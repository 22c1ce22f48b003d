package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

// manifestSchema is the part of kube_manifest that is long.
var manifestSchema = &providers.ResourceSchema{Block: &providers.Block{Attributes: map[string]*providers.Attribute{
	"yaml":    {Type: cty.String, Optional: true},
	"objects": {Type: cty.Map(cty.String), Computed: true},
}}}

// operator is a manifest in the shape of an operator's: 5 CRDs of more than 300 KB
// and 55 objects of some 50 lines.
func operator(t *testing.T, version string) cty.Value {
	t.Helper()
	objects, yaml := object{}, ""
	add := func(name string, content any) {
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		objects[name] = str(string(text))
		yaml += strings.ReplaceAll(string(text), ",", ",\n") + "\n---\n"
	}
	for i := range 60 {
		if i < 5 {
			properties := map[string]any{}
			for n := range 3000 {
				properties[fmt.Sprintf("field%d", n)] = map[string]any{"type": "string", "description": strings.Repeat("x", 80) + version}
			}
			add(fmt.Sprintf("apiextensions.k8s.io/CustomResourceDefinition//kind%d", i), map[string]any{"spec": properties})
			continue
		}
		env := []any{}
		for n := range 12 {
			env = append(env, map[string]any{"name": fmt.Sprint("E", n), "value": version})
		}
		add(fmt.Sprintf("apps/Deployment/lab/web%d", i), map[string]any{"spec": map[string]any{"env": env}})
	}
	return cty.ObjectVal(object{"yaml": str(yaml), "objects": cty.MapVal(objects)})
}

// TestLargeManifestIsShort: the plan of a manifest with large CRDs has the objects by
// name, as text and as Markdown, when it comes, changes, and is removed. The JSON of
// the plan has every value.
func TestLargeManifestIsShort(t *testing.T) {
	one, two := operator(t, "1"), operator(t, "2")
	if n := len(one.GetAttr("objects").Index(str("apiextensions.k8s.io/CustomResourceDefinition//kind0")).AsString()); n < 300<<10 {
		t.Fatalf("a CRD has %d bytes", n)
	}
	null := cty.NullVal(one.Type())
	for _, tt := range []struct {
		name          string
		action        plan.Action
		before, after cty.Value
	}{{"create", plan.Create, null, one}, {"update", plan.Update, one, two}, {"delete", plan.Delete, one, null}} {
		t.Run(tt.name, func(t *testing.T) {
			c := &plan.Change{Addr: instance(t, "kube_manifest.operator"), Action: tt.action, Before: tt.before, After: tt.after, Schema: manifestSchema}
			var text bytes.Buffer
			(&Printer{Out: &text}).change(c, nil)
			for name, got := range map[string]string{"text": text.String(), "Markdown": markdown(t, &plan.Plan{Changes: []*plan.Change{c}})} {
				if n := strings.Count(got, "\n"); n > 120 || len(got) > 20<<10 {
					t.Errorf("%s: %d lines, %d bytes:\n%.3000s", name, n, len(got), got)
				}
				for _, want := range []string{"# (60 elements)", "//kind0", "lab/web59", "hidden: show -json has them"} {
					if !strings.Contains(got, want) {
						t.Errorf("%s: no %q in\n%.3000s", name, want, got)
					}
				}
			}
		})
	}
}

// TestShortKeepsReplacement: a text that is hidden still says that its change
// replaces the object, and what is short stays as it is.
func TestShortKeepsReplacement(t *testing.T) {
	long := func(s string) cty.Value { return str(strings.Repeat(s+"\n", maxLines+50)) }
	forces := placesOf([]cty.Path{cty.GetAttrPath("a")}).name("a")
	for _, tt := range []struct {
		short bool
		after cty.Value
		want  string
	}{
		{true, long("b"), "lines hidden: show -json has them) # forces replacement"},
		{false, long("b"), "<<-EOT # forces replacement"},
		{true, str("x\ny\n"), "<<-EOT # forces replacement"},
	} {
		d := differ{short: tt.short}
		before := long("a")
		if tt.after.AsString() == "x\ny\n" {
			before = str("x\n")
		}
		d.change(4, pair{before: before, after: tt.after, forces: forces})
		if got := d.String(); !strings.Contains(got, tt.want) {
			t.Errorf("%.300s\nwant %s", got, tt.want)
		}
	}
}
