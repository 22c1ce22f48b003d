package lang

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	"golang.org/x/text/encoding/ianaindex"

	"github.com/stokehq/stoke/modules/syntax"
)

// ofStrings makes a function of strings from one of Go's. Each parameter is
// named; unknown and marked arguments are go-cty's business.
func ofStrings[T string | bool](f func(args []string) (T, error), params ...string) function.Function {
	spec := &function.Spec{RefineResult: notNull}
	for _, name := range params {
		spec.Params = append(spec.Params, function.Parameter{Name: name, Type: cty.String})
	}
	var zero T
	ty := cty.String
	if _, ok := any(zero).(bool); ok {
		ty = cty.Bool
	}
	spec.Type = function.StaticReturnType(ty)
	spec.Impl = func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		texts := make([]string, len(args))
		for i, arg := range args {
			texts[i] = arg.AsString()
		}
		result, err := f(texts)
		if err != nil {
			return cty.UnknownVal(ty), err
		}
		if b, ok := any(result).(bool); ok {
			return cty.BoolVal(b), nil
		}
		return cty.StringVal(any(result).(string)), nil
	}
	return function.New(spec)
}

// startswithFunc can tell of a text that is not known as a whole, when enough
// of its beginning is.
var startswithFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "str", Type: cty.String, AllowUnknown: true},
		{Name: "prefix", Type: cty.String},
	},
	Type:         function.StaticReturnType(cty.Bool),
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		want := args[1].AsString()
		if args[0].IsKnown() {
			return cty.BoolVal(strings.HasPrefix(args[0].AsString(), want)), nil
		}
		begins := args[0].Range().StringPrefix()
		switch {
		case strings.HasPrefix(begins, want):
			return cty.True, nil
		case !strings.HasPrefix(want, begins):
			return cty.False, nil
		}
		return cty.UnknownVal(cty.Bool), nil
	},
})

var (
	endswithFunc  = ofStrings(func(a []string) (bool, error) { return strings.HasSuffix(a[0], a[1]), nil }, "str", "suffix")
	containsFunc  = ofStrings(func(a []string) (bool, error) { return strings.Contains(a[0], a[1]), nil }, "str", "substr")
	urlencodeFunc = ofStrings(func(a []string) (string, error) { return url.QueryEscape(a[0]), nil }, "str")
	replaceFunc   = ofStrings(replace, "str", "substr", "replace")

	base64encodeFunc = ofStrings(func(a []string) (string, error) {
		return base64.StdEncoding.EncodeToString([]byte(a[0])), nil
	}, "str")
	base64decodeFunc     = ofStrings(base64decode, "str")
	base64gzipFunc       = ofStrings(base64gzip, "str")
	textencodebase64Func = ofStrings(textEncode, "string", "encoding")
	textdecodebase64Func = ofStrings(textDecode, "source", "encoding")
)

// replace takes what stands between two slashes as a regular expression.
func replace(a []string) (string, error) {
	if pattern := a[1]; len(pattern) > 1 && pattern[0] == '/' && pattern[len(pattern)-1] == '/' {
		re, err := regexp.Compile(pattern[1 : len(pattern)-1])
		if err != nil {
			return "", function.NewArgError(1, err)
		}
		return re.ReplaceAllString(a[0], a[2]), nil
	}
	return strings.ReplaceAll(a[0], a[1], a[2]), nil
}

func base64decode(a []string) (string, error) {
	content, err := base64.StdEncoding.DecodeString(a[0])
	if err != nil {
		return "", function.NewArgErrorf(0, "it is not base64: %w", err)
	}
	if !utf8.Valid(content) {
		return "", function.NewArgErrorf(0, "what it encodes is not UTF-8 text")
	}
	return string(content), nil
}

func base64gzip(a []string) (string, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(a[0]))
	// The flush changes the bytes. Terraform flushes, and its result is in
	// the state of existing machines.
	if err := errors.Join(err, w.Flush(), w.Close()); err != nil {
		return "", fmt.Errorf("compress: %w", err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

func textEncode(a []string) (string, error) {
	enc, err := ianaindex.IANA.Encoding(a[1])
	if err != nil || enc == nil {
		return "", function.NewArgErrorf(1, "%q is not a supported encoding with an IANA name", a[1])
	}
	name, err := ianaindex.IANA.Name(enc)
	if err != nil {
		name = a[1]
	}
	content, err := enc.NewEncoder().Bytes([]byte(a[0]))
	if err != nil {
		return "", function.NewArgErrorf(0, "it has characters that %s does not", name)
	}
	return base64.StdEncoding.EncodeToString(content), nil
}

func textDecode(a []string) (string, error) {
	enc, err := ianaindex.IANA.Encoding(a[1])
	if err != nil || enc == nil {
		return "", function.NewArgErrorf(1, "%q is not a supported encoding with an IANA name", a[1])
	}
	content, err := base64.StdEncoding.DecodeString(a[0])
	if err != nil {
		return "", function.NewArgErrorf(0, "it is not base64: %w", err)
	}
	text, err := enc.NewDecoder().Bytes(content)
	if err != nil || bytes.ContainsRune(text, utf8.RuneError) {
		return "", function.NewArgErrorf(0, "it has bytes that are not characters in %s", a[1])
	}
	return string(text), nil
}

// bounded makes a decoder refuse text that it would recurse into too deeply.
func bounded(decode function.Function, param string, check func([]byte) error) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: param, Type: cty.String}},
		Type: func(args []cty.Value) (cty.Type, error) {
			if args[0].IsKnown() && !args[0].IsNull() {
				if err := check([]byte(args[0].AsString())); err != nil {
					return cty.NilType, function.NewArgError(0, err)
				}
			}
			return decode.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return decode.Call(args) },
	})
}

var (
	jsondecodeFunc = bounded(stdlib.JSONDecodeFunc, "str", syntax.CheckJSONDepth)
	yamldecodeFunc = bounded(ctyyaml.YAMLDecodeFunc, "src", syntax.CheckYAMLDepth)
)
