package run_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan"
)

// TestUnknownMembersLiveOn gives a stored object a member that stoke does not
// know, as newer versions of Terraform do, and changes the object in every way
// that leaves it there. Only an object that takes its place is without it.
func TestUnknownMembersLiveOn(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	config := func(value, broken string) {
		w.must(w.config("main.tf", thing("a", "value = \""+value+"\"\n broken = \""+broken+"\"")))
	}
	config("1", "")
	w.applied(plan.Normal)
	editInstance(t, w.state, func(instance map[string]any) {
		instance["identity_schema_version"] = 3
		instance["identity"] = map[string]any{"serial": "x7"}
	})
	kept := func(when string) {
		t.Helper()
		editInstance(t, w.state, func(instance map[string]any) {
			identity, _ := instance["identity"].(map[string]any)
			if identity["serial"] != "x7" || instance["identity_schema_version"] != 3.0 {
				t.Errorf("%s: the stored instance is %v", when, instance)
			}
		})
	}
	drift := func(value string) {
		for _, attrs := range s.things {
			attrs["tags"] = cty.MapVal(map[string]cty.Value{"by hand": cty.StringVal(value)})
		}
	}

	drift("1")
	w.applied(plan.RefreshOnly)
	kept("refresh")
	config("2", "")
	w.applied(plan.Normal)
	kept("update")
	config("3", "error")
	if _, _, diags := w.apply(plan.Normal); !diags.HasErrors() {
		t.Fatal("the update does not fail")
	}
	kept("failed update")
	s.hook = func(what, _ string) error {
		if what == "delete" {
			return errors.New("it is nailed down")
		}
		return nil
	}
	if _, _, diags := w.apply(plan.Destroy); !diags.HasErrors() {
		t.Fatal("the deletion does not fail")
	}
	s.hook = nil
	kept("failed deletion")

	config("3", "")
	w.replace = []string{"shelf_thing.a"}
	w.applied(plan.Normal)
	editInstance(t, w.state, func(instance map[string]any) {
		if instance["identity"] != nil {
			t.Errorf("the new object has the identity of the old one: %v", instance)
		}
	})
}

// editInstance changes the first instance in a state.
func editInstance(t *testing.T, path string, edit func(instance map[string]any)) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var stored map[string]any
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	resource := stored["resources"].([]any)[0].(map[string]any)
	edit(resource["instances"].([]any)[0].(map[string]any))
	if text, err = json.Marshal(stored); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
