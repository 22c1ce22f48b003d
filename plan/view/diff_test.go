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

// TestNothingSecret: where the schema calls something secret, there is nothing to
// show of a null; of a value there is, and of null that an expression hides. What an
// object that comes does not have is nothing to show in any case.
func TestNothingSecret(t *testing.T) {
	files := func(secret cty.Value) cty.Value {
		return cty.MapVal(object{"/a": cty.ObjectVal(object{"content": str("x"), "secret": secret})})
	}
	at := cty.GetAttrPath("files").IndexString("/a").GetAttr("secret")
	hidden := placesOf([]cty.Path{at}).name("files")
	const lines = "{\n      + \"/a\" = {\n          + content = \"x\"\n"
	for name, tt := range map[string]struct {
		secret cty.Value
		hide   secret
		want   string
	}{
		"null, by schema":  {cty.NullVal(cty.String), secret{declared: hidden}, lines + "        }\n    }"},
		"value, by schema": {str("s3cret"), secret{declared: hidden}, lines + "          + secret  = (sensitive value)\n        }\n    }"},
		"null, by plan":    {cty.NullVal(cty.String), secret{named: hidden}, lines + "          + secret  = (sensitive value)\n        }\n    }"},
		"null":             {cty.NullVal(cty.String), secret{}, lines + "        }\n    }"},
	} {
		var d differ
		d.writeWhole(4, add, files(tt.secret), tt.hide)
		if got := d.String(); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}
