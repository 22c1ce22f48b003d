package program

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/runtime/pattern"
)

// placeholder is a parameter's name in an argument.
var placeholder = pattern.New(`\{\{\s*[A-Za-z_][A-Za-z0-9_.-]*\s*\}\}`)

// Substitute returns the arguments with the values of parameters in place of
// {{name}}. An unknown name is a *StartError with ErrParameter.
func Substitute(args []string, parameters map[string]any) ([]string, error) {
	var unknown error
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = placeholder.ReplaceAllStringFunc(arg, func(found string) string {
			name := strings.TrimSpace(found[2 : len(found)-2])
			value, ok := parameters[name]
			if !ok {
				unknown = unknownParameter(name, parameters)
				return found
			}
			text, err := formatValue(name, value)
			if err != nil {
				unknown = err
			}
			return text
		})
	}
	if unknown != nil {
		return nil, unknown
	}
	return out, nil
}

func unknownParameter(name string, parameters map[string]any) error {
	advice := "the program has no parameters"
	if len(parameters) > 0 {
		advice = "the parameters are " + strings.Join(slices.Sorted(maps.Keys(parameters)), ", ")
	}
	return &StartError{Kind: ErrParameter, What: fmt.Sprintf("the command names an unknown parameter {{%s}}", name), Advice: advice}
}

// formatValue returns a scalar of JSON as a text. Whole numbers have no point and
// no exponent, so that int() of Python reads them.
func formatValue(name string, value any) (string, error) {
	switch v := value.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return "", &StartError{Kind: ErrParameter, What: fmt.Sprintf("the parameter %s has a NUL character", name)}
		}
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case json.Number:
		return v.String(), nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatInt(int64(v), 10), nil
		}
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case int:
		return strconv.Itoa(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case nil:
		return "", nil
	}
	return "", &StartError{Kind: ErrParameter, What: fmt.Sprintf("the parameter %s is not a text, a number or a truth value", name),
		Advice: "give lists and objects as texts of JSON"}
}

// CheckNames reports parameters that have one variable, as a *StartError.
func CheckNames(parameters map[string]any) error {
	owner := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		key := parameterPrefix + strings.Map(variableCharacter, name)
		if other, ok := owner[key]; ok {
			return &StartError{Kind: ErrParameter, Advice: "rename one of them",
				What: fmt.Sprintf("the parameters %s and %s have the same variable %s", other, name, key)}
		}
		owner[key] = name
	}
	return nil
}

// parameterVariables returns STOKE_PARAM_NAME of each parameter.
func parameterVariables(parameters map[string]any) (map[string]string, error) {
	if err := CheckNames(parameters); err != nil {
		return nil, err
	}
	variables := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		text, err := formatValue(name, parameters[name])
		if err != nil {
			return nil, err
		}
		variables[parameterPrefix+strings.Map(variableCharacter, name)] = text
	}
	return variables, nil
}

func variableCharacter(c rune) rune {
	switch {
	case 'a' <= c && c <= 'z':
		return c - 'a' + 'A'
	case 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return c
	}
	return '_'
}
