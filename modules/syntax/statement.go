package syntax

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Statements splits what is typed into expressions, each of them on a line of
// its own or on as many as its brackets and heredocs stay open for. rest is
// the beginning of one that has not ended yet. Empty lines and comments
// between expressions are left out.
func Statements(src []byte) (whole [][]byte, rest []byte) {
	tokens, _ := hclsyntax.LexExpression(src, "", hcl.InitialPos) // mistakes are found by parsing
	var open []hclsyntax.TokenType
	start, content := 0, false
	end := func(at int) {
		if content {
			whole = append(whole, bytes.TrimSpace(src[start:at]))
		}
		start, content, open = at, false, open[:0]
	}
	for _, token := range tokens {
		switch token.Type {
		case hclsyntax.TokenOParen, hclsyntax.TokenOBrack, hclsyntax.TokenOBrace, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			open = append(open, token.Type)
		case hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenCBrace, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			open = open[:max(len(open)-1, 0)]
		case hclsyntax.TokenQuotedNewline: // the quotation cannot be closed any more
			end(token.Range.End.Byte)
			continue
		case hclsyntax.TokenNewline:
			if len(open) == 0 {
				end(token.Range.End.Byte)
			}
			continue
		case hclsyntax.TokenComment:
			if len(open) == 0 && bytes.HasSuffix(token.Bytes, []byte("\n")) {
				end(token.Range.End.Byte)
			}
			continue
		case hclsyntax.TokenEOF:
			continue
		}
		content = true
	}
	if content {
		rest = src[start:]
	}
	return whole, rest
}
