package address

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseInstance(t *testing.T) {
	cases := map[string]Instance{
		`a.b`:                  {Resource: Resource{Type: "a", Name: "b"}},
		`a.b[0]`:               {Resource{Type: "a", Name: "b"}, IntKey(0)},
		`a.b["x"]`:             {Resource{Type: "a", Name: "b"}, StringKey("x")},
		`a.b["x.y[0]\"\\]"]`:   {Resource{Type: "a", Name: "b"}, StringKey(`x.y[0]"\]`)},
		`a.b["$${x} %%{y} $"]`: {Resource{Type: "a", Name: "b"}, StringKey(`${x} %{y} $`)},
		`a.b["\n\r\t\u00a0"]`:  {Resource{Type: "a", Name: "b"}, StringKey("\n\r\t\u00a0")},
		`a.b["\U000e0001"]`:    {Resource{Type: "a", Name: "b"}, StringKey("\U000e0001")},
		`a.b["é"]`:             {Resource{Type: "a", Name: "b"}, StringKey("é")},
		`data.a.b[12]`:         {Resource{Mode: Data, Type: "a", Name: "b"}, IntKey(12)},
		`module.m.data.a.b`:    {Resource: Resource{Module: "module.m", Mode: Data, Type: "a", Name: "b"}},
		`module.m["k"].module.n[3].a-x.b_1[1]`: {
			Resource{Module: `module.m["k"].module.n[3]`, Type: "a-x", Name: "b_1"}, IntKey(1)},
	}
	for text, want := range cases {
		got, err := ParseInstance(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got != want {
			t.Errorf("%s: got %#v, want %#v", text, got, want)
		}
		if got.String() != text {
			t.Errorf("%s prints as %s", text, got)
		}
	}
}

// TestParseNormalises: a key that was typed in pieces names the instance that
// the language made of the same text.
func TestParseNormalises(t *testing.T) {
	got, err := ParseInstance("a.b[\"e\u0301\"]")
	if err != nil || got.Key != StringKey("\u00e9") {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestParseErrors(t *testing.T) {
	cases := map[string]string{
		"":                          "it is empty",
		"a":                         "a name after a is missing",
		"a.":                        "a name is missing",
		"a..b":                      "a name is missing",
		".a":                        "a name is missing",
		"data.a":                    "a name after a is missing",
		"data":                      "data source's type is missing",
		"module":                    "a module's name is missing",
		"module.m.a":                "a name after a is missing",
		"module.m[0]x":              "should follow",
		"a.b.c":                     "does not belong",
		"a.b[0][1]":                 "does not belong",
		"a.b[]":                     "no key",
		"a.b[-1]":                   "no key",
		"a.b[+1]":                   "no key",
		"a.b[1.5]":                  "no key",
		"a.b[x]":                    "protect them from the shell",
		"a.b[0":                     "no closing bracket",
		`a.b["x]`:                   "no closing quote",
		`a.b["x"`:                   "not followed by ]",
		`a.b["${x}"]`:               "cannot contain a template",
		`a.b["\q"]`:                 "no escape sequence",
		`a.b["\u12"]`:               "4 hexadecimal digits",
		`a.b["\`:                    "ends in a backslash",
		"1.b":                       "is no name",
		"a b.c":                     "is no name",
		"a[0].b":                    "should follow",
		"module.m":                  "is a module",
		"a.b[-0]":                   "no key",
		"a.\xff":                    "not UTF-8",
		"a.b[\"\x89\"]":             "not UTF-8",
		strings.Repeat("x", 100_00): "a name after",
	}
	for text, want := range cases {
		got, err := ParseInstance(text)
		if err == nil {
			t.Errorf("%q: no error but %v", text, got)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %q does not say %q", text, err, want)
		}
	}
	if _, err := ParseResource("a.b[0]"); err == nil || !strings.Contains(err.Error(), "leave [0] out") {
		t.Errorf("ParseResource of an instance: %v", err)
	}
	if _, err := ParseModule("module.m.a.b"); err == nil || !strings.Contains(err.Error(), "is a resource") {
		t.Errorf("ParseModule of a resource: %v", err)
	}
}

func TestParseModule(t *testing.T) {
	for _, text := range []string{"", "module.a", `module.a["x"].module.b[0]`} {
		if m, err := ParseModule(text); err != nil || string(m) != text {
			t.Errorf("%q: got %q, %v", text, m, err)
		}
	}
	want := []Step{{Name: "a", Key: StringKey("x.y")}, {Name: "b"}}
	if diff := cmp.Diff(want, Module(`module.a["x.y"].module.b`).Steps(), cmp.AllowUnexported(Key{})); diff != "" {
		t.Error(diff)
	}
}

func TestTargetContains(t *testing.T) {
	instances := []string{
		"a.b", "a.b[0]", `a.b["x"]`, "a.c", "data.a.b", "module.m.a.b",
		"module.m[0].a.b", "module.m[0].a.b[1]", "module.m[1].module.n.a.b", "module.mm.a.b",
	}
	cases := map[string]string{
		"a.b":              `a.b a.b[0] a.b["x"]`,
		"a.b[0]":           `a.b[0]`,
		"data.a.b":         `data.a.b`,
		"module.m":         `module.m.a.b module.m[0].a.b module.m[0].a.b[1] module.m[1].module.n.a.b`,
		"module.m[0]":      `module.m[0].a.b module.m[0].a.b[1]`,
		"module.m.a.b":     `module.m.a.b module.m[0].a.b module.m[0].a.b[1]`,
		"module.m.a.b[1]":  `module.m[0].a.b[1]`,
		"module.m[1]":      `module.m[1].module.n.a.b`,
		"module.m.a.other": ``,
	}
	for text, want := range cases {
		target, err := ParseTarget(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if target.String() != text {
			t.Errorf("%s prints as %s", text, target)
		}
		var got []string
		for _, s := range instances {
			i, err := ParseInstance(s)
			if err != nil {
				t.Fatal(err)
			}
			if target.Contains(i) {
				got = append(got, s)
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}

// FuzzParse checks that whatever parses prints as something that parses to
// the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a.b", `module.a["$${x}"].data.a.b[0]`, `a.b["\U000e0001"]`, "a.b[", `a.b["`, "A.A[\"\x89\"]", "a.b[\"e\u0301\"]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		one, err := ParseTarget(text)
		if err != nil {
			return
		}
		two, err := ParseTarget(one.String())
		if err != nil {
			t.Fatalf("%q prints as %q, which does not parse: %v", text, one, err)
		}
		if one.String() != two.String() || one.Key != two.Key {
			t.Fatalf("%q: %q, then %q", text, one, two)
		}
	})
}
