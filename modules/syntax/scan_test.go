package syntax

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// lexed is how hcl's lexer opens and leaves brackets, strings and templates,
// a byte for each.
func lexed(src []byte, d dialect) string {
	lex := hclsyntax.LexConfig
	if d == template {
		lex = hclsyntax.LexTemplate
	}
	tokens, _ := lex(src, "x", hcl.InitialPos)
	var b strings.Builder
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace:
			b.WriteByte('{')
		case hclsyntax.TokenOBrack:
			b.WriteByte('[')
		case hclsyntax.TokenOParen:
			b.WriteByte('(')
		case hclsyntax.TokenOQuote:
			b.WriteByte('"')
		case hclsyntax.TokenOHeredoc:
			b.WriteByte('<')
		case hclsyntax.TokenTemplateInterp:
			b.WriteByte('$')
		case hclsyntax.TokenTemplateControl:
			b.WriteByte('%')
		case hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
			b.WriteByte('.')
		case hclsyntax.TokenTemplateSeqEnd:
			b.WriteByte('.')
		}
	}
	return b.String()
}

// scanned is the same as our scanner sees it.
func scanned(src []byte, d dialect) string {
	s := newScanner(src, d)
	var b strings.Builder
	for s.pos < len(src) {
		modes, at := len(s.modes), s.pos
		c := src[at]
		wasCode := s.modes[modes-1].kind == inCode
		s.step()
		switch {
		case len(s.modes) < modes, wasCode && c == '~' && s.pos == at+2:
			b.WriteByte('.')
		case len(s.modes) > modes:
			b.WriteByte(s.top().open)
		case wasCode && strings.IndexByte("([{", c) >= 0:
			b.WriteByte(c)
		}
	}
	return b.String()
}

var texts = []string{
	"a = 1\n",
	"a {\n  b = [1, {c = \"x\"}]\n}\n",
	"a = \"x ${b[\"c\"]} $${d} $$${e} %%{f} %{if true}y%{endif} $\"\n",
	"a = \"\\\" \\\\\" # \" [\nb = 2 // (\n/* { \n ( */ c = 1\n",
	"a = <<EOT\n[ ( { \"\n${b}EOT\n  EOT\nb = 1\n",
	"a = <<-EOT\n  EOTX\n  $EOT\n  ${<<X\nin\nX\n}\n  EOT\nb = (1)\n",
	"a = << EOT\n[\n", "a = <<-\n[", "a = <<€\n[\n", "a = <<é\n[\né\n(",
	"a = \"${ {b = 1} }\"\n", "a = \"${ {b = 1 }\"\n", "a = \"${ b ~}\"\n", "a = { b ~}\n", "}}} \"${ { } }\" (",
	"a = \"x\ny\"\n(", "a = \"\\\n(", "a = 1e-5 - b-c\n", "\xef\xbb\xbfa = [1]\n",
	"a = \"$${\" (\nb = \"$$\" (\nc = \"%\" [", "a = \"${~ x ~}${~\"y\"~}\"", "a = <<E\n$\nE\n%\nE\n", "a = <<E\n\\\nE\n(",
	"a = <<E\r\nx\r\nE\r\n(", "a=\"${\"${\"x\"}\"}\"", "x=\"%{~ if a ~} %{else}%{endif}\"", "$$${a", "a ${b} %{if c}\"%{endif}",
}

func comparable(src []byte) bool {
	return utf8.Valid(src) && bytes.IndexByte(src, 0) < 0 && !bytes.Contains(src, []byte("/*")) &&
		bytes.IndexByte(bytes.ReplaceAll(src, []byte("\r\n"), nil), '\r') < 0
}

func TestScanFollowsLexer(t *testing.T) {
	for _, text := range texts {
		for _, d := range []dialect{config, template} {
			src := withoutBOM([]byte(text))
			if diff := cmp.Diff(lexed(src, d), scanned(src, d)); diff != "" {
				t.Errorf("%q (%d):\n%s", text, d, diff)
			}
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, src []byte, bare bool) {
		d := config
		if bare {
			d = template
		}
		src = withoutBOM(src)
		if !comparable(src) || bytes.HasPrefix(src, []byte("\xef\xbb\xbf")) {
			scan(src, d)
			return
		}
		if diff := cmp.Diff(lexed(src, d), scanned(src, d)); diff != "" {
			t.Fatalf("%q (%d):\n%s", src, d, diff)
		}
	})
}
