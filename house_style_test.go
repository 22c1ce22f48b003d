package stoke_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	longestFile     = 500 // lines
	longestFunction = 80  // lines, from func to the closing brace; tests aside
)

// longFiles may have more lines than longestFile, each for the reason given.
var longFiles = map[string]string{}

// vagueNames say nothing about what is inside.
var vagueNames = []string{"util", "utils", "helper", "helpers", "manager", "common", "misc"}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := make(map[string]bool)
	for _, s := range sources(t) {
		if s.test() || s.folder() == "." {
			continue
		}
		if s.tree.Doc == nil {
			documented[s.folder()] = documented[s.folder()]
			continue
		}
		documented[s.folder()] = true
		if path.Base(s.name) != "doc.go" {
			t.Errorf("%s: the package comment belongs into doc.go", s.name)
		}
	}
	for name, ok := range documented {
		if !ok {
			t.Errorf("%s: write a doc.go that says what the package is, what it is not, and its one entry point", name)
		}
	}
}

func TestFilesFitInTheHead(t *testing.T) {
	listed := make(map[string]bool)
	for _, s := range sources(t) {
		lines := bytes.Count(s.text, []byte("\n"))
		reason := longFiles[s.name]
		switch {
		case lines > longestFile && reason == "":
			t.Errorf("%s has %d lines: split it by idea, or list it in house_style_test.go with the reason", s.name, lines)
		case lines <= longestFile && reason != "":
			t.Errorf("%s has %d lines: take it off the list in house_style_test.go", s.name, lines)
		}
		listed[s.name] = true
	}
	for name := range longFiles {
		if !listed[name] {
			t.Errorf("%s is listed in house_style_test.go but does not exist", name)
		}
	}
}

func TestFunctions(t *testing.T) {
	for _, s := range sources(t) {
		for _, decl := range s.tree.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: no init functions: build the value where it is used, or in main", s.place(f))
			}
			lines := s.line(f.End()) - s.line(f.Pos()) + 1
			if lines > longestFunction && !s.test() {
				t.Errorf("%s: %s has %d lines: give its steps names", s.place(f), f.Name.Name, lines)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for _, s := range sources(t) {
		base := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.name), ".go"), "_test")
		for _, name := range []string{base, s.tree.Name.Name} {
			if slices.Contains(vagueNames, name) {
				t.Errorf("%s: %q names no idea: call it by the noun that it is about", s.name, name)
			}
		}
	}
}

// TestForeignImports keeps out what the licence or the style does not allow.
func TestForeignImports(t *testing.T) {
	never := map[string]string{
		"github.com/hashicorp/terraform/": "its licence is not a free one",
		"github.com/stretchr/testify":     "tests use the standard library and go-cmp",
		"github.com/pkg/errors":           "errors are wrapped with fmt.Errorf and %w",
	}
	for _, s := range sources(t) {
		for _, spec := range s.tree.Imports {
			for prefix, reason := range never {
				if strings.HasPrefix(strings.Trim(spec.Path.Value, `"`)+"/", strings.TrimSuffix(prefix, "/")+"/") {
					t.Errorf("%s imports %s: %s", s.place(spec), spec.Path.Value, reason)
				}
			}
		}
	}
}

// TestResidentMemoryIsLeftAlone keeps out calls that give back pages which are
// still in use. They cost page faults and make the peak memory that
// docs/performance.md states look smaller than it is.
func TestResidentMemoryIsLeftAlone(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.tree, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok && strings.Contains(strings.ToLower(name.Name), "madv") {
				t.Errorf("%s: %s: leave it to the Go runtime and the system which pages are resident", s.place(n), name.Name)
			}
			return true
		})
	}
}

func TestExportedThingsAreDocumented(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		explained := -1 // the line on which a documented declaration ended
		for _, decl := range s.tree.Decls {
			missing := undocumented(decl)
			if s.line(decl.Pos()) == explained+1 {
				missing = nil // one of a block of one-liners under one comment
			}
			for _, name := range missing {
				t.Errorf("%s: say in a comment what %s is", s.place(name), name.Name)
			}
			if len(missing) == 0 {
				explained = s.line(decl.End())
			}
		}
	}
}

