package stoke_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// prose is text for people: a comment, a string or a paragraph.
type prose struct {
	text, file string
	line       int
	comment    bool // for readers of the code; users read the others
}

// goProse returns the comments and the strings of all files except tests. The
// strings are messages, help texts and the descriptions in schemas: all with at
// least four words, except scripts and templates.
func goProse(all []*source) []prose {
	var texts []prose
	parts := make(map[ast.Node]bool) // of sums that were read
	for _, s := range all {
		if s.test() {
			continue
		}
		for _, group := range s.tree.Comments {
			texts = append(texts, prose{group.Text(), s.name, s.line(group.Pos()), true})
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			var text string
			var inside bool
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				return n.Tag == nil
			case *ast.BinaryExpr:
				if n.Op == token.ADD && !parts[n] {
					text, inside = joined(n, parts)
				}
			case *ast.BasicLit:
				if !parts[n] {
					text, inside = literal(n)
				}
			}
			if inside && readable(text) {
				texts = append(texts, prose{text, s.name, s.line(n.Pos()), false})
			}
			return true
		})
	}
	return texts
}

// joined returns the text of strings that a program adds, with %s for each
// operand that is not a literal: one text, wherever its parts are split. It adds
// the sums and the literals in it to parts.
func joined(e ast.Expr, parts map[ast.Node]bool) (string, bool) {
	sum, ok := e.(*ast.BinaryExpr)
	if !ok || sum.Op != token.ADD {
		text, ok := literal(e)
		if ok {
			parts[e] = true
		}
		return text, ok
	}
	parts[e] = true
	left, isText := joined(sum.X, parts)
	right, isTextToo := joined(sum.Y, parts)
	switch {
	case isText && isTextToo:
		return left + right, true
	case isText:
		return left + "%s", true
	case isTextToo:
		return "%s" + right, true
	}
	return "", false
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// readable reports whether a string is prose.
func readable(text string) bool {
	return strings.Count(text, " ") >= 3 && !strings.Contains(text, "\n\t") && !strings.Contains(text, "#!/bin")
}

// pages returns the paragraphs of the documentation. The pages of docs/reference
// are written from the descriptions in schemas, which goProse has.
func pages(t *testing.T) []prose {
	t.Helper()
	var texts []prose
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*/README.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("no pages in %s (%v)", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, paragraphs(filepath.ToSlash(name), string(text))...)
		}
	}
	return texts
}

// item begins a list's item or a heading, which are texts of their own.
var item = regexp.MustCompile(`^(?:#+|[-*]|\d+\.) `)

// paragraphs splits a page into paragraphs, items, headings and cells of tables.
// Blocks of code are left out.
func paragraphs(name, page string) []prose {
	var texts []prose
	var open []string // the lines of the paragraph so far
	began, code := 0, false
	end := func() {
		if len(open) > 0 {
			texts = append(texts, prose{strings.Join(open, " "), name, began, false})
		}
		open = nil
	}
	for i, line := range strings.Split(page, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			end()
			code = !code
		case code:
		case line == "":
			end()
		case strings.HasPrefix(line, "|"):
			end()
			for cell := range strings.SplitSeq(line, "|") {
				texts = append(texts, prose{cell, name, i + 1, false})
			}
		default:
			marker := item.FindString(line)
			heading := strings.HasPrefix(marker, "#")
			if marker != "" {
				end()
				line = strings.TrimPrefix(line, marker)
			}
			if len(open) == 0 {
				began = i + 1
			}
			open = append(open, line)
			if heading {
				end()
			}
		}
	}
	end()
	return texts
}
