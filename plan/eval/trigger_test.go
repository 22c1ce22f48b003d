package eval

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

func TestTriggerParts(t *testing.T) {
	tests := []struct {
		expr string
		key  bool
		rest int
	}{
		{"a.b", false, 0},
		{"a.b[0]", false, 0},
		{"a.b.c", false, 0},
		{"a.b[each.key]", true, 0},
		{"a.b[each.key].c.d", true, 2},
		{"a.b[count.index + 1].c", true, 1},
	}
	for _, test := range tests {
		expr, diags := hclsyntax.ParseExpression([]byte(test.expr), "x", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		head, key, rest := triggerParts(expr)
		_, resource := triggerSubject(head)
		if !resource || (key != nil) != test.key || len(rest) != test.rest {
			t.Errorf("%s: resource %v, key %v, rest %d", test.expr, resource, key != nil, len(rest))
		}
	}
	for _, text := range []string{"local.a", "data.a.b", "[a.b]", "1"} {
		expr, _ := hclsyntax.ParseExpression([]byte(text), "x", hcl.InitialPos)
		head, _, _ := triggerParts(expr)
		if _, resource := triggerSubject(head); resource {
			t.Errorf("%s passes for a managed resource", text)
		}
	}
}
