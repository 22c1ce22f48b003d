package model

import (
	"fmt"
	"strings"
)

// DType is the element type of an Input.
type DType uint8

const (
	U8 DType = iota
	I32
	I64
	F32
)

var dtypeNames = [...]string{U8: "u8", I32: "i32", I64: "i64", F32: "f32"}

// Size is the number of bytes of one element, 0 for an unknown type.
func (t DType) Size() int {
	switch t {
	case U8:
		return 1
	case I32, F32:
		return 4
	case I64:
		return 8
	}
	return 0
}

// String is the type's name, e.g. "u8".
func (t DType) String() string {
	if int(t) < len(dtypeNames) {
		return dtypeNames[t]
	}
	return fmt.Sprintf("dtype(%d)", uint8(t))
}

// MarshalText writes the type's name.
func (t DType) MarshalText() ([]byte, error) {
	if int(t) >= len(dtypeNames) {
		return nil, fmt.Errorf("unknown element type %d", uint8(t))
	}
	return []byte(dtypeNames[t]), nil
}

// UnmarshalText reads a name that MarshalText wrote.
func (t *DType) UnmarshalText(text []byte) error {
	for i, name := range dtypeNames {
		if name == string(text) {
			*t = DType(i)
			return nil
		}
	}
	return fmt.Errorf("unknown element type %q: want one of %s", text, strings.Join(dtypeNames[:], ", "))
}
