package lang

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// Options says what the functions that depend on where and when they run
// rest on.
type Options struct {
	BaseDir string // folder that relative file names start from; "" is the working directory

	// Planning makes timestamp, uuid and bcrypt unknown: a plan must not
	// show values that apply will not have.
	Planning bool
	// PlanTime is what plantimestamp returns; the zero time makes it unknown.
	PlanTime time.Time
	// Interrupted, when not nil, is asked again and again by functions that may
	// take long: an error ends them.
	Interrupted func() error
	// Console adds type, which exists in the console alone.
	Console bool
	// Providers are the functions of providers by their names in full,
	// provider::LOCAL_NAME::FUNCTION.
	Providers map[string]function.Function
}

// Functions returns the functions for baseDir at apply. Build a table once
// and share it: it is never written to.
func Functions(baseDir string) map[string]function.Function {
	return NewFunctions(Options{BaseDir: baseDir})
}

// NewFunctions returns all functions by name, each also as core::name.
func NewFunctions(o Options) map[string]function.Function {
	table := make(map[string]function.Function, 2*(len(standard)+32))
	maps.Copy(table, standard)
	dir := folder(o.BaseDir)
	maps.Copy(table, dir.files(o.Interrupted))
	table["timestamp"] = impure(o.Planning, timestampSpec)
	table["uuid"] = impure(o.Planning, uuidSpec)
	table["bcrypt"] = impure(o.Planning, bcryptSpec)
	table["plantimestamp"] = plantimestamp(o.PlanTime)
	if o.Console {
		table["type"] = typeFunc
	}
	alias(table)
	maps.Copy(table, o.Providers)
	maps.Copy(table, dir.templates(table))
	alias(table)
	return table
}

// alias gives every function its name with the namespace of the language.
func alias(table map[string]function.Function) {
	for _, name := range slices.Collect(maps.Keys(table)) {
		if !strings.Contains(name, "::") {
			table["core::"+name] = table[name]
		}
	}
}

// SuggestFunctions adds the nearest name to diagnostics about functions that
// do not exist, in place.
func SuggestFunctions(diags hcl.Diagnostics, table map[string]function.Function) hcl.Diagnostics {
	for _, d := range diags {
		unknown, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](d)
		if !ok || strings.Contains(d.Detail, "Did you mean") {
			continue
		}
		if unknown.CalledFunctionNamespace() == "" {
			if near := Nearest(unknown.CalledFunctionName(), slices.Collect(maps.Keys(table))); near != "" {
				d.Detail += fmt.Sprintf(" Did you mean %q?", near)
			}
		}
	}
	return diags
}

var toString = stdlib.MakeToFunc(cty.String)

