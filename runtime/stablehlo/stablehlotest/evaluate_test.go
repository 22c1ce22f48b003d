package stablehlotest

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// program is a module whose main takes arguments and has a body, which ends with
// "return … : types".
func program(arguments, body string) string {
	results := ""
	if _, after, ok := strings.Cut(body[max(strings.LastIndex(body, "return "), 0):], ":"); ok {
		results = strings.TrimSpace(after)
	}
	return "module @test {\nfunc.func public @main(" + arguments + ") -> (" + results + ") {\n" + body + "\n}\n}\n"
}

// evaluate runs a body without arguments.
func evaluate(t *testing.T, body string) []Tensor {
	t.Helper()
	p, err := Parse(program("", body))
	if err != nil {
		t.Fatalf("%v in\n%s", err, program("", body))
	}
	got, err := p.Run(nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, body)
	}
	return got
}

// equal compares results, exactly or with a small relative difference.
func equal(t *testing.T, got []Tensor, tolerance float64, want ...Tensor) {
	t.Helper()
	options := cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateEmpty()}
	if tolerance > 0 {
		options = append(options, cmpopts.EquateApprox(tolerance, tolerance))
	}
	if diff := cmp.Diff(want, got, options); diff != "" {
		t.Error(diff)
	}
}

func values(element string, dims []int, v ...float64) Tensor {
	return Tensor{Type: element, Dims: dims, Values: v}
}

func bits(element string, dims []int, v ...uint64) Tensor {
	return Tensor{Type: element, Dims: dims, Bits: v}
}

func vector(element string, v ...float64) Tensor { return values(element, []int{len(v)}, v...) }

// negative is a negative integer of 64 bits.
func negative(n int64) uint64 { return uint64(n) }

var (
	inf = math.Inf(1)
	nan = math.NaN()
)
