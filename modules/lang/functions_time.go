package lang

import (
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

var timestampSpec = function.Spec{
	Impl: func([]cty.Value, cty.Type) (cty.Value, error) {
		return cty.StringVal(time.Now().UTC().Format(time.RFC3339)), nil
	},
}

// plantimestamp returns the same time wherever it is called.
func plantimestamp(at time.Time) function.Function {
	return function.New(&function.Spec{
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func([]cty.Value, cty.Type) (cty.Value, error) {
			if at.IsZero() {
				return cty.UnknownVal(cty.String), nil
			}
			return cty.StringVal(at.UTC().Format(time.RFC3339)), nil
		},
	})
}

var timecmpFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "timestamp_a", Type: cty.String},
		{Name: "timestamp_b", Type: cty.String},
	},
	Type:         function.StaticReturnType(cty.Number),
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		var times [2]time.Time
		for i, arg := range args {
			t, err := time.Parse(time.RFC3339, arg.AsString())
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(i, "it is not a time in the form of RFC 3339, such as "+
					"2026-01-02T15:04:05Z")
			}
			times[i] = t
		}
		return cty.NumberIntVal(int64(times[0].Compare(times[1]))), nil
	},
})
