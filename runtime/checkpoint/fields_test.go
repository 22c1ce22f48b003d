package checkpoint

import (
	"encoding"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/spec"
)

var update = flag.Bool("update", false, "write the fields of the first version again")

// required lists the fields of a type, and of the types of its fields, that are
// always written: TYPE.FIELD NAME, in their order.
func required(t reflect.Type, seen map[reflect.Type]bool) (all []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	text := reflect.TypeFor[encoding.TextMarshaler]()
	if t.Kind() != reflect.Struct || seen[t] || t.Implements(text) {
		return nil
	}
	seen[t] = true
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		if !f.IsExported() || tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = f.Name
		}
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			all = append(all, t.String()+"."+f.Name+" "+name)
		}
		all = append(all, required(f.Type, seen)...)
	}
	return all
}

// A field that is added later is optional: a file of an earlier version, which
// lacks it, is then the same file, and one of a later version can be read by an
// earlier one. The fields that are always written are those of the first version.
func TestFieldsAddedLaterAreOptional(t *testing.T) {
	seen := make(map[reflect.Type]bool)
	var got []string
	for _, of := range []any{Manifest{}, spec.Spec{}, spec.Event{}, spec.Status{}, spec.Ledger{}} {
		got = append(got, required(reflect.TypeOf(of), seen)...)
	}
	path := filepath.Join("testdata", "fields-first.txt")
	text := strings.Join(got, "\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("fields that are always written (-first version +now). Give a new field omitempty or omitzero, and leave those of the first version:\n%s", diff)
	}
}
