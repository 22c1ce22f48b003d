package backend

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Values are arguments by name as somebody gave them, converted to the
// argument's type. What was not given is not there.
type Values map[string]cty.Value

// Config is what a Kind is opened with.
type Config struct {
	Values Values
	// Getenv returns a variable of the environment, "" where it is not set.
	Getenv func(string) string
	// Caller names the program in requests, for those who read logs.
	Caller string
}

// String returns a text, "" where it is not given.
func (c Config) String(name string) string {
	v, ok := c.Values[name]
	if !ok || v.IsNull() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}

// Bool returns a truth value, or other where it is not given.
func (c Config) Bool(name string, other bool) bool {
	v, ok := c.Values[name]
	if !ok || v.IsNull() || v.Type() != cty.Bool {
		return other
	}
	return v.True()
}

// Int returns a whole number, or other where it is not given or none.
func (c Config) Int(name string, other int) int {
	v, ok := c.Values[name]
	if !ok || v.IsNull() || v.Type() != cty.Number {
		return other
	}
	n, accuracy := v.AsBigFloat().Int64()
	if accuracy != 0 {
		return other
	}
	return int(n)
}

// Strings returns a list or set of texts.
func (c Config) Strings(name string) []string {
	v, ok := c.Values[name]
	if !ok || v.IsNull() || !v.CanIterateElements() {
		return nil
	}
	var list []string
	for _, e := range v.AsValueSlice() {
		if !e.IsNull() {
			list = append(list, e.AsString())
		}
	}
	return list
}

// Map returns a map of texts.
func (c Config) Map(name string) map[string]string {
	v, ok := c.Values[name]
	if !ok || v.IsNull() || !v.CanIterateElements() {
		return nil
	}
	m := map[string]string{}
	for k, e := range v.AsValueMap() {
		if !e.IsNull() {
			m[k] = e.AsString()
		}
	}
	return m
}

// Nested returns the arguments of a nested block or object; ok is false where
// it is not given.
func (c Config) Nested(name string) (Config, bool) {
	v, ok := c.Values[name]
	if !ok || v.IsNull() {
		return Config{}, false
	}
	inner := c
	inner.Values = Values{}
	for k, e := range v.AsValueMap() {
		if !e.IsNull() {
			inner.Values[k] = e
		}
	}
	return inner, true
}

// Resolve fills in the environment and finds what is missing. Each problem is
// a sentence without its end.
func (k *Kind) Resolve(values Values, getenv func(string) string) (Config, []string) {
	c := Config{Values: Values{}, Getenv: getenv}
	var problems []string
	for i := range k.Arguments {
		a := &k.Arguments[i]
		v, ok := values[a.Name]
		if a.Refused != "" {
			if ok && !v.IsNull() {
				problems = append(problems, a.refusal())
			}
			continue
		}
		if ok && !v.IsNull() {
			c.Values[a.Name] = v
			continue
		}
		if text, from := a.fromEnvironment(getenv); from != "" {
			v, err := convert.Convert(cty.StringVal(text), a.Type)
			if err != nil {
				problems = append(problems, fmt.Sprintf("the environment variable %s holds no %s", from, a.Type.FriendlyName()))
				continue
			}
			c.Values[a.Name] = v
			continue
		}
		if a.Required {
			problems = append(problems, a.missing())
		}
	}
	return c, problems
}

func (a *Argument) refusal() string {
	return fmt.Sprintf("the argument %q is not supported: %s", a.Name, a.Refused)
}

func (a *Argument) fromEnvironment(getenv func(string) string) (text, from string) {
	for _, name := range a.Environment {
		if text := getenv(name); text != "" {
			return text, name
		}
	}
	return "", ""
}

func (a *Argument) missing() string {
	text := fmt.Sprintf("the argument %q is required: write it with the backend's other arguments, or give it to "+
		"init with -backend-config=%s=…", a.Name, a.Name)
	if len(a.Environment) > 0 {
		text += fmt.Sprintf(", or in the environment as %s", a.Environment[0])
	}
	return text
}

// argument finds an argument by name; nil where there is none.
func (k *Kind) argument(name string) *Argument { return find(k.Arguments, name) }

func find(list []Argument, name string) *Argument {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// valueType is the type of an argument's values.
func (a *Argument) valueType() cty.Type {
	if a.Nested == nil {
		return a.Type
	}
	types := map[string]cty.Type{}
	var optional []string
	for i := range a.Nested {
		types[a.Nested[i].Name] = a.Nested[i].valueType()
		if !a.Nested[i].Required {
			optional = append(optional, a.Nested[i].Name)
		}
	}
	return cty.ObjectWithOptionalAttrs(types, optional)
}
