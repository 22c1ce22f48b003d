package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// What takes the place of much and is not known yet hides it: nobody reads two
// hundred lines of what a machine was for one line that changes.
func TestOutgoing(t *testing.T) {
	many, few := object{}, object{}
	for i := range 80 {
		many[fmt.Sprintf("a%d", i)] = num(int64(i))
		if i < 3 {
			few[fmt.Sprintf("a%d", i)] = num(int64(i))
		}
	}
	for _, tt := range []struct {
		was  cty.Value
		want string
	}{
		{cty.ObjectVal(many), "{\n        # (80 attributes hidden)\n    } -> (known after apply)"},
		{cty.MapVal(many), "{\n        # (80 elements hidden)\n    } -> (known after apply)"},
		{cty.ObjectVal(few), "{\n      - a0 = 0\n      - a1 = 1\n      - a2 = 2\n    } -> (known after apply)"},
		{str(strings.Repeat("x", 100)), `"` + strings.Repeat("x", 100) + `" -> (known after apply)`},
	} {
		var d differ
		d.change(4, pair{before: tt.was, after: cty.UnknownVal(tt.was.Type())})
		if got := d.String(); got != tt.want {
			t.Errorf("got\n%s\nwant\n%s", got, tt.want)
		}
	}
}
