package train

import (
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Numbers are Terraform's: decimal text of any precision. Going through the
// shortest decimal keeps 0.1 the same value whether it comes from a file, a
// configuration or us; a float64 taken as it is would differ in its 20th digit
// and show as a change.

// decimal is the number that f's shortest decimal notation stands for; null
// where f is not finite.
func decimal(f float64) types.Number {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return types.NumberNull()
	}
	// 512 bits is the precision of numbers in the configuration language.
	n, _, err := big.ParseFloat(strconv.FormatFloat(f, 'g', -1, 64), 10, 512, big.ToNearestEven)
	if err != nil {
		return types.NumberNull()
	}
	return types.NumberValue(n)
}

func wholeNumber(n int64) types.Number {
	return types.NumberValue(new(big.Float).SetPrec(512).SetInt64(n))
}

// integer reads a whole number within [low, high].
func integer(n types.Number, low, high int64) (int64, error) {
	v := n.ValueBigFloat()
	if !v.IsInt() {
		return 0, fmt.Errorf("it must be a whole number; it is %s", v.Text('g', 12))
	}
	i, exact := v.Int64()
	if exact != big.Exact || i < low || i > high {
		return 0, fmt.Errorf("it must be between %d and %d; it is %s", low, high, v.Text('g', 12))
	}
	return i, nil
}

// float reads a number; one that float64 cannot hold becomes infinite, which
// every check refuses.
func float(n types.Number) float64 {
	f, _ := n.ValueBigFloat().Float64()
	return f
}

// thousands writes a count for people: 5,120.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
