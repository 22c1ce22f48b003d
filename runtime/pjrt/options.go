package pjrt

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"unsafe"
)

// Options are what a client is created with.
type Options struct {
	Preallocate    bool    // take the memory at once, rather than when it is needed
	MemoryFraction float32 // the limit of memory, of all that the device has; 0 is the plugin's default
	VisibleDevices []int64 // indices of the devices that the client may use; nil is all
}

// pass calls a function with the options as the plugin reads them.
func (o Options) pass(use func(first unsafe.Pointer, count uintptr) error) error {
	values := []namedValue{newValue("preallocate", kindBool, 0)}
	if o.Preallocate {
		values[0].value = 1
	}
	if o.MemoryFraction != 0 {
		values = append(values, newValue("memory_fraction", kindFloat, uint64(math.Float32bits(o.MemoryFraction))))
	}
	devices := onHeap(o.VisibleDevices)
	if len(devices) > 0 {
		v := newValue("visible_devices", kindInt64List, uint64(uintptr(first(devices))))
		v.length = uintptr(len(devices))
		values = append(values, v)
	}
	err := use(first(values), uintptr(len(values)))
	runtime.KeepAlive(devices)
	return err
}

func newValue(name string, kind int32, value uint64) namedValue {
	v := namedValue{name: first([]byte(name)), nameLength: uintptr(len(name)), kind: kind, value: value, length: 1}
	v.size = unsafe.Sizeof(v)
	return v
}

// onHeap copies a slice to the heap, as it is not inlined: an address that is
// only a number does not keep a variable from a stack that moves.
//
//go:noinline
func onHeap[T any](s []T) []T { return slices.Clone(s) }

// read copies the value of an attribute.
func (v *namedValue) read() any {
	switch v.kind {
	case kindString:
		return text(uintptr(v.value), v.length)
	case kindInt64:
		return int64(v.value)
	case kindInt64List:
		if v.length == 0 {
			return []int64(nil)
		}
		return slices.Clone(unsafe.Slice((*int64)(pointer(uintptr(v.value))), v.length))
	case kindFloat:
		return math.Float32frombits(uint32(v.value))
	case kindBool:
		return v.value&0xff != 0
	}
	return fmt.Sprintf("value of kind %d", v.kind)
}

// compileOptions returns a CompileOptionsProto for one device, in protobuf's
// wire format: executable_build_options (3) with device_ordinal (1) -1, one
// replica (4) and one partition (5); compile_portable_executable (4), so that
// the executable runs on the device that Execute names; and flags as
// env_option_overrides (7), in the order of their names, so that equal flags
// are equal bytes.
func compileOptions(flags map[string]any) ([]byte, error) {
	minusOne := int64(-1)
	build := appendNumber(nil, 1, uint64(minusOne))
	build = appendNumber(build, 4, 1)
	build = appendNumber(build, 5, 1)
	b := appendMessage(nil, 3, build)
	b = appendNumber(b, 4, 1)
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		var v []byte
		switch x := flags[name].(type) {
		case string:
			v = appendMessage(nil, 1, []byte(x))
		case bool:
			v = appendNumber(nil, 2, 0)
			if x {
				v = appendNumber(nil, 2, 1)
			}
		case int64:
			v = appendNumber(nil, 3, uint64(x))
		case int:
			v = appendNumber(nil, 3, uint64(x))
		case float64:
			v = binary.LittleEndian.AppendUint64([]byte{4<<3 | 1}, math.Float64bits(x))
		default:
			return nil, fmt.Errorf("the flag %s is a %T: flags are texts, booleans, integers and floats", name, x)
		}
		b = appendMessage(b, 7, appendMessage(appendMessage(nil, 1, []byte(name)), 2, v))
	}
	return b, nil
}

func appendNumber(b []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(append(b, byte(field<<3)), v)
}

func appendMessage(b []byte, field int, m []byte) []byte {
	b = binary.AppendUvarint(append(b, byte(field<<3|2)), uint64(len(m)))
	return append(b, m...)
}
