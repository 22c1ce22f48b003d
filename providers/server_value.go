package providers

import (
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// encode packs a value of type ty. Nulls of any type, and no value at all, are
// sent as a null of that type.
func encode(v cty.Value, ty cty.Type) (*tfprotov6.DynamicValue, error) {
	if v == cty.NilVal || v.IsNull() {
		v = cty.NullVal(ty)
	}
	packed, err := msgpack.Marshal(v, ty)
	if err != nil {
		return nil, fmt.Errorf("encode value: %w", err)
	}
	return &tfprotov6.DynamicValue{MsgPack: packed}, nil
}

var errNoValue = errors.New("the answer lacks a value")

// decode unpacks a value of type ty. The errors name the attribute at fault.
func decode(v *tfprotov6.DynamicValue, ty cty.Type) (cty.Value, error) {
	var out cty.Value
	var err error
	switch {
	case v == nil:
		return cty.NilVal, errNoValue
	case len(v.MsgPack) > 0:
		out, err = msgpack.Unmarshal(v.MsgPack, ty)
	case len(v.JSON) > 0:
		out, err = ctyjson.Unmarshal(v.JSON, ty)
	default:
		return cty.NilVal, errNoValue
	}
	if err != nil {
		var at cty.PathError
		if errors.As(err, &at) && len(at.Path) > 0 {
			return cty.NilVal, fmt.Errorf("decode value: at %s: %w", PathString(at.Path), err)
		}
		return cty.NilVal, fmt.Errorf("decode value: %w", err)
	}
	return out, nil
}

// diagnostics converts a server's diagnostics.
func diagnostics(in []*tfprotov6.Diagnostic) Diagnostics {
	if len(in) == 0 {
		return nil
	}
	out := make(Diagnostics, 0, len(in))
	for _, d := range in {
		if d == nil {
			continue
		}
		conv := Diagnostic{Summary: d.Summary, Detail: d.Detail}
		if d.Severity == tfprotov6.DiagnosticSeverityWarning {
			conv.Severity = Warning
		}
		if path, err := pathFromProtocol(d.Attribute); err == nil {
			conv.Path = path
		}
		out = append(out, conv)
	}
	return out
}

// pathFromProtocol converts a path; with an error it is as far as it goes.
func pathFromProtocol(in *tftypes.AttributePath) (cty.Path, error) {
	if in == nil {
		return nil, nil
	}
	var path cty.Path
	for _, step := range in.Steps() {
		switch step := step.(type) {
		case tftypes.AttributeName:
			path = append(path, cty.GetAttrStep{Name: string(step)})
		case tftypes.ElementKeyString:
			path = append(path, cty.IndexStep{Key: cty.StringVal(string(step))})
		case tftypes.ElementKeyInt:
			path = append(path, cty.IndexStep{Key: cty.NumberIntVal(int64(step))})
		case tftypes.ElementKeyValue:
			key, err := keyFromProtocol(tftypes.Value(step))
			if err != nil {
				return path, err
			}
			path = append(path, cty.IndexStep{Key: key})
		default:
			return path, fmt.Errorf("unknown path step %T", step)
		}
	}
	return path, nil
}

// keyFromProtocol converts an element of a set that is its own key.
func keyFromProtocol(v tftypes.Value) (cty.Value, error) {
	ty, err := typeFromProtocol(v.Type())
	if err != nil {
		return cty.NilVal, err
	}
	packed, err := tfprotov6.NewDynamicValue(v.Type(), v)
	if err != nil {
		return cty.NilVal, fmt.Errorf("encode set element: %w", err)
	}
	return decode(&packed, ty)
}
