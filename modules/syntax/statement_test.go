package syntax

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatements(t *testing.T) {
	cases := []struct {
		name, src string
		whole     []string
		rest      string
	}{
		{"nothing", "", nil, ""},
		{"lines", "1\n\n 2 \r\n3", []string{"1", "2"}, "3"},
		{"comments", "# a\n1 // b\n/* c */\n2\n", []string{"1 // b", "2"}, ""},
		{"brackets", "[\n1, # (\n{a=(\n2)}]\nx\n", []string{"[\n1, # (\n{a=(\n2)}]", "x"}, ""},
		{"open brackets", "f(\n1,\n", nil, "f(\n1,\n"},
		{"brackets in text", "\"[{\"\n1\n", []string{`"[{"`, "1"}, ""},
		{"interpolation", "\"a${\n1}\"\n", []string{"\"a${\n1}\""}, ""},
		{"heredoc", "<<A\n[\n  A\n1\n", []string{"<<A\n[\n  A", "1"}, ""},
		{"open heredoc", "<<A\nx\n", nil, "<<A\nx\n"},
		{"open text", "\"a\n1\n", []string{`"a`, "1"}, ""},
		{"too many closed", ")]\n1\n", []string{")]", "1"}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			whole, rest := Statements([]byte(c.src))
			var got []string
			for _, s := range whole {
				got = append(got, string(s))
			}
			if d := cmp.Diff(c.whole, got); d != "" || string(rest) != c.rest {
				t.Errorf("%s\nrest %q, want %q", d, rest, c.rest)
			}
		})
	}
}
