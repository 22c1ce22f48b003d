package dataset

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of tf.train.Example, as example.proto and feature.proto of
// TensorFlow number them.
const (
	exampleFeatures = 1
	featuresEntry   = 1
	entryKey        = 1
	entryValue      = 2
	listValue       = 1
)

// featureKind is the kind of a feature's list; the value is the number of its
// field.
type featureKind int

const (
	noFeature featureKind = iota
	bytesFeature
	floatFeature
	intFeature
)

func (k featureKind) String() string {
	return [...]string{"nothing", "bytes", "floats", "integers"}[k]
}

// feature is the values of one feature of a tf.train.Example.
type feature struct {
	kind   featureKind
	text   []byte
	floats []float32
	ints   []int64
}

func (f *feature) len() int {
	return [...]int{0, len(f.text), len(f.floats), len(f.ints)}[f.kind]
}

func (f *feature) value(i int) float64 {
	switch f.kind {
	case bytesFeature:
		return float64(f.text[i])
	case floatFeature:
		return float64(f.floats[i])
	}
	return float64(f.ints[i])
}

// check returns an error for a value that f32 cannot hold.
func (f *feature) check(name string) error {
	for i := range f.len() {
		v := f.value(i)
		if math.IsNaN(v) || math.IsInf(v, 0) || f.kind == intFeature && float64(float32(v)) != v {
			return fmt.Errorf("feature %q, value %d: %v is not a number of 32 bits", name, i, v)
		}
	}
	return nil
}

// parseExample reads the features with these names.
func parseExample(text []byte, into map[string]*feature) error {
	for _, f := range into {
		f.kind = noFeature
	}
	err := eachFeature(text, func(name, value []byte) error {
		f := into[string(name)]
		if f == nil {
			return nil
		}
		if err := f.parse(value); err != nil {
			return fmt.Errorf("feature %q: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(into)) {
		if into[name].kind == noFeature {
			return fmt.Errorf("it has no values of a feature %q: it has %s", name, featureNames(text))
		}
	}
	return nil
}

// maxFeatures is how many names of features an error lists.
const maxFeatures = 16

// featureNames lists the names of an example's features.
func featureNames(text []byte) string {
	seen := make(map[string]bool)
	err := eachFeature(text, func(name, _ []byte) error {
		if len(seen) < maxFeatures {
			seen[strconv.Quote(clip(string(name)))] = true
		}
		return nil
	})
	if err != nil || len(seen) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
}

// eachFeature calls f for each feature of a tf.train.Example.
func eachFeature(text []byte, f func(name, value []byte) error) error {
	return eachMessage(text, exampleFeatures, func(features []byte) error {
		return eachMessage(features, featuresEntry, func(entry []byte) error {
			var name, value []byte
			err := eachField(entry, func(number protowire.Number, kind protowire.Type, b []byte) error {
				switch {
				case number == entryKey && kind == protowire.BytesType:
					name = b
				case number == entryValue && kind == protowire.BytesType:
					value = b
				}
				return nil
			})
			if err != nil {
				return err
			}
			return f(name, value)
		})
	})
}

var errNotExample = errors.New("it is not a tf.train.Example")

// eachField calls f for each field of a message. b is the content of a field of
// bytes, and otherwise the field as it was written.
func eachField(message []byte, f func(number protowire.Number, kind protowire.Type, b []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errNotExample
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return errNotExample
		}
		value := message[:n]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		message = message[n:]
		if err := f(number, kind, value); err != nil {
			return err
		}
	}
	return nil
}

// eachMessage calls f for each embedded message with that number.
func eachMessage(message []byte, want protowire.Number, f func([]byte) error) error {
	return eachField(message, func(number protowire.Number, kind protowire.Type, b []byte) error {
		if number != want || kind != protowire.BytesType {
			return nil
		}
		return f(b)
	})
}

// parse reads a message of type Feature: the last of its lists counts.
func (f *feature) parse(message []byte) error {
	f.kind, f.text, f.floats, f.ints = noFeature, nil, f.floats[:0], f.ints[:0]
	return eachField(message, func(number protowire.Number, kind protowire.Type, list []byte) error {
		if number < 1 || featureKind(number) > intFeature || kind != protowire.BytesType {
			return nil
		}
		f.kind = featureKind(number)
		values := 0
		return eachField(list, func(number protowire.Number, kind protowire.Type, b []byte) error {
			if number != listValue {
				return nil
			}
			if f.kind != bytesFeature {
				return f.appendNumbers(kind, b)
			}
			if values++; values > 1 {
				return errors.New("it has several values of bytes: want one")
			}
			f.text = b
			return nil
		})
	})
}

// appendNumbers reads one number, or a packed list of some.
func (f *feature) appendNumbers(kind protowire.Type, b []byte) error {
	one := map[featureKind]protowire.Type{floatFeature: protowire.Fixed32Type, intFeature: protowire.VarintType}[f.kind]
	if kind != one && kind != protowire.BytesType {
		return errNotExample
	}
	for len(b) > 0 {
		var n int
		if f.kind == floatFeature {
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			f.floats = append(f.floats, math.Float32frombits(v))
		} else {
			var v uint64
			v, n = protowire.ConsumeVarint(b)
			f.ints = append(f.ints, int64(v))
		}
		if n < 0 {
			return errNotExample
		}
		b = b[n:]
	}
	return nil
}
