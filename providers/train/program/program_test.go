package program

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/runtime/code"
	"github.com/stokehq/stoke/runtime/spec"
)

// Numbers have the notation that int() and float() of Python read.
func TestNumbers(t *testing.T) {
	for given, want := range map[string]string{
		"0.1": "0.1", "3": "3", "3.0": "3", "-7": "-7", "0": "0", "1e-7": "1e-07", "9007199254740993": "9007199254740993", "1e20": "100000000000000000000",
		"1e300": "1e+300", "0.333333333333333333333333": "0.3333333333333333",
	} {
		n := Parameters(&spec.Program{Parameters: spec.JSON(`{"n":` + given + `}`)})
		got, err := JSONOf(n)
		if err != nil || string(got) != `{"n":`+want+`}` {
			t.Errorf("%s is %s, %v; want %s", given, got, err, want)
		}
	}
	for _, given := range []string{"1e999", "1e-999"} {
		if got, err := JSONOf(Parameters(&spec.Program{Parameters: spec.JSON(`{"n":` + given + `}`)})); err == nil {
			t.Errorf("%s is %s", given, got)
		}
	}
}

// What a specification has comes back as the value of a configuration.
func TestValuesComeBack(t *testing.T) {
	p := spec.Program{Command: `["a","b"]`, Environment: `{"A":"1"}`, Parameters: `{"fast":true,"name":"x","rate":0.5}`}
	for want, v := range map[spec.JSON]attr.Value{p.Command: Texts(p.Arguments()), p.Environment: TextsByName(p.Environment), p.Parameters: Parameters(&p)} {
		if got, err := JSONOf(v); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	none := new(spec.Program)
	for _, v := range []attr.Value{Texts(none.Arguments()), TextsByName(none.Environment), Parameters(none)} {
		if !v.IsNull() {
			t.Errorf("%v of no program", v)
		}
	}
	if v := Parameters(&spec.Program{Parameters: "{}"}); v.IsNull() {
		t.Error("an empty object of parameters is none")
	}
	if got, err := JSONOf(types.MapValueMust(types.StringType, map[string]attr.Value{"a": types.StringNull()})); err != nil || got != "{}" {
		t.Errorf("a null is %s, %v", got, err)
	}
}

func snapshotOf(files ...code.File) *code.Snapshot { return &code.Snapshot{Files: files} }

// file has a sum that differs only behind what a list keeps, unless text does.
func file(name, text string) code.File {
	return code.File{Name: name, Size: 1, Sum: text + strings.Repeat("0", 64-len(text))}
}

func TestListsNameWhatHasChanged(t *testing.T) {
	before := snapshotOf(file("a", "1"), file("b", "1"), code.File{Name: "l", Link: "a"})
	many := func(n int, text string) *code.Snapshot {
		s := new(code.Snapshot)
		for i := range n {
			s.Files = append(s.Files, file(fmt.Sprintf("%06d", i), text))
		}
		return s
	}
	long := func(text string) *code.Snapshot {
		s := new(code.Snapshot)
		for i := range 1000 {
			s.Files = append(s.Files, file(strings.Repeat("x", 400)+fmt.Sprint(i), text))
		}
		return s
	}
	executable := file("a", "1")
	executable.Executable = true
	for name, tt := range map[string]struct {
		before, now *code.Snapshot
		want        string
	}{
		"edited":         {before, snapshotOf(file("a", "2"), file("b", "1"), code.File{Name: "l", Link: "a"}), "~ a"},
		"executable":     {before, snapshotOf(executable, file("b", "1"), code.File{Name: "l", Link: "a"}), "~ a"},
		"another target": {before, snapshotOf(file("a", "1"), file("b", "1"), code.File{Name: "l", Link: "b"}), "~ l"},
		"moved":          {before, snapshotOf(file("a", "1"), file("c", "1"), code.File{Name: "l", Link: "a"}), "+ c, - b"},
		"all that fits":  {many(maxFiles, "1"), many(maxFiles, "2"), "~ 000000, ~ 000001, ~ 000002, ~ 000003, ~ 000004 and 1995 more"},
		"too many":       {many(maxFiles+1, "1"), many(maxFiles+5, "1"), "2005 files instead of 2001"},
		"as too many":    {many(maxFiles+1, "1"), many(maxFiles+1, "2"), "some of 2001 files"},
		"long names":     {long("1"), long("2"), "some of 1000 files"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(ListOf(tt.before)) // as the state keeps it
			if err != nil || len(text) > maxBytes+200 {
				t.Fatalf("%d bytes, %v", len(text), err)
			}
			var kept List
			if err := json.Unmarshal(text, &kept); err != nil {
				t.Fatal(err)
			}
			if got := kept.Changes(tt.before.Hash(), tt.now); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if got := kept.Changes("other", tt.now); got != "" {
				t.Errorf("of other code it says %q", got)
			}
		})
	}
	if got := (List{}).Changes("", before); got != "" {
		t.Errorf("without a list it says %q", got)
	}
}
