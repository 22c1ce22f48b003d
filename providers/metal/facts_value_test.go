package metal

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/stokehq/stoke/providers/metal/facts"
)

// factsOf are facts that package facts read from a machine's answer.
func factsOf(t *testing.T, name string) facts.Facts {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("facts", "testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var f facts.Facts
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFactsValue(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"ubuntu2404-hgx", "debian12", "microvm"} {
		f := factsOf(t, name)
		o, diags := factsObject(ctx, f)
		if diags.HasError() {
			t.Fatal(diags)
		}
		back, ok := factsFrom(o)
		if !ok {
			t.Fatalf("%s: %s is not read back", name, o)
		}
		if diff := cmp.Diff(f, back); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	o, _ := factsObject(ctx, facts.Facts{})
	if _, ok := factsFrom(o); !ok {
		t.Error("facts of which nothing is known are not read back")
	}
}

// TestFactsDescribed: every fact is an attribute with a description, of the type
// that it has.
func TestFactsDescribed(t *testing.T) {
	var resp datasource.SchemaResponse
	new(hostFacts).Schema(context.Background(), datasource.SchemaRequest{}, &resp)
	if diags := resp.Schema.ValidateImplementation(context.Background()); diags.HasError() {
		t.Fatal(diags)
	}
	described := describedFacts()
	types := reflect.TypeFor[facts.Facts]()
	for i := range types.NumField() {
		name := nameOf(types.Field(i))
		a, ok := resp.Schema.Attributes[name]
		if !ok || !a.IsComputed() || a.GetDescription() == "" {
			t.Errorf("%s: there %v, described as %q", name, ok, described[name])
			continue
		}
		if want := typeOf(types.Field(i).Type); !a.GetType().Equal(attr.Type(want)) {
			t.Errorf("%s is %s, not %s", name, a.GetType(), want)
		}
		delete(described, name)
	}
	if len(described) > 0 {
		t.Errorf("described and not there: %v", described)
	}
	new(knownHost).Schema(context.Background(), datasource.SchemaRequest{}, &resp)
	if diags := resp.Schema.ValidateImplementation(context.Background()); diags.HasError() {
		t.Fatal(diags)
	}
}
