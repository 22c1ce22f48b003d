package view

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/modules/lang"
)

type jsonFunctions struct {
	FormatVersion string                   `json:"format_version"`
	Signatures    map[string]*jsonFunction `json:"function_signatures,omitempty"`
}

type jsonFunction struct {
	Description string           `json:"description,omitempty"`
	ReturnType  json.RawMessage  `json:"return_type"`
	Parameters  []*jsonParameter `json:"parameters,omitempty"`
	Variadic    *jsonParameter   `json:"variadic_parameter,omitempty"`
}

type jsonParameter struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	IsNullable  bool            `json:"is_nullable,omitempty"`
	Type        json.RawMessage `json:"type"`
}

// FunctionsJSON is the signatures of functions by name, in Terraform's
// published format.
func FunctionsJSON(table map[string]function.Function) ([]byte, error) {
	out := jsonFunctions{FormatVersion: "1.0", Signatures: make(map[string]*jsonFunction, len(table))}
	for name, f := range table {
		signature, err := functionJSON(f)
		if err != nil {
			return nil, fmt.Errorf("encode signature of %s: %w", name, err)
		}
		if signature.Description == "" {
			signature.Description = lang.Describe(name)
		}
		if published := publishedReturn(name); published != cty.NilType {
			if signature.ReturnType, err = ctyjson.MarshalType(published); err != nil {
				return nil, err
			}
		}
		out.Signatures[name] = signature
	}
	return json.Marshal(out)
}

// publishedReturn returns the return type of functions for which Terraform 1.11
// publishes another type than their parameters imply.
func publishedReturn(name string) cty.Type {
	switch strings.TrimPrefix(name, "core::") {
	case "format", "formatlist":
		return cty.DynamicPseudoType
	case "templatestring":
		return cty.String
	}
	return cty.NilType
}

// functionsJSON is the signatures of a provider's functions; nil if it has none.
func functionsJSON(table map[string]function.Function) (map[string]*jsonFunction, error) {
	if len(table) == 0 {
		return nil, nil
	}
	out := make(map[string]*jsonFunction, len(table))
	for name, f := range table {
		var err error
		if out[name], err = functionJSON(f); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

func functionJSON(f function.Function) (*jsonFunction, error) {
	j := &jsonFunction{Description: f.Description()}
	var types []cty.Type
	for _, p := range f.Params() {
		parameter, err := parameterJSON(p)
		if err != nil {
			return nil, err
		}
		j.Parameters = append(j.Parameters, parameter)
		types = append(types, p.Type)
	}
	if p := f.VarParam(); p != nil {
		var err error
		if j.Variadic, err = parameterJSON(*p); err != nil {
			return nil, err
		}
		types = append(types, p.Type)
	}
	returned, err := f.ReturnType(types)
	if err != nil {
		returned = cty.DynamicPseudoType // it depends on the arguments
	}
	j.ReturnType, err = ctyjson.MarshalType(returned)
	return j, err
}

func parameterJSON(p function.Parameter) (*jsonParameter, error) {
	what := p.Type
	if what.IsCapsuleType() {
		what = cty.DynamicPseudoType // an expression that the function evaluates itself
	}
	ty, err := ctyjson.MarshalType(what)
	return &jsonParameter{Name: p.Name, Description: p.Description, IsNullable: p.AllowNull, Type: ty}, err
}
