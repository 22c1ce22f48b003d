package syntax

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// formatted lists the files whose canonical form, as terraform fmt writes it,
// is beside them.
func formatted(t *testing.T) []string {
	t.Helper()
	wanted, err := filepath.Glob("testdata/format/*.want")
	if err != nil || len(wanted) == 0 {
		t.Fatal("no test files", err)
	}
	for i, name := range wanted {
		wanted[i] = strings.TrimSuffix(name, ".want")
	}
	return wanted
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	src, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestFormat(t *testing.T) {
	for _, name := range formatted(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			got, diags := Format(name, read(t, name))
			if d := cmp.Diff(string(read(t, name+".want")), string(got)); d != "" || diags.HasErrors() {
				t.Error(d, diags)
			}
		})
	}
}

// TestFormatKeeps has texts that must stay as they are, or nearly so.
func TestFormatKeeps(t *testing.T) {
	cases := []struct{ name, src, want string }{
		{"nothing", "", ""},
		{"a comment in an interpolation", "a = \"${\n  # why\n  x\n}\"\n", "a = ( # why\nx)\n"},
		{"a comment between operands", "a = \"${x # why\n + y}\"\n", "a = (x # why\n+ y)\n"},
	}
	for _, c := range cases {
		got, diags := Format("a.tf", []byte(c.src))
		if string(got) != c.want || diags.HasErrors() {
			t.Errorf("%s: %q, %v", c.name, got, diags)
		}
	}
	for _, src := range []string{"a = \n", "a = 1 b = 2\n", "{", "a = \"x\n", "\x00", "\xff", "a = " + strings.Repeat("[", 10000)} {
		got, diags := Format("a.tf", []byte(src))
		if string(got) != src || !diags.HasErrors() {
			t.Errorf("%.20q: changed to %.20q, %v", src, got, diags)
		}
	}
}

// FuzzFormat makes sure that what was formatted can be parsed, and that what
// cannot be parsed is not touched.
func FuzzFormat(f *testing.F) {
	names, _ := filepath.Glob("testdata/format/*.tf")
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 1<<16 {
			return
		}
		got, diags := Format("a.tf", src)
		if diags.HasErrors() {
			if !bytes.Equal(got, src) {
				t.Error("touched what has errors")
			}
			if diags[0].Summary == "Formatting would break the file" || diags[0].Summary == "Parser failure" {
				t.Error(diags)
			}
		}
	})
}
