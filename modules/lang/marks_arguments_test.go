package lang

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// unmarking are the functions that are there to look at marks or to take them
// away, and those that evaluate their arguments themselves: an argument that
// they do not come to says nothing.
var unmarking = []string{"nonsensitive", "issensitive", "ephemeralasnull", "try", "can"}

// unneeded are the calls whose results do not depend on a marked argument, in
// Terraform neither: the default of a key that the map has, and nothing to merge.
var unneeded = []string{
	`lookup({ a = 1, b = "x" }, "b", mark(3))`,
	`merge({ a = 1, b = 2 }, { b = 3 }, mark(null))`,
}

// TestMarksOfEveryArgument marks one argument of each call in the table after
// the other: the result is marked too, whether the function needed the argument
// or not, because what it passed over says something about the argument.
func TestMarksOfEveryArgument(t *testing.T) {
	table := NewFunctions(Options{BaseDir: "testdata/files", PlanTime: time.Unix(1.7e9, 0)})
	for _, m := range []Mark{Sensitive, Ephemeral} {
		marking := map[string]function.Function{"mark": function.New(&function.Spec{
			Params: anyValue("value"),
			Type:   sameType,
			Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return args[0].Mark(m), nil },
		})}
		for name, f := range table {
			marking[name] = f
		}
		tried := map[string]bool{}
		texts, _ := cases(t)
		texts = append(texts, `coalesce(null, "", "a", "b")`, `coalesce("a", null)`, `coalesce(1, 2)`)
		for _, text := range texts {
			call, ok := parse(t, text).(*hclsyntax.FunctionCallExpr)
			if !ok || call.ExpandFinal || slices.Contains(unmarking, call.Name) {
				continue
			}
			for i, arg := range call.Args {
				rng := arg.Range()
				placed := text[:rng.Start.Byte] + "mark(" + text[rng.Start.Byte:rng.End.Byte] + ")" + text[rng.End.Byte:]
				v, diags := parse(t, placed).Value(&hcl.EvalContext{Functions: marking})
				if diags.HasErrors() {
					continue
				}
				tried[fmt.Sprintf("%s %d", call.Name, i)] = true
				if HasMark(v, m) == slices.Contains(unneeded, placed) {
					t.Errorf("%s: %#v has the mark: %v", placed, v, HasMark(v, m))
				}
			}
		}
		if len(tried) < 150 {
			t.Errorf("%d arguments of functions tried", len(tried))
		}
	}
}
