package graph

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/model"
)

// Every member of a layer has a description, and no description is of another thing.
func TestMembersHaveMeanings(t *testing.T) {
	for _, member := range model.Members() {
		if meanings[member] == "" {
			t.Errorf("%s has no description", member)
		}
	}
	if len(meanings) != len(model.Members()) {
		t.Errorf("%d descriptions of %d members", len(meanings), len(model.Members()))
	}
}

// A file's model as a value has the members of the file, and null for the others.
func TestValue(t *testing.T) {
	name := filepath.Join(t.TempDir(), "model.json")
	text := `{"layers": [{"name": "a", "type": "dropout", "rate": 0.1}, {"name": "b", "type": "dense", "units": 3, "inputs": ["a"]}], "metrics": ["accuracy"]}`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	v := Value(d)
	want := `{"label_smoothing":<null>,"layers":[` +
		`{"causal":<null>,"epsilon":<null>,"filters":<null>,"groups":<null>,"heads":<null>,"inputs":<null>,"kernel":<null>,"momentum":<null>,` +
		`"name":"a","no_bias":<null>,"pad":<null>,"padding":<null>,"rate":0.1,"stride":<null>,"transpose":<null>,"type":"dropout",` +
		`"units":<null>,"vocabulary":<null>},` +
		`{"causal":<null>,"epsilon":<null>,"filters":<null>,"groups":<null>,"heads":<null>,"inputs":["a"],"kernel":<null>,"momentum":<null>,` +
		`"name":"b","no_bias":<null>,"pad":<null>,"padding":<null>,"rate":<null>,"stride":<null>,"transpose":<null>,"type":"dense",` +
		`"units":3,"vocabulary":<null>}],"loss":<null>,"metrics":["accuracy"]}`
	if diff := cmp.Diff(want, v.String()); diff != "" {
		t.Error(diff)
	}
	if !Value(nil).IsNull() {
		t.Error("no model is a value")
	}
}
