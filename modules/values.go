package modules

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/syntax"
)

// Inputs is where the values of the root module's variables come from, in
// the order of precedence: each overrules those before it.
type Inputs struct {
	Environ []string // NAME=VALUE; TF_VAR_ ones count
	Source  Source   // of files
	Dir     string   // folder of terraform.tfvars(.json) and *.auto.tfvars(.json)
	Flags   []Flag   // -var and -var-file, in the order of the command line
	// FlagsOnly leaves out files that are read without being named.
	FlagsOnly bool
}

// Flag is one -var or -var-file.
type Flag struct {
	File bool
	Text string // NAME=VALUE, or the file's name
}

// Origin says where a value came from.
type Origin uint8

const (
	FromEnvironment Origin = iota + 1
	FromFile
	FromFlag
	FromPrompt
)

// Value is the value of a variable. It has the variable's type and no marks.
type Value struct {
	Value  cty.Value
	Range  hcl.Range // of the file or the text that it was read from
	Origin Origin
}

// Values finds the values of the root module's variables; those that are not
// given and have a default are left out. Missing are the variables that need
// a value: ask for them, or report MissingDiagnostics. Everything read is
// added to files.
func Values(root *Module, in Inputs, files *Files) (values map[string]Value, missing []*Variable, diags hcl.Diagnostics) {
	g := &gatherer{root: root, source: in.Source, files: files, values: map[string]Value{}, wrong: map[string]hcl.Diagnostics{}}
	g.environment(in.Environ)
	if !in.FlagsOnly {
		for _, name := range g.automatic(in.Dir) {
			g.file(name, g.source.Read)
		}
	}
	for _, flag := range in.Flags {
		if flag.File {
			g.file(filepath.Clean(flag.Text), g.readNamedFile())
		} else {
			g.flag(flag.Text)
		}
	}
	for name, v := range root.Variables {
		_, given := g.values[name]
		if v.Required() && !given && g.wrong[name] == nil {
			missing = append(missing, v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.wrong)) {
		g.diags = append(g.diags, g.wrong[name]...)
	}
	slices.SortFunc(missing, func(a, b *Variable) int { return strings.Compare(a.Name, b.Name) })
	return g.values, missing, g.diags
}

// MissingDiagnostics says of each variable how to give it a value.
func MissingDiagnostics(missing []*Variable) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, v := range missing {
		diags = append(diags, failure(v.Range.Ptr(), "No value for required variable",
			"The variable %q has no default. Give it a value with -var %s=…, in a file terraform.tfvars or one named with -var-file, or in the environment as TF_VAR_%s.",
			v.Name, v.Name, v.Name))
	}
	return diags
}

// Parse reads the text that a person gave for a variable: as it is where the
// variable is a primitive, else as an expression. The diagnostics' places
// are in a text that is added to files as "<value for var.NAME>".
func (v *Variable) Parse(text string, origin Origin, files *Files) (Value, hcl.Diagnostics) {
	value, diags := v.parse(text, origin, files)
	for _, d := range diags {
		d.Detail += origin.valueHint(v.Name)
	}
	return value, diags
}

// valueHint ends a message about the value of a variable that is in no file.
func (o Origin) valueHint(name string) string {
	switch o {
	case FromEnvironment:
		return " The value was set by the environment variable TF_VAR_" + name + "."
	case FromFlag:
		return " The value was set by -var " + name + "=…."
	}
	return "" // people know what they have typed just now
}

func (v *Variable) parse(text string, origin Origin, files *Files) (Value, hcl.Diagnostics) {
	name := "<value for var." + v.Name + ">"
	if v.secret() {
		files.AddValues(name, starred([]byte(text)))
	} else {
		files.AddValues(name, []byte(text))
	}
	at := hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.Pos{Line: 1, Column: len(text) + 1, Byte: len(text)}}
	raw := cty.StringVal(text)
	if !v.verbatim {
		expr, diags := syntax.ParseExpression(name, []byte(text), hcl.InitialPos)
		if diags.HasErrors() {
			return Value{}, diags
		}
		at = expr.Range()
		if raw, diags = constant(expr); diags.HasErrors() {
			return Value{}, diags
		}
	}
	value, diags := v.accept(raw, at, origin)
	for _, d := range diags {
		d.Subject = v.Range.Ptr() // the text is in no file
	}
	return value, diags
}

// accept gives a value the variable's type.
func (v *Variable) accept(raw cty.Value, at hcl.Range, origin Origin) (Value, hcl.Diagnostics) {
	value, err := v.Convert(raw)
	if err != nil {
		return Value{}, hcl.Diagnostics{failure(&at, "Wrong type of value",
			"The value of variable %q does not have the type declared at %s: %s.", v.Name, v.Range, mismatch(err))}
	}
	if value.IsNull() && !v.Nullable {
		return Value{}, hcl.Diagnostics{failure(&at, "Value is null",
			"The variable %q, declared at %s, has nullable = false and no default, so it needs a value.", v.Name, v.Range)}
	}
	return Value{Value: value, Range: at, Origin: origin}, nil
}

// constant evaluates an expression in which nothing can be referred to.
func constant(expr hcl.Expression) (cty.Value, hcl.Diagnostics) {
	value, diags := expr.Value(nil)
	for _, d := range diags {
		if d.Summary == "Variables not allowed" {
			d.Detail = "A value for a variable cannot refer to anything. To give a text, put it in quotes."
		}
	}
	return value, diags
}

