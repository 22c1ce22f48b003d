package syntax

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
)

// Parse parses a file of blocks and arguments; a name that ends in .json
// makes it JSON. With errors the body holds what could be understood.
func Parse(name string, src []byte) (body hcl.Body, diags hcl.Diagnostics) {
	defer survive(name, &diags)
	if body == nil {
		body = hcl.EmptyBody()
	}
	if diags := checkText(name, src); diags.HasErrors() {
		return body, diags
	}
	if strings.HasSuffix(name, ".json") {
		return parseJSON(name, src)
	}
	out := scan(withoutBOM(src), config)
	if out.deep {
		return body, tooDeep(name, src, out)
	}
	native, diags := parseNative(name, src, out)
	return native, readable(diags)
}

// ParseExpression parses one native expression.
func ParseExpression(name string, src []byte, start hcl.Pos) (expr hclsyntax.Expression, diags hcl.Diagnostics) {
	defer survive(name, &diags)
	if diags := check(name, src, expression); diags.HasErrors() {
		return nil, diags
	}
	expr, diags = hclsyntax.ParseExpression(src, name, start)
	return expr, readable(diags)
}

// ParseTemplate parses text with interpolations.
func ParseTemplate(name string, src []byte) (expr hclsyntax.Expression, diags hcl.Diagnostics) {
	defer survive(name, &diags)
	if diags := check(name, src, template); diags.HasErrors() {
		return nil, diags
	}
	expr, diags = hclsyntax.ParseTemplate(src, name, hcl.InitialPos)
	return expr, readable(diags)
}

// check applies the bounds to a single text. A short one cannot exceed them.
func check(name string, src []byte, d dialect) hcl.Diagnostics {
	if diags := checkText(name, src); diags.HasErrors() || len(src) <= maxNesting {
		return diags
	}
	if out := scan(withoutBOM(src), d); out.deep {
		return tooDeep(name, src, out)
	}
	return nil
}

// parseNative parses a file in pieces, as far as the outline allows it.
func parseNative(name string, src []byte, out outline) (*hclsyntax.Body, hcl.Diagnostics) {
	if out.broken || len(out.cuts) < 2 || len(withoutBOM(src)) != len(src) {
		return parsePiece(name, src, hcl.InitialPos)
	}
	type piece struct {
		src   []byte
		start hcl.Pos
		body  *hclsyntax.Body
		diags hcl.Diagnostics
	}
	pieces := make([]piece, 0, len(out.cuts)+1)
	from := blockStart{0, 1}
	for _, to := range append(out.cuts, blockStart{len(src), 0}) {
		start := hcl.Pos{Line: from.line, Column: 1, Byte: from.offset}
		pieces = append(pieces, piece{src: src[from.offset:to.offset], start: start})
		from = to
	}
	var wg sync.WaitGroup
	todo := make(chan *piece)
	for range min(runtime.GOMAXPROCS(0), len(pieces)) {
		wg.Go(func() {
			for p := range todo {
				func() {
					defer survive(name, &p.diags)
					p.body, p.diags = parsePiece(name, p.src, p.start)
				}()
			}
		})
	}
	for i := range pieces {
		todo <- &pieces[i]
	}
	close(todo)
	wg.Wait()

	whole := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}
	var diags hcl.Diagnostics
	for _, p := range pieces {
		diags = append(diags, p.diags...)
		if p.body == nil {
			continue
		}
		for name, attr := range p.body.Attributes {
			whole.Attributes[name] = attr
		}
		whole.Blocks = append(whole.Blocks, p.body.Blocks...)
		whole.EndRange = p.body.EndRange
	}
	whole.SrcRange = hcl.RangeBetween(hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos}, whole.EndRange)
	return whole, diags
}

func parsePiece(name string, src []byte, start hcl.Pos) (*hclsyntax.Body, hcl.Diagnostics) {
	file, diags := hclsyntax.ParseConfig(src, name, start)
	return file.Body.(*hclsyntax.Body), diags
}

func parseJSON(name string, src []byte) (hcl.Body, hcl.Diagnostics) {
	if diags := checkJSON(name, src); diags.HasErrors() {
		return hcl.EmptyBody(), diags
	}
	file, diags := json.Parse(withoutBOM(src), name)
	if file == nil {
		return hcl.EmptyBody(), readable(diags)
	}
	return file.Body, readable(diags)
}

// survive turns a panic of a parser into a diagnostic: the text comes from
// anywhere, and the parsers are not ours.
func survive(name string, diags *hcl.Diagnostics) {
	if r := recover(); r != nil {
		*diags = append(*diags, &hcl.Diagnostic{
			Severity: hcl.DiagError,
			Summary:  "Parser failure",
			Detail:   fmt.Sprintf("The parser failed on %s (%v). Please report this with the file.", name, r),
			Subject:  startOf(name).Ptr(),
		})
	}
}

func startOf(name string) hcl.Range {
	return hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos}
}

func withoutBOM(src []byte) []byte {
	return bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
}