// undocumented returns the exported names of a declaration that no comment
// explains. A group's comment speaks for its members, and the type's comment
// for the members of an enumeration.
func undocumented(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) && !wellKnown(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		if d.Doc != nil || enumeration(d) {
			return nil
		}
		var missing []*ast.Ident
		for _, spec := range d.Specs {
			switch v := spec.(type) {
			case *ast.TypeSpec:
				if v.Name.IsExported() && v.Doc == nil && v.Comment == nil {
					missing = append(missing, v.Name)
				}
			case *ast.ValueSpec:
				if v.Doc == nil && v.Comment == nil {
					missing = append(missing, exported(v.Names)...)
				}
			}
		}
		return missing
	}
	return nil
}

// enumeration tells whether a group of constants lists the values of a type.
func enumeration(d *ast.GenDecl) bool {
	if d.Tok != token.CONST || !d.Lparen.IsValid() {
		return false
	}
	first, ok := d.Specs[0].(*ast.ValueSpec)
	return ok && first.Type != nil
}

func exported(names []*ast.Ident) []*ast.Ident {
	return slices.DeleteFunc(slices.Clone(names), func(n *ast.Ident) bool { return !n.IsExported() })
}

func exportedReceiver(fields *ast.FieldList) bool {
	kind := fields.List[0].Type
	for {
		switch k := kind.(type) {
		case *ast.StarExpr:
			kind = k.X
		case *ast.IndexExpr:
			kind = k.X
		case *ast.IndexListExpr:
			kind = k.X
		case *ast.Ident:
			return k.IsExported()
		default:
			return false
		}
	}
}

// wellKnown methods mean what they mean everywhere.
func wellKnown(f *ast.FuncDecl) bool {
	return f.Recv != nil && slices.Contains([]string{
		"Error", "Unwrap", "Is", "As", "String", "GoString", "Close",
		"Len", "Less", "Swap", "Push", "Pop", "Read", "Write",
		"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText",
	}, f.Name.Name)
}

func TestUndocumentedIsNoticed(t *testing.T) {
	name := &ast.Ident{Name: "Thing"}
	tests := []struct {
		what string
		decl ast.Decl
		want int
	}{
		{"function", &ast.FuncDecl{Name: name, Type: &ast.FuncType{}}, 1},
		{"documented function", &ast.FuncDecl{Name: name, Type: &ast.FuncType{}, Doc: &ast.CommentGroup{}}, 0},
		{"private function", &ast.FuncDecl{Name: &ast.Ident{Name: "thing"}, Type: &ast.FuncType{}}, 0},
		{"method", method("Thing", "Do"), 1},
		{"method of a private type", method("thing", "Do"), 0},
		{"well-known method", method("Thing", "Error"), 0},
		{"type", &ast.GenDecl{Tok: token.TYPE, Specs: []ast.Spec{&ast.TypeSpec{Name: name}}}, 1},
		{"constants of a documented group", &ast.GenDecl{Tok: token.CONST, Doc: &ast.CommentGroup{},
			Specs: []ast.Spec{&ast.ValueSpec{Names: []*ast.Ident{name}}}}, 0},
		{"constant", &ast.GenDecl{Tok: token.CONST, Specs: []ast.Spec{&ast.ValueSpec{Names: []*ast.Ident{name}}}}, 1},
		{"enumeration", &ast.GenDecl{Tok: token.CONST, Lparen: 1,
			Specs: []ast.Spec{&ast.ValueSpec{Names: []*ast.Ident{name}, Type: &ast.Ident{Name: "Kind"}}}}, 0},
		{"variables", &ast.GenDecl{Tok: token.VAR,
			Specs: []ast.Spec{&ast.ValueSpec{Names: []*ast.Ident{name, {Name: "thing"}, name}}}}, 2},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			if got := undocumented(test.decl); len(got) != test.want {
				t.Errorf("got %s, want %d names", fmt.Sprint(got), test.want)
			}
		})
	}
}

func method(receiver, name string) *ast.FuncDecl {
	return &ast.FuncDecl{
		Recv: &ast.FieldList{List: []*ast.Field{{Type: &ast.StarExpr{X: &ast.Ident{Name: receiver}}}}},
		Name: &ast.Ident{Name: name}, Type: &ast.FuncType{},
	}
}