// standard are the functions that depend on nothing but their arguments.
var standard = map[string]function.Function{
	"abs":              stdlib.AbsoluteFunc,
	"abspath":          abspathFunc,
	"alltrue":          boolFold(false),
	"anytrue":          boolFold(true),
	"base64decode":     base64decodeFunc,
	"base64encode":     base64encodeFunc,
	"base64gzip":       base64gzipFunc,
	"base64sha256":     base64SHA256.ofText(),
	"base64sha512":     base64SHA512.ofText(),
	"basename":         basenameFunc,
	"can":              tryfunc.CanFunc,
	"ceil":             stdlib.CeilFunc,
	"chomp":            stdlib.ChompFunc,
	"chunklist":        stdlib.ChunklistFunc,
	"cidrhost":         cidrhostFunc,
	"cidrnetmask":      cidrnetmaskFunc,
	"cidrsubnet":       cidrsubnetFunc,
	"cidrsubnets":      cidrsubnetsFunc,
	"coalesce":         coalesceFunc,
	"coalescelist":     stdlib.CoalesceListFunc,
	"compact":          stdlib.CompactFunc,
	"concat":           stdlib.ConcatFunc,
	"contains":         withoutNulls(stdlib.ContainsFunc),
	"csvdecode":        stdlib.CSVDecodeFunc,
	"dirname":          dirnameFunc,
	"distinct":         stdlib.DistinctFunc,
	"element":          stdlib.ElementFunc,
	"endswith":         endswithFunc,
	"ephemeralasnull":  ephemeralasnullFunc,
	"flatten":          stdlib.FlattenFunc,
	"floor":            stdlib.FloorFunc,
	"format":           stdlib.FormatFunc,
	"formatdate":       stdlib.FormatDateFunc,
	"formatlist":       stdlib.FormatListFunc,
	"indent":           indentFunc,
	"index":            indexFunc,
	"issensitive":      issensitiveFunc,
	"join":             stdlib.JoinFunc,
	"jsondecode":       jsondecodeFunc,
	"jsonencode":       stdlib.JSONEncodeFunc,
	"keys":             stdlib.KeysFunc,
	"length":           lengthFunc,
	"log":              logFunc,
	"lookup":           lookupFunc,
	"lower":            stdlib.LowerFunc,
	"matchkeys":        matchkeysFunc,
	"max":              stdlib.MaxFunc,
	"md5":              hexMD5.ofText(),
	"merge":            stdlib.MergeFunc,
	"min":              stdlib.MinFunc,
	"nonsensitive":     nonsensitiveFunc,
	"one":              oneFunc,
	"parseint":         stdlib.ParseIntFunc,
	"pathexpand":       pathexpandFunc,
	"pow":              powFunc,
	"range":            stdlib.RangeFunc,
	"regex":            stdlib.RegexFunc,
	"regexall":         stdlib.RegexAllFunc,
	"replace":          replaceFunc,
	"reverse":          stdlib.ReverseListFunc,
	"rsadecrypt":       rsadecryptFunc,
	"sensitive":        sensitiveFunc,
	"setintersection":  stdlib.SetIntersectionFunc,
	"setproduct":       stdlib.SetProductFunc,
	"setsubtract":      stdlib.SetSubtractFunc,
	"setunion":         stdlib.SetUnionFunc,
	"sha1":             hexSHA1.ofText(),
	"sha256":           hexSHA256.ofText(),
	"sha512":           hexSHA512.ofText(),
	"signum":           stdlib.SignumFunc,
	"slice":            stdlib.SliceFunc,
	"sort":             stdlib.SortFunc,
	"split":            stdlib.SplitFunc,
	"startswith":       startswithFunc,
	"strcontains":      containsFunc,
	"strrev":           stdlib.ReverseFunc,
	"substr":           stdlib.SubstrFunc,
	"sum":              sumFunc,
	"textdecodebase64": textdecodebase64Func,
	"textencodebase64": textencodebase64Func,
	"timeadd":          stdlib.TimeAddFunc,
	"timecmp":          timecmpFunc,
	"title":            stdlib.TitleFunc,
	"tobool":           stdlib.MakeToFunc(cty.Bool),
	"tolist":           collectionOf(cty.List),
	"tomap":            collectionOf(cty.Map),
	"tonumber":         stdlib.MakeToFunc(cty.Number),
	"toset":            collectionOf(cty.Set),
	"tostring":         toString,
	"transpose":        transposeFunc,
	"trim":             stdlib.TrimFunc,
	"trimprefix":       stdlib.TrimPrefixFunc,
	"trimspace":        stdlib.TrimSpaceFunc,
	"trimsuffix":       stdlib.TrimSuffixFunc,
	"try":              tryfunc.TryFunc,
	"upper":            stdlib.UpperFunc,
	"urlencode":        urlencodeFunc,
	"uuidv5":           uuidv5Func,
	"values":           stdlib.ValuesFunc,
	"yamldecode":       yamldecodeFunc,
	"yamlencode":       ctyyaml.YAMLEncodeFunc,
	"zipmap":           stdlib.ZipmapFunc,
}
