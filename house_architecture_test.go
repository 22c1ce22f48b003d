package stoke_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxSteps is the limit of docs/architecture.md: a reader follows the way of one
// resource in one sitting.
const maxSteps = 40

var (
	step     = regexp.MustCompile(`(?m)^\d+\. `)
	codeName = regexp.MustCompile("`([a-z][a-z/]*)\\.([A-Za-z]+(?:\\.[A-Za-z]+)?)`")
)

// declaredNames returns the functions, methods and types of production code as
// FOLDER.Name and FOLDER.Type.Name.
func declaredNames(all []*source) map[string]bool {
	names := make(map[string]bool)
	for _, s := range all {
		if !s.production() {
			continue
		}
		for _, decl := range s.tree.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = typeName(d.Recv.List[0].Type) + "." + name
				}
				names[s.folder()+"."+name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						names[s.folder()+"."+spec.Name.Name] = true
					}
				}
			}
		}
	}
	return names
}

// typeName is the name of a receiver's type, without pointer and parameters.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// missingNames returns the names of a page that the code does not have, and how
// many names the page has.
func missingNames(page string, declared map[string]bool) (missing []string, all int) {
	for _, m := range codeName.FindAllStringSubmatch(page, -1) {
		all++
		if name := m[1] + "." + m[2]; !declared[name] {
			missing = append(missing, name)
		}
	}
	return missing, all
}

func TestArchitectureNamesExist(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	steps := len(step.FindAllString(string(page), -1))
	missing, all := missingNames(string(page), declaredNames(sources(t)))
	if steps < 20 || steps > maxSteps || all < steps {
		t.Errorf("docs/architecture.md has %d steps with %d names of functions, want 20 to %d steps and a name for each", steps, all, maxSteps)
	}
	for _, name := range missing {
		t.Errorf("docs/architecture.md names %s, which is not in the code: follow the way again and correct the step", name)
	}
}

func TestArchitectureNamesAreChecked(t *testing.T) {
	declared := declaredNames([]*source{madeUp(t, "plan/hall/hall.go",
		"package hall\n\ntype hall[T any] struct{}\n\nfunc (h *hall[T]) open() {}\n\nfunc Build() {}\n")})
	missing, all := missingNames("`plan/hall.hall.open`, `plan/hall.Build`, `plan/hall.hall`, `plan/hall.hall.close` and `file.tf`", declared)
	if want := []string{"plan/hall.hall.close", "file.tf"}; all != 5 || !slices.Equal(missing, want) {
		t.Errorf("of %d names %s are missing, want %s", all, strings.Join(missing, " "), strings.Join(want, " "))
	}
}
