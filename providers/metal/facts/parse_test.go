package facts

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// captured are answers of machines: what the script printed there.
func captured(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) < 4 {
		t.Fatalf("only %d captured answers: %v", len(names), err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".txt")] = b
	}
	return all
}

func TestParse(t *testing.T) {
	for name, out := range captured(t) {
		f, _, err := parse(out)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := json.MarshalIndent(f, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
		golden := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestHostile lets every section of a true answer be rubbish, missing, twice,
// or cut off. It may be refused or be listed as unread, and must end.
func TestHostile(t *testing.T) {
	rubbish := []string{"", "\x00\xff\xfe", strings.Repeat("9", 4000), "a=b=c\tx\t\t\t\t\t\t\t\t\t", "#end", "$(reboot)\u202e`id`", "-1 -1 -1 -1", "{", "}}}}", "\xc3\x28=\x1b[2J"}
	for name, out := range captured(t) {
		for i, section := range everySection() {
			for _, r := range rubbish {
				f, _, err := parse(replaced(out, section, " "+r+"\n "+r))
				if err == nil {
					fit(t, f)
				}
			}
			if _, _, err := parse(replaced(out, section, "")); err == nil && bytes.Contains(out, []byte("#"+section+"\n")) && (section == "machine" || section == "memory") {
				t.Errorf("%s: an empty %s is taken", name, section)
			}
			at := bytes.Index(out, []byte("#"+section+"\n"))
			if _, _, err := parse(out[:at]); err == nil {
				t.Errorf("%s: an answer that ends before section %d, %s, is taken", name, i, section)
			}
			twice := append(bytes.Clone(out), []byte("#"+section+"\n x\n")...)
			if _, _, err := parse(twice); err == nil {
				t.Errorf("%s: section %s twice is taken", name, section)
			}
		}
		if f, _, err := parse(append([]byte("Welcome!\n#os\n ID=x\n"), out...)); err != nil || f.OS.ID == "x" {
			t.Errorf("%s: a login script that greets: %v, %v", name, f.OS, err)
		}
	}
	for _, out := range []string{"", "sh: not found", "#stoke-facts 2\n"} {
		if _, _, err := parse([]byte(out)); err == nil {
			t.Errorf("%q is taken", out)
		}
	}
}

// replaced has another content in a section.
func replaced(out []byte, section, content string) []byte {
	head := []byte("#" + section + "\n")
	at := bytes.Index(out, head)
	if at < 0 {
		return out
	}
	rest := out[at+len(head):]
	end := len(rest)
	if i := bytes.Index(rest, []byte("\n#")); i >= 0 {
		end = i + 1
	} else if rest[0] == '#' {
		end = 0
	}
	return append(append(append(bytes.Clone(out[:at]), head...), content+"\n"...), rest[end:]...)
}

// fit fails when facts hold anything that cannot be stored or shown.
func fit(t testing.TB, f Facts) {
	t.Helper()
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	texts(v, func(s string) {
		if len(s) > longestText+40 || s != clean(s) && !strings.HasSuffix(s, "…") {
			t.Fatalf("a text that is not clean: %q", s)
		}
	})
}

func texts(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, e := range v {
			texts(e, visit)
		}
	case map[string]any:
		for k, e := range v {
			visit(k)
			texts(e, visit)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, out := range captured(f) {
		f.Add(out)
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		if facts, _, err := parse(out); err == nil {
			fit(t, facts)
		}
	})
}
