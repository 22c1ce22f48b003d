package lang

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules/address"
)

// Reference is what a traversal in an expression is about.
type Reference struct {
	Subject   Subject
	Remaining hcl.Traversal // what follows the subject: attributes and indices
	Range     hcl.Range     // of the subject
	Prefixed  bool          // a resource that is written as resource.TYPE.NAME
}

// Subject is one of the structs below. Subjects compare with == and serve as
// map keys. String returns the subject as it is written.
type Subject interface {
	String() string
	subject()
}

type (
	// Variable is var.NAME.
	Variable struct{ Name string }
	// Local is local.NAME.
	Local struct{ Name string }
	// ModuleCall is module.NAME: all instances of the call.
	ModuleCall struct{ Name string }
	// Resource is TYPE.NAME or data.TYPE.NAME: all instances of it.
	Resource struct {
		Mode address.Mode
		Type string
		Name string
	}
	// CountIndex is count.index.
	CountIndex struct{}
	// EachKey is each.key.
	EachKey struct{}
	// EachValue is each.value.
	EachValue struct{}
	// Self is the object that a condition in its own block is about.
	Self struct{}
	// Path is path.module, path.root or path.cwd.
	Path struct{ Name string }
	// Terraform is terraform.workspace or terraform.applying.
	Terraform struct{ Name string }
)

func (v Variable) String() string   { return "var." + v.Name }
func (l Local) String() string      { return "local." + l.Name }
func (m ModuleCall) String() string { return "module." + m.Name }
func (r Resource) String() string {
	return address.Resource{Mode: r.Mode, Type: r.Type, Name: r.Name}.String()
}
func (CountIndex) String() string  { return "count.index" }
func (EachKey) String() string     { return "each.key" }
func (EachValue) String() string   { return "each.value" }
func (Self) String() string        { return "self" }
func (p Path) String() string      { return "path." + p.Name }
func (t Terraform) String() string { return "terraform." + t.Name }

func (Variable) subject()   {}
func (Local) subject()      {}
func (ModuleCall) subject() {}
func (Resource) subject()   {}
func (CountIndex) subject() {}
func (EachKey) subject()    {}
func (EachValue) subject()  {}
func (Self) subject()       {}
func (Path) subject()       {}
func (Terraform) subject()  {}

// ParseReference says what a traversal refers to. Names that are none of
// the language's own start a managed resource. The caller finds out whether
// the subject exists.
func ParseReference(t hcl.Traversal) (Reference, hcl.Diagnostics) {
	if len(t) == 0 || t.IsRelative() {
		return Reference{}, invalid(t, "A reference starts with a name, such as var.region.")
	}
	switch root := t.RootName(); root {
	case "var":
		return single(t, "a variable", func(name string) Subject { return Variable{name} })
	case "local":
		return single(t, "a local value", func(name string) Subject { return Local{name} })
	case "module":
		return single(t, "a module call", func(name string) Subject { return ModuleCall{name} })
	case "self":
		return Reference{Subject: Self{}, Remaining: t[1:], Range: t[0].SourceRange()}, nil
	case "count":
		return member(t, map[string]Subject{"index": CountIndex{}})
	case "each":
		return member(t, map[string]Subject{"key": EachKey{}, "value": EachValue{}})
	case "path":
		return member(t, map[string]Subject{"module": Path{"module"}, "root": Path{"root"}, "cwd": Path{"cwd"}})
	case "terraform", "tofu":
		return member(t, map[string]Subject{"workspace": Terraform{"workspace"}, "applying": Terraform{"applying"}})
	case "data":
		return resource(t, t[1:], address.Data)
	case "resource":
		return resource(t, t[1:], address.Managed)
	case "ephemeral", "action", "list":
		return Reference{}, invalid(t, fmt.Sprintf("References to %s.… are not supported yet.", root))
	case "template", "lazy", "arg":
		return Reference{}, invalid(t, fmt.Sprintf("The name %q is reserved by the language and cannot start a reference.", root))
	}
	return resource(t, t, address.Managed)
}

// References returns what the expressions refer to, in the order of their
// occurrence, duplicates included. Nil expressions are skipped.
func References(exprs ...hcl.Expression) ([]Reference, hcl.Diagnostics) {
	var refs []Reference
	var diags hcl.Diagnostics
	for _, expr := range exprs {
		if expr == nil {
			continue
		}
		for _, t := range expr.Variables() {
			ref, more := ParseReference(t)
			diags = append(diags, more...)
			if !more.HasErrors() {
				refs = append(refs, ref)
			}
		}
	}
	return refs, diags
}

