package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/runtime/spec"
)

// JSONOf returns a configuration's value as JSON. Names with null are left out.
func JSONOf(v attr.Value) (spec.JSON, error) {
	plain, err := plainOf(v)
	if err != nil {
		return "", err
	}
	return spec.JSONOf(plain)
}

func plainOf(v attr.Value) (any, error) {
	switch v := v.(type) {
	case types.String:
		return v.ValueString(), nil
	case types.Bool:
		return v.ValueBool(), nil
	case types.Number:
		return numberOf(v.ValueBigFloat())
	case types.Dynamic:
		return plainOf(v.UnderlyingValue())
	case types.List:
		return plainList(v.Elements())
	case types.Tuple:
		return plainList(v.Elements())
	case types.Set:
		return plainList(v.Elements())
	case types.Map:
		return plainMap(v.Elements())
	case types.Object:
		return plainMap(v.Attributes())
	}
	return nil, fmt.Errorf("a value of the type %T cannot be given to a program", v)
}

func plainList(elements []attr.Value) (any, error) {
	list := make([]any, len(elements))
	for i, e := range elements {
		if e.IsNull() {
			return nil, fmt.Errorf("element %d is null", i)
		}
		var err error
		if list[i], err = plainOf(e); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func plainMap(elements map[string]attr.Value) (any, error) {
	all := make(map[string]any, len(elements))
	for name, e := range elements {
		if e.IsNull() {
			continue
		}
		v, err := plainOf(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = v
	}
	return all, nil
}

// wholeBits is the size of the largest whole number without an exponent.
const wholeBits = 128

// numberOf returns a number in the notation that programs read: whole numbers
// without a point, others as the shortest decimal of 64 bits.
func numberOf(n *big.Float) (json.Number, error) {
	if n.IsInt() && n.MantExp(nil) <= wholeBits {
		return json.Number(n.Text('f', 0)), nil
	}
	f, _ := n.Float64()
	if math.IsInf(f, 0) || f == 0 {
		return "", errors.New("the number is out of the range of 64 bits")
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), nil
}

// Texts returns a list of texts.
func Texts(list []string) attr.Value {
	if list == nil {
		return types.ListNull(types.StringType)
	}
	elements := make([]attr.Value, len(list))
	for i, text := range list {
		elements[i] = types.StringValue(text)
	}
	return types.ListValueMust(types.StringType, elements)
}

// TextsByName returns texts by name; null for an environment that is not given.
func TextsByName(environment spec.JSON) attr.Value {
	var all map[string]string
	if environment == "" || json.Unmarshal([]byte(environment), &all) != nil {
		return types.MapNull(types.StringType)
	}
	elements := make(map[string]attr.Value, len(all))
	for name, text := range all {
		elements[name] = types.StringValue(text)
	}
	return types.MapValueMust(types.StringType, elements)
}

// Parameters returns the value of parameters; null where none are given.
func Parameters(p *spec.Program) attr.Value {
	if p.Parameters == "" {
		return types.DynamicNull()
	}
	kinds, values := make(map[string]attr.Type), make(map[string]attr.Value)
	for name, v := range p.Values() {
		switch v := v.(type) {
		case string:
			kinds[name], values[name] = types.StringType, types.StringValue(v)
		case bool:
			kinds[name], values[name] = types.BoolType, types.BoolValue(v)
		case json.Number:
			n, _, err := big.ParseFloat(v.String(), 10, 512, big.ToNearestEven) // as the configuration language
			if err != nil {
				continue // JSON has no such number
			}
			kinds[name], values[name] = types.NumberType, types.NumberValue(n)
		}
	}
	return types.DynamicValue(types.ObjectValueMust(kinds, values))
}

// Processes returns the value of processes.
func Processes(n int) attr.Value {
	if n == 0 {
		return types.StringValue(perGPU)
	}
	return types.StringValue(strconv.Itoa(n))
}

// perGPU is one process for each GPU.
const perGPU = "gpu"

// ParseProcesses returns the number of processes; 0 is one for each GPU.
func ParseProcesses(text string) (int, error) {
	if text == perGPU {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("give a number from 1, or %q; it is %q", perGPU, text)
	}
	return n, nil
}
