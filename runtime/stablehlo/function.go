package stablehlo

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Type is an element type, as StableHLO writes it.
type Type string

// The element types that programs use.
const (
	F32  Type = "f32"
	BF16 Type = "bf16"
	I32  Type = "i32"
	I64  Type = "i64"
	U8   Type = "ui8"
	U64  Type = "ui64"
	Bool Type = "i1"
)

// Size returns the bytes of an element.
func (t Type) Size() int {
	switch t {
	case U8, Bool:
		return 1
	case BF16:
		return 2
	case I64, U64:
		return 8
	}
	return 4
}

// Precision is the arithmetic of products of float32 values.
type Precision string

const (
	// Default lets XLA round the factors to TF32, which has 10 bits of mantissa.
	Default Precision = "DEFAULT"
	// Highest keeps all 23 bits.
	Highest Precision = "HIGHEST"
)

// Value is a tensor that a function computes or takes.
type Value struct {
	Type     Type
	Dims     []int
	function *Function
	name     string
}

// Function is a function under construction. One goroutine may use it.
type Function struct {
	precision Precision
	arguments []*Value
	donated   map[int]int // argument: the result that takes its memory
	lines     []string
	constants map[string]*Value
}

// New returns an empty function whose products have a precision.
func New(p Precision) *Function {
	return &Function{precision: p, donated: make(map[int]int), constants: make(map[string]*Value)}
}

// Argument adds an argument.
func (f *Function) Argument(t Type, dims ...int) *Value {
	v := &Value{Type: t, Dims: slices.Clone(dims), function: f, name: fmt.Sprintf("%%a%d", len(f.arguments))}
	f.arguments = append(f.arguments, v)
	return v
}

// Donate gives the memory of an argument to a result, both by their places. The two have
// one type. The caller of the program cannot use the argument's buffer afterwards.
func (f *Function) Donate(argument, result int) { f.donated[argument] = result }

// Constant returns a scalar.
func (f *Function) Constant(t Type, x float64) *Value {
	if t == F32 || t == BF16 {
		text := strconv.FormatFloat(x, 'e', 9, 64)
		if math.IsInf(x, -1) {
			text = map[Type]string{F32: "0xFF800000", BF16: "0xFF80"}[t]
		}
		return f.constant(t, text)
	}
	return f.constant(t, strconv.FormatInt(int64(x), 10))
}

// Unsigned returns a scalar of 64 bits.
func (f *Function) Unsigned(x uint64) *Value { return f.constant(U64, strconv.FormatUint(x, 10)) }

func (f *Function) constant(t Type, text string) *Value {
	key := string(t) + text
	if f.constants[key] == nil {
		f.constants[key] = f.add(t, nil, "stablehlo.constant dense<%s> : tensor<%s>", text, t)
	}
	return f.constants[key]
}

// Fill returns a tensor of one number.
func (f *Function) Fill(t Type, x float64, dims ...int) *Value {
	return f.Constant(t, x).Broadcast(dims, nil)
}

// Iota returns a tensor whose elements are their indices along a dimension.
func (f *Function) Iota(t Type, along int, dims ...int) *Value {
	return f.add(t, dims, "stablehlo.iota dim = %d : %s", along, tensor(t, dims))
}

// add adds an operation, given as the format of the text behind "%n = ".
func (f *Function) add(t Type, dims []int, format string, a ...any) *Value {
	v := &Value{Type: t, Dims: slices.Clone(dims), function: f, name: fmt.Sprintf("%%%d", len(f.lines))}
	f.lines = append(f.lines, v.name+" = "+fmt.Sprintf(format, a...))
	return v
}

// Text returns the program: a module whose function main takes the arguments and returns
// the results.
func (f *Function) Text(name string, results ...*Value) string {
	return "module @" + name + " {\n" + f.text("public @main", true, results) + "}\n"
}

func (f *Function) text(title string, donate bool, results []*Value) string {
	var b strings.Builder
	var arguments, names []string
	for i, a := range f.arguments {
		text := a.name + ": " + typeOf(a)
		if to, ok := f.donated[i]; ok && donate {
			text += fmt.Sprintf(" {tf.aliasing_output = %d : i32}", to)
		}
		arguments = append(arguments, text)
	}
	for _, r := range results {
		names = append(names, r.name)
	}
	fmt.Fprintf(&b, "  func.func %s(%s) -> (%s) {\n", title, strings.Join(arguments, ", "), types(results))
	for _, line := range f.lines {
		b.WriteString("    " + line + "\n")
	}
	fmt.Fprintf(&b, "    return %s : %s\n  }\n", strings.Join(names, ", "), types(results))
	return b.String()
}

// tensor returns the type of a tensor, for example tensor<2x3xf32>.
func tensor(t Type, dims []int) string {
	var b strings.Builder
	b.WriteString("tensor<")
	for _, d := range dims {
		fmt.Fprintf(&b, "%dx", d)
	}
	return b.String() + string(t) + ">"
}

func typeOf(v *Value) string { return tensor(v.Type, v.Dims) }

func types(values []*Value) string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = typeOf(v)
	}
	return strings.Join(all, ", ")
}

// signature returns "(operands) -> result".
func signature(t Type, dims []int, operands ...*Value) string {
	return "(" + types(operands) + ") -> " + tensor(t, dims)
}

// list returns "1, 2, 3".
func list(v []int) string {
	all := make([]string, len(v))
	for i, x := range v {
		all[i] = strconv.Itoa(x)
	}
	return strings.Join(all, ", ")
}

// Size returns the number of elements.
func (v *Value) Size() int { return product(v.Dims) }

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// Donated returns the arguments that a program of this package donates, ascending.
func Donated(text string) []int {
	_, signature, _ := strings.Cut(text, "func.func public @main(")
	signature, _, _ = strings.Cut(signature, "\n")
	var all []int
	for i, argument := range strings.Split(signature, "%a")[1:] {
		if strings.Contains(argument, "tf.aliasing_output") {
			all = append(all, i)
		}
	}
	return all
}
