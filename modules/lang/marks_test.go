package lang

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

func TestUnmark(t *testing.T) {
	v := cty.ObjectVal(map[string]cty.Value{
		"a": cty.StringVal("x").Mark(Sensitive),
		"b": cty.ListVal([]cty.Value{cty.StringVal("y"), cty.StringVal("z").Mark(Sensitive).Mark(Ephemeral)}),
		"c": cty.StringVal("w").Mark("other"),
	})
	plain, marked, others := Unmark(v)
	if plain.ContainsMarked() || len(marked.Sensitive) != 2 || len(marked.Ephemeral) != 1 || len(others) != 1 {
		t.Fatalf("%#v %v %v", plain, marked, others)
	}
	back := marked.Apply(plain).MarkWithPaths(others)
	if !back.RawEquals(v) {
		t.Errorf("marks put back: %#v", back)
	}
	if !HasMark(v, Ephemeral) || HasMark(RemoveMark(v, Ephemeral), Ephemeral) || !HasMark(RemoveMark(v, Ephemeral), Sensitive) {
		t.Error("Without removes other marks, or none")
	}
	if _, m, _ := Unmark(cty.True); !m.IsZero() {
		t.Error("marks of a plain value")
	}
}

// value evaluates with x sensitive, e ephemeral and u unknown.
func value(t *testing.T, text string, o Options) (cty.Value, hcl.Diagnostics) {
	t.Helper()
	o.BaseDir = "testdata/files"
	return parse(t, text).Value(&hcl.EvalContext{Functions: NewFunctions(o), Variables: map[string]cty.Value{
		"x": cty.StringVal("hello.txt").Mark(Sensitive),
		"e": cty.StringVal("e").Mark(Ephemeral),
		"u": cty.UnknownVal(cty.String),
		"d": cty.DynamicVal,
		"l": cty.ListVal([]cty.Value{cty.StringVal("a").Mark(Sensitive), cty.StringVal("b")}),
	}})
}

func TestMarksAndUnknowns(t *testing.T) {
	cases := []struct {
		text string
		want cty.Value // NilVal: anything unknown
		mark []any
	}{
		{"upper(x)", cty.StringVal("HELLO.TXT"), []any{Sensitive}},
		{"length(x)", cty.NumberIntVal(9), []any{Sensitive}},
		{"length(l)", cty.NumberIntVal(2), nil},
		{"file(x)", cty.StringVal("hello\n"), []any{Sensitive}},
		{"fileexists(x)", cty.True, []any{Sensitive}},
		{`coalesce("", x)`, cty.StringVal("hello.txt"), []any{Sensitive}},
		{`lookup({ a = x }, "a")`, cty.StringVal("hello.txt"), []any{Sensitive}},
		{`lookup({ a = 1 }, x, 2)`, cty.NumberIntVal(2), []any{Sensitive}},
		{"nonsensitive(x)", cty.StringVal("hello.txt"), nil},
		{"issensitive(x)", cty.True, nil},
		{"issensitive(l)", cty.False, nil},
		{"sensitive(e)", cty.StringVal("e"), []any{Sensitive, Ephemeral}},
		{"ephemeralasnull(e)", cty.NullVal(cty.String), nil},
		{"ephemeralasnull({ a = e, b = 1 }).b", cty.NumberIntVal(1), nil},
		{`templatefile("value.tmpl", { x = x })`, cty.StringVal("hello.txt"), []any{Sensitive}},
		{`templatestring("a $${x}", { x = "b" })`, cty.StringVal("a b"), nil},
		{`templatestring("$${x}", { x = 1 })`, cty.StringVal("1"), nil},
		{"length(u)", cty.NilVal, nil},
		{"length([u])", cty.NumberIntVal(1), nil},
		{"length(d)", cty.NilVal, nil},
		{"file(u)", cty.NilVal, nil},
		{`templatefile(u, {})`, cty.NilVal, nil},
		{`templatefile("value.tmpl", d)`, cty.NilVal, nil},
		{`templatefile("value.tmpl", { x = u })`, cty.NilVal, nil},
		{`templatestring("a $${x}", { x = u })`, cty.NilVal, nil},
		{"alltrue([u == u, false])", cty.False, nil},
		{"sum([1, length(u)])", cty.NilVal, nil},
		{"lookup({ a = 1 }, u, 2)", cty.NilVal, nil},
		{"coalesce(u, 1)", cty.NilVal, nil},
		{"one(d)", cty.NilVal, nil},
		{"transpose({ a = [u] })", cty.NilVal, nil},
		{"matchkeys([u], [u], [u])", cty.NilVal, nil},
		{"index([u], \"a\")", cty.NilVal, nil},
		{"jsondecode(u)", cty.NilVal, nil},
		{"timestamp()", cty.NilVal, nil},
		{"uuid()", cty.NilVal, nil},
		{`bcrypt("x")`, cty.NilVal, nil},
		{"plantimestamp()", cty.NilVal, nil},
	}
	for _, c := range cases {
		got, diags := value(t, c.text, Options{Planning: true})
		if diags.HasErrors() {
			t.Errorf("%s: %v", c.text, diags)
			continue
		}
		plain, marks := got.Unmark()
		if c.want == cty.NilVal {
			if plain.IsWhollyKnown() {
				t.Errorf("%s: %#v is known", c.text, got)
			}
		} else if !plain.RawEquals(c.want) {
			t.Errorf("%s: %#v, want %#v", c.text, plain, c.want)
		}
		if len(marks) != len(c.mark) || !marks.Equal(cty.NewValueMarks(c.mark...)) && len(c.mark) > 0 {
			t.Errorf("%s: marks %#v, want %v", c.text, marks, c.mark)
		}
	}
}

