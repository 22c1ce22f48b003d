package syntax

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format rewrites native configuration in the canonical style: white space,
// quoted labels, and in place of what only old versions of the language
// needed ("${var.a}", type = "string") what is written today. What cannot be
// parsed is returned as it is, with the reasons.
func Format(name string, src []byte) (formatted []byte, diags hcl.Diagnostics) {
	defer survive(name, &diags)
	formatted = src
	if _, diags := Parse(name, src); diags.HasErrors() {
		return src, diags
	}
	file, diags := hclwrite.ParseConfig(withoutBOM(src), name, hcl.InitialPos)
	if diags.HasErrors() {
		return src, readable(diags)
	}
	modernise(file.Body(), nil)
	result := file.Bytes()
	if _, diags := Parse(name, result); diags.HasErrors() {
		return src, hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Formatting would break the file",
			Detail:  "The formatted file cannot be parsed, so the file was left as it is. Please report this with the file.",
			Subject: startOf(name).Ptr(),
		}}
	}
	return result, nil
}

// modernise rewrites a body and those below it. within names the blocks
// around it, from the outside.
func modernise(body *hclwrite.Body, within []string) {
	for name, attr := range body.Attributes() {
		tokens := attr.Expr().BuildTokens(nil)
		if name == "type" && len(within) == 1 && within[0] == "variable" {
			body.SetAttributeRaw(name, modernType(tokens))
		} else {
			body.SetAttributeRaw(name, modernValue(tokens))
		}
	}
	for _, block := range body.Blocks() {
		block.SetLabels(block.Labels()) // quoted, without comments between them
		modernise(block.Body(), append(slices.Clip(within), block.Type()))
	}
}

// modernType writes the types that Terraform 0.11 knew as it is done today.
func modernType(tokens hclwrite.Tokens) hclwrite.Tokens {
	switch len(tokens) {
	case 1:
		if tokens[0].Type != hclsyntax.TokenIdent {
			return tokens
		}
		switch name := string(tokens[0].Bytes); name {
		case "list", "map", "set":
			return call(name, "any")
		}
	case 3:
		if tokens[0].Type != hclsyntax.TokenOQuote || tokens[1].Type != hclsyntax.TokenQuotedLit || tokens[2].Type != hclsyntax.TokenCQuote {
			return tokens
		}
		switch name := string(tokens[1].Bytes); name {
		case "string":
			return hclwrite.Tokens{token(hclsyntax.TokenIdent, name)}
		case "list", "map":
			return call(name, "string")
		}
	}
	return tokens
}

func token(ty hclsyntax.TokenType, text string) *hclwrite.Token {
	return &hclwrite.Token{Type: ty, Bytes: []byte(text)}
}

func call(name, argument string) hclwrite.Tokens {
	return hclwrite.Tokens{
		token(hclsyntax.TokenIdent, name), token(hclsyntax.TokenOParen, "("),
		token(hclsyntax.TokenIdent, argument), token(hclsyntax.TokenCParen, ")"),
	}
}

// modernValue takes an expression out of a text that holds nothing else:
// "${var.a}" is var.a.
func modernValue(tokens hclwrite.Tokens) hclwrite.Tokens {
	n := len(tokens)
	if n < 5 || tokens[0].Type != hclsyntax.TokenOQuote || tokens[1].Type != hclsyntax.TokenTemplateInterp ||
		tokens[n-2].Type != hclsyntax.TokenTemplateSeqEnd || tokens[n-1].Type != hclsyntax.TokenCQuote {
		return tokens
	}
	inner := tokens[2 : n-2]
	if !single(inner) {
		return tokens
	}
	inner = withoutNewlines(inner)
	if len(inner) == 0 || !needsParentheses(inner) {
		return inner
	}
	wrapped := append(hclwrite.Tokens{token(hclsyntax.TokenOParen, "(")}, inner...)
	return append(wrapped, token(hclsyntax.TokenCParen, ")"))
}

// single reports whether the tokens between the first interpolation's start
// and the last one's end are all in one interpolation.
func single(inner hclwrite.Tokens) bool {
	quotes := 0
	for _, t := range inner {
		switch t.Type {
		case hclsyntax.TokenOQuote:
			quotes++
		case hclsyntax.TokenCQuote:
			quotes--
		case hclsyntax.TokenTemplateSeqEnd, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			if quotes == 0 {
				return false
			}
		}
	}
	return true
}

func withoutNewlines(tokens hclwrite.Tokens) hclwrite.Tokens {
	for len(tokens) > 0 && tokens[0].Type == hclsyntax.TokenNewline {
		tokens = tokens[1:]
	}
	for len(tokens) > 0 && tokens[len(tokens)-1].Type == hclsyntax.TokenNewline {
		tokens = tokens[:len(tokens)-1]
	}
	return tokens
}

// needsParentheses reports whether the expression would end at one of its
// newlines. The last token's own newline ends the argument anyway.
func needsParentheses(tokens hclwrite.Tokens) bool {
	last := len(tokens) - 1
	if tokens[0].Type == hclsyntax.TokenOParen && tokens[last].Type == hclsyntax.TokenCParen {
		return false
	}
	for _, t := range tokens[:last] {
		if t.Type == hclsyntax.TokenNewline || endsLine(t) {
			return true
		}
	}
	return false
}

// endsLine reports whether a token is a comment that runs to the line's end.
func endsLine(t *hclwrite.Token) bool {
	return t.Type == hclsyntax.TokenComment && len(t.Bytes) > 0 && t.Bytes[len(t.Bytes)-1] == '\n'
}