// gatherer collects values; later ones overrule, mistakes in earlier ones too.
type gatherer struct {
	root   *Module
	source Source
	files  *Files
	values map[string]Value
	wrong  map[string]hcl.Diagnostics // what is wrong with the last one given
	diags  hcl.Diagnostics
}

func (g *gatherer) take(name string, value Value, diags hcl.Diagnostics) {
	delete(g.values, name)
	delete(g.wrong, name)
	if diags.HasErrors() {
		g.wrong[name] = diags
		return
	}
	g.diags = append(g.diags, diags...)
	g.values[name] = value
}

func (g *gatherer) environment(environ []string) {
	for _, entry := range environ {
		rest, ok := strings.CutPrefix(entry, "TF_VAR_")
		if !ok {
			continue
		}
		name, text, _ := strings.Cut(rest, "=")
		if v := g.root.Variables[name]; v != nil {
			value, diags := v.Parse(text, FromEnvironment, g.files)
			g.take(name, value, diags)
		}
	}
}

func (g *gatherer) flag(text string) {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		g.diags = append(g.diags, failure(nil, "Invalid -var option",
			"%q has no equals sign. Write -var NAME=VALUE.", clip(text)))
		return
	}
	if trimmed := strings.TrimSpace(name); trimmed != name {
		g.diags = append(g.diags, failure(nil, "Invalid -var option",
			"The name %q has spaces around it. Write -var %s=%s.", clip(name), clip(trimmed), clip(strings.TrimSpace(value))))
		return
	}
	v := g.root.Variables[name]
	if v == nil {
		g.diags = append(g.diags, failure(nil, "Value for undeclared variable",
			"The variable %q of -var is not declared in the root module.%s Declare it with a variable block, or leave the option out.",
			clip(name), g.suggestName(name)))
		return
	}
	parsed, diags := v.Parse(value, FromFlag, g.files)
	g.take(name, parsed, diags)
}

func (g *gatherer) suggestName(name string) string {
	names := make([]string, 0, len(g.root.Variables))
	for n := range g.root.Variables {
		names = append(names, n)
	}
	return didYouMean(name, names)
}

// automatic lists the files that are read without being named.
func (g *gatherer) automatic(dir string) []string {
	if g.source == nil {
		return nil
	}
	names, err := g.source.List(dir)
	if err != nil {
		return nil // Load has said so
	}
	var first, rest []string
	for _, name := range []string{"terraform.tfvars", "terraform.tfvars.json"} {
		if slices.Contains(names, name) {
			first = append(first, filepath.Join(dir, name))
		}
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".auto.tfvars") || strings.HasSuffix(name, ".auto.tfvars.json") {
			rest = append(rest, filepath.Join(dir, name))
		}
	}
	slices.Sort(rest)
	return append(first, rest...)
}

// readNamedFile is how to read a file that the command line names.
func (g *gatherer) readNamedFile() func(name string) ([]byte, error) {
	if d, ok := g.source.(disk); ok {
		return d.readNamed
	}
	return g.source.Read
}

// file reads a file of values with one of the ways to read it.
func (g *gatherer) file(name string, read func(name string) ([]byte, error)) {
	content, err := read(name)
	if err != nil {
		at := hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos}
		what := cause(err)
		if errors.Is(err, fs.ErrNotExist) {
			what = "there is no such file"
		}
		g.diags = append(g.diags, failure(&at, "File of values cannot be read", "%s cannot be read: %s.", name, what))
		return
	}
	body, diags := syntax.Parse(name, content)
	if diags.HasErrors() {
		g.files.AddValues(name, g.quotableBroken(name, content))
		g.diags = append(g.diags, diags...)
		return
	}
	attrs, diags := body.JustAttributes()
	g.files.AddValues(name, g.quotable(content, attrs))
	g.diags = append(g.diags, onlyValues(name, diags)...)
	ordered := make([]*hcl.Attribute, 0, len(attrs))
	for _, attr := range attrs {
		ordered = append(ordered, attr)
	}
	slices.SortFunc(ordered, func(a, b *hcl.Attribute) int { return a.NameRange.Start.Byte - b.NameRange.Start.Byte })
	for _, attr := range ordered {
		g.assignment(name, attr)
	}
}

func (g *gatherer) assignment(file string, attr *hcl.Attribute) {
	v := g.root.Variables[attr.Name]
	if v == nil {
		d := failure(&attr.NameRange, "Value for undeclared variable",
			"%s has a value for a variable %q, which the root module does not declare.%s It is ignored.",
			file, attr.Name, g.suggestName(attr.Name))
		d.Severity = hcl.DiagWarning
		g.diags = append(g.diags, d)
		return
	}
	raw, diags := constant(attr.Expr)
	if diags.HasErrors() {
		g.take(attr.Name, Value{}, diags)
		return
	}
	value, diags := v.accept(raw, attr.Expr.Range(), FromFile)
	g.take(attr.Name, value, diags)
}

// onlyValues explains what blocks in a file of values are mostly about.
func onlyValues(name string, diags hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range diags {
		if strings.Contains(d.Summary, "block") {
			d.Detail = "A file of values has lines of the form NAME = VALUE and no blocks. Declarations belong into a file that ends in .tf; " + name + " only gives values."
		}
	}
	return diags
}