// single parses ROOT.NAME.
func single(t hcl.Traversal, what string, make func(string) Subject) (Reference, hcl.Diagnostics) {
	root := t.RootName()
	if len(t) < 2 {
		return Reference{}, invalid(t, fmt.Sprintf("%q must be followed by a dot and the name of %s: %s.NAME.", root, what, root))
	}
	attr, ok := t[1].(hcl.TraverseAttr)
	if !ok {
		return Reference{}, invalid(t, fmt.Sprintf("%q must be followed by a dot and a name, not by an index: %s.NAME.", root, root))
	}
	return Reference{Subject: make(attr.Name), Remaining: t[2:], Range: hcl.RangeBetween(t[0].SourceRange(), attr.SrcRange)}, nil
}

// member parses ROOT.NAME where the language defines the names.
func member(t hcl.Traversal, members map[string]Subject) (Reference, hcl.Diagnostics) {
	root := t.RootName()
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	if len(t) < 2 {
		return Reference{}, invalid(t, fmt.Sprintf("%q alone has no value; write %s.", root, alternatives(root, names)))
	}
	attr, ok := t[1].(hcl.TraverseAttr)
	if !ok {
		return Reference{}, invalid(t, fmt.Sprintf("%q cannot be indexed; write %s.", root, alternatives(root, names)))
	}
	subject, ok := members[attr.Name]
	if !ok {
		if root == "terraform" && attr.Name == "env" {
			return Reference{}, invalid(t, "terraform.env has been replaced by terraform.workspace.")
		}
		detail := fmt.Sprintf("%q has no attribute %q; write %s.", root, attr.Name, alternatives(root, names))
		return Reference{}, invalid(t, detail)
	}
	return Reference{Subject: subject, Remaining: t[2:], Range: hcl.RangeBetween(t[0].SourceRange(), attr.SrcRange)}, nil
}

// resource parses TYPE.NAME at the start of rest, which is whole without its
// prefix.
func resource(whole, rest hcl.Traversal, mode address.Mode) (Reference, hcl.Diagnostics) {
	prefix := ""
	if len(rest) < len(whole) {
		prefix = whole.RootName() + "."
	}
	kind := "resource"
	if mode == address.Data {
		kind = "data source"
	}
	form := fmt.Sprintf("%sTYPE.NAME", prefix)
	if len(rest) < 2 {
		detail := fmt.Sprintf("A reference to a %s has at least a type and a name: %s.", kind, form)
		if prefix == "" {
			detail = fmt.Sprintf("%q is not a name of the language. A reference to a resource has at least a type and a name (%s), "+
				"one to a variable starts with var., one to a local value with local.; a text needs quotes.", whole.RootName(), form)
		}
		return Reference{}, invalid(whole, detail)
	}
	ty, ok := stepName(rest[0])
	name, ok2 := stepName(rest[1])
	if !ok || !ok2 {
		return Reference{}, invalid(whole, fmt.Sprintf("A reference to a %s starts with its type and name, with dots between them: %s.", kind, form))
	}
	return Reference{
		Subject:   Resource{mode, ty, name},
		Remaining: rest[2:],
		Prefixed:  prefix == "resource.",
		Range:     hcl.RangeBetween(whole[0].SourceRange(), rest[1].SourceRange()),
	}, nil
}

func stepName(t hcl.Traverser) (string, bool) {
	switch t := t.(type) {
	case hcl.TraverseRoot:
		return t.Name, true
	case hcl.TraverseAttr:
		return t.Name, true
	}
	return "", false
}

func invalid(t hcl.Traversal, detail string) hcl.Diagnostics {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid reference", Detail: detail}
	if len(t) > 0 {
		d.Subject = t.SourceRange().Ptr()
	}
	return hcl.Diagnostics{d}
}

// alternatives writes "each.key or each.value".
func alternatives(root string, names []string) string {
	slices.Sort(names)
	for i, name := range names {
		names[i] = root + "." + name
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// Nearest returns the name of those given that somebody who wrote name most
// likely meant, or "" where none is close.
func Nearest(name string, names []string) string {
	best, least := "", (len(name)+2)/3+1 // a third of the letters may be wrong
	if len(name) < 2 {
		return ""
	}
	for _, candidate := range names {
		if candidate == name {
			continue
		}
		d := levenshtein.Distance(name, candidate, nil)
		if d < least || d == least && best != "" && candidate < best {
			best, least = candidate, d
		}
	}
	return best
}
