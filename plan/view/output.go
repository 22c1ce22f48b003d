package view

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/plan/state"
)

// Outputs prints the root module's outputs, one to a line, without the values
// of sensitive ones.
func (p *Printer) Outputs(outputs map[string]state.Output) {
	for _, name := range outputNames(outputs) {
		o := outputs[name]
		text := "<sensitive>"
		if !o.Sensitive {
			text = Expression(o.Value)
		}
		p.print(name, " = ", text, "\n")
	}
}

// OutputValue prints one value as an expression, sensitive or not: somebody
// has asked for it by name.
func (p *Printer) OutputValue(v cty.Value) { p.print(Expression(v), "\n") }

func outputNames(outputs map[string]state.Output) []string {
	names := make([]string, 0, len(outputs))
	for name := range outputs {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// jsonOutput is one output in Terraform's JSON.
type jsonOutput struct {
	Sensitive bool            `json:"sensitive"`
	Type      json.RawMessage `json:"type,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
}

func outputJSON(v cty.Value, sensitive bool) (jsonOutput, error) {
	o := jsonOutput{Sensitive: sensitive}
	if v == cty.NilVal || !v.IsWhollyKnown() {
		return o, nil
	}
	var err error
	if o.Type, err = ctyjson.MarshalType(v.Type()); err != nil {
		return o, err
	}
	o.Value, err = ctyjson.Marshal(v, v.Type())
	return o, err
}

// OutputsJSON is all outputs, sensitive ones in the clear, as
// {name: {sensitive, type, value}}.
func OutputsJSON(outputs map[string]state.Output) ([]byte, error) {
	all := make(map[string]jsonOutput, len(outputs))
	for name, o := range outputs {
		j, err := outputJSON(o.Value, o.Sensitive)
		if err != nil {
			return nil, fmt.Errorf("encode output %s: %w", name, err)
		}
		all[name] = j
	}
	return json.MarshalIndent(all, "", "  ")
}

// OutputJSON is one value as JSON on one line.
func OutputJSON(v cty.Value) ([]byte, error) { return ctyjson.Marshal(v, v.Type()) }

// Raw is a value as bare text, for scripts; only strings, numbers and booleans
// have one.
func Raw(v cty.Value) (string, error) {
	switch {
	case v.IsNull():
		return "", fmt.Errorf("its value is null")
	case v.Type() == cty.String:
		return v.AsString(), nil
	case v.Type().IsPrimitiveType():
		return scalar(v), nil
	}
	return "", fmt.Errorf("it is %s", article(v.Type().FriendlyName()))
}

func article(noun string) string {
	if strings.ContainsRune("aeio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