// A message never shows what is sensitive.
func TestSecretsInMessages(t *testing.T) {
	for _, text := range []string{
		"file(\"nope-${x}\")", "filemd5(\"nope-${x}\")", "fileset(\"~nope-${x}\", \"*\")", "lookup({ a = 1 }, x)", "lookup(tomap({ a = 1 }), x)",
		"templatefile(\"nope-${x}\", {})", "base64decode(x)", "jsondecode(x)", "rsadecrypt(x, x)", "cidrhost(x, 1)", "timecmp(x, x)", "uuidv5(x, x)",
	} {
		_, diags := value(t, text, Options{})
		if !diags.HasErrors() {
			t.Errorf("%s: no error", text)
			continue
		}
		if detail := diags[0].Detail; strings.Contains(detail, "hello") {
			t.Errorf("%s: %s", text, detail)
		}
	}
}

func TestTimes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 3600))
	if v, _ := value(t, "plantimestamp()", Options{PlanTime: at}); !v.RawEquals(cty.StringVal("2026-01-02T02:04:05Z")) {
		t.Errorf("%#v", v)
	}
	if v, diags := value(t, "type([1, x])", Options{Console: true}); diags.HasErrors() || !v.HasMark(TypeName) {
		t.Errorf("%#v %v", v, diags)
	}
	if _, diags := value(t, "type(1)", Options{}); !diags.HasErrors() {
		t.Error("type outside of the console")
	}
}

func TestHostileFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int64) {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	write("huge", maxFileText+1)
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat("[", 200_000)
	if err := os.WriteFile(filepath.Join(dir, "deep.tmpl"), []byte("${"+deep), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "a[*]{b}"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a[*]{b}", "c"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".", filepath.Join(dir, "a[*]{b}", "loop")); err != nil {
		t.Fatal(err)
	}
	table := Functions(dir)
	ctx := &hcl.EvalContext{Functions: table, Variables: map[string]cty.Value{"deep": cty.StringVal(deep)}}
	for text, want := range map[string]string{
		`file("huge")`:                     "more than 64 MiB",
		`file("fifo")`:                     "no regular file",
		`filesha256("fifo")`:               "no regular file",
		`fileexists("fifo")`:               "no regular file",
		`file("/dev/zero")`:                "no regular file",
		`file("huge/x")`:                   "not a directory",
		`templatefile("deep.tmpl", {})`:    "1000 brackets",
		`jsondecode(deep)`:                 "1000 levels",
		`yamldecode(deep)`:                 "1000 levels",
		`templatestring("$${${deep}", {})`: "1000 brackets",
	} {
		_, diags := parse(t, text).Value(ctx)
		if !diags.HasErrors() || !strings.Contains(diags[0].Detail, want) {
			t.Errorf("%s: %v, want %q", text, diags, want)
		}
	}
	if v, diags := parse(t, `length(filesha256("huge"))`).Value(ctx); diags.HasErrors() || !v.RawEquals(cty.NumberIntVal(64)) {
		t.Errorf("hash of a large file: %v", diags)
	}
	if v, diags := parse(t, `fileset("a[*]{b}", "*")`).Value(ctx); diags.HasErrors() || v.LengthInt() != 1 {
		t.Errorf("fileset in a folder with pattern characters: %#v %v", v, diags)
	}
}

func BenchmarkNewFunctions(b *testing.B) {
	for b.Loop() {
		NewFunctions(Options{})
	}
}
