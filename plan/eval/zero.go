package eval

import "github.com/zclconf/go-cty/cty"

// plainZeros takes the sign from zeros, as Terraform does in the outputs that
// it stores: JSON tells 0 from -0, although they are equal.
func plainZeros(v cty.Value) cty.Value {
	if !numbers(v.Type()) || !signedZero(v) {
		return v
	}
	plain, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if !isSignedZero(v) {
			return v, nil
		}
		return cty.Zero.WithSameMarks(v), nil
	})
	if err != nil {
		return v // it returns no errors of its own
	}
	return plain
}

func signedZero(v cty.Value) bool {
	found := false
	_ = cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) { // it returns no errors of its own
		found = found || isSignedZero(v)
		return !found, nil
	})
	return found
}

func isSignedZero(v cty.Value) bool {
	if v.Type() != cty.Number || !v.IsKnown() || v.IsNull() {
		return false
	}
	v, _ = v.Unmark()
	f := v.AsBigFloat()
	return f.Sign() == 0 && f.Signbit()
}
