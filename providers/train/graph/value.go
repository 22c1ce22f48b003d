package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/runtime/model"
)

// precision is the precision of numbers in the configuration language, in bits.
const precision = 512

// maxFile is the size of a model_file in bytes, as model.Describe has it.
const maxFile = 1 << 20

// Problem returns the path and the text of an error about a model in a configuration. The
// path leads to the layer where the error is about one. The text has no line of the JSON.
func Problem(err error) (path.Path, error) {
	at := path.Root(Name)
	if layer := new(model.LayerError); errors.As(err, &layer) {
		return at.AtName("layers").AtListIndex(layer.Index), &model.LayerError{Index: layer.Index, Layer: layer.Layer, Err: layer.Err}
	}
	if line := new(model.LineError); errors.As(err, &line) {
		err = line.Err
	}
	return at, err
}

// Read returns the model in a file.
func Read(file string) (*model.Description, error) {
	is, err := os.Stat(file) // before it is opened: a pipe would wait for its writer
	if err == nil && !is.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	return model.Describe(text)
}

// Value returns a model as a value of model_graph; null for nil.
func Value(d *model.Description) types.Object {
	ty := Attribute().GetType().(types.ObjectType)
	if d == nil {
		return types.ObjectNull(ty.AttrTypes)
	}
	text, err := json.Marshal(d)
	var given map[string]any
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		err = decoder.Decode(&given)
	}
	if err != nil {
		panic(err) // a model that was read always has a text
	}
	return valueOf(ty, given).(types.Object)
}

// valueOf returns a value of JSON as one of the type. Members that it lacks are null.
func valueOf(ty attr.Type, v any) attr.Value {
	switch ty := ty.(type) {
	case types.ObjectType:
		given, _ := v.(map[string]any)
		members := make(map[string]attr.Value)
		for name, member := range ty.AttrTypes {
			members[name] = valueOf(member, given[name])
		}
		return types.ObjectValueMust(ty.AttrTypes, members)
	case types.ListType:
		given, ok := v.([]any)
		if !ok {
			return types.ListNull(ty.ElemType)
		}
		elements := make([]attr.Value, len(given))
		for i, e := range given {
			elements[i] = valueOf(ty.ElemType, e)
		}
		return types.ListValueMust(ty.ElemType, elements)
	}
	switch v := v.(type) {
	case string:
		return types.StringValue(v)
	case bool:
		return types.BoolValue(v)
	case json.Number: // decimal text: 0.1 is one tenth, as in a configuration
		n, _, err := big.ParseFloat(v.String(), 10, precision, big.ToNearestEven)
		if err != nil {
			return types.NumberNull()
		}
		return types.NumberValue(n)
	}
	switch ty {
	case types.BoolType:
		return types.BoolNull()
	case types.NumberType:
		return types.NumberNull()
	}
	return types.StringNull()
}
