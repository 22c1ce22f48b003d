package stablehlotest

import (
	endian "encoding/binary"
	"math"
)

// Read reads the values from the memory of a device, which is dense, row-major and
// little-endian.
func (a *Tensor) Read(memory []byte) {
	n := Type{a.Type, a.Dims}.Size()
	a.Values, a.Bits = nil, nil
	if isWide(a.Type) {
		a.Bits = make([]uint64, n)
		for i := range a.Bits {
			a.Bits[i] = endian.LittleEndian.Uint64(memory[8*i:])
		}
		return
	}
	a.Values = make([]float64, n)
	for i := range a.Values {
		switch a.Type {
		case "f32":
			a.Values[i] = float64(math.Float32frombits(endian.LittleEndian.Uint32(memory[4*i:])))
		case "bf16":
			a.Values[i] = float64(math.Float32frombits(uint32(endian.LittleEndian.Uint16(memory[2*i:])) << 16))
		case "i32":
			a.Values[i] = float64(int32(endian.LittleEndian.Uint32(memory[4*i:])))
		case "ui32":
			a.Values[i] = float64(endian.LittleEndian.Uint32(memory[4*i:]))
		default: // ui8, i1
			a.Values[i] = float64(memory[i])
		}
	}
}

// Write is the reverse of Read. Values that their type cannot hold exactly are rounded.
func (a Tensor) Write(memory []byte) {
	for i, u := range a.Bits {
		endian.LittleEndian.PutUint64(memory[8*i:], u)
	}
	for i, x := range a.Values {
		switch a.Type {
		case "f32":
			endian.LittleEndian.PutUint32(memory[4*i:], math.Float32bits(float32(x)))
		case "bf16":
			endian.LittleEndian.PutUint16(memory[2*i:], uint16(math.Float32bits(float32(roundTo("bf16", x)))>>16))
		case "i32", "ui32":
			endian.LittleEndian.PutUint32(memory[4*i:], uint32(toBits(x)))
		default:
			memory[i] = byte(toBits(x))
		}
	}
}
