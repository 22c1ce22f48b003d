package stablehlotest

import "math"

// roundTo rounds a value to the nearest one of a type, ties to even.
func roundTo(element string, x float64) float64 {
	if element == "bf16" {
		return roundBfloat(x)
	}
	return float64(float32(x))
}

// roundBfloat rounds in one step: the way through float32 is rounded to odd, so
// that a tie is a tie of x itself.
func roundBfloat(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	f := float32(x)
	bits := math.Float32bits(f)
	if float64(f) != x && bits&1 == 0 {
		if math.Abs(float64(f)) < math.Abs(x) {
			bits++
		} else {
			bits--
		}
	}
	bits += 0x7FFF + bits>>16&1
	return float64(math.Float32frombits(bits &^ 0xFFFF))
}

// round rounds a result in place. Results share elements only with values of the
// same type, which have been rounded already.
func (v tensor) round() {
	if !isFloat(v.t.Element) {
		return
	}
	for i, x := range v.f {
		v.f[i] = roundTo(v.t.Element, x)
	}
}
