package stoke_test

import (
	"go/ast"
	"strings"
	"testing"
)

// conversions are functions of Terraform's framework whose last result has the diagnostics of a conversion, by the number of
// their results.
var conversions = map[string]int{
	"ObjectValueFrom": 2, "ListValueFrom": 2, "SetValueFrom": 2, "MapValueFrom": 2, "ObjectValue": 2, "ListValue": 2, "SetValue": 2, "MapValue": 2,
	"As": 1, "ElementsAs": 1, "GetAttribute": 1, "SetAttribute": 1,
}

// unreported may be called without a look at their diagnostics, each for the reason given.
var unreported = map[string]string{
	"placement": "it reports mistakes in values, which the plan of the same values has reported",
}

// TestDiagnosticsOfConversionsAreKept: no provider drops the diagnostics of a conversion, or of a function of its own that returns
// diagnostics: an unknown or empty value would take the place of the converted one.
func TestDiagnosticsOfConversionsAreKept(t *testing.T) {
	var providers []*source
	for _, s := range sources(t) {
		if s.production() && strings.HasPrefix(s.folder(), "providers") {
			providers = append(providers, s)
		}
	}
	places := diagnosticPlaces(providers)
	found := 0
	for _, s := range providers {
		found += checkDiagnostics(t, s, places)
	}
	if found < 100 { // it would pass with nothing to look at
		t.Errorf("%d calls with diagnostics were found", found)
	}
}

// diagnosticPlaces returns the functions that return diagnostics, by name, and those of one folder by folder and name: the number of
// their results and the place of the diagnostics, from 1. A name that has several forms has place 0.
func diagnosticPlaces(all []*source) map[string][2]int {
	places := map[string][2]int{}
	for name, n := range conversions {
		places[name] = [2]int{n, n}
	}
	for _, s := range all {
		for _, decl := range s.tree.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n, at := 0, 0
			for _, field := range results(f) {
				n += max(1, len(field.Names))
				if sel, ok := field.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Diagnostics" {
					at = n
				}
			}
			for _, key := range []string{f.Name.Name, s.folder() + "." + f.Name.Name} {
				was, known := places[key]
				switch {
				case conversions[key] != 0:
				case known && was != [2]int{n, at}:
					places[key] = [2]int{}
				default:
					places[key] = [2]int{n, at}
				}
			}
		}
	}
	return places
}

// checkDiagnostics reports dropped diagnostics in one file, and returns how many calls have some.
func checkDiagnostics(t *testing.T, s *source, places map[string][2]int) (found int) {
	check := func(right ast.Expr, left []ast.Expr) {
		call, ok := right.(*ast.CallExpr)
		if !ok {
			return
		}
		name := calledName(call)
		place, local := places[s.folder()+"."+name]
		if !local {
			place = places[name]
		}
		if place[1] == 0 || place[0] != max(1, len(left)) || unreported[name] != "" {
			return
		}
		found++
		if len(left) > 0 {
			if id, ok := left[place[1]-1].(*ast.Ident); !ok || id.Name != "_" {
				return
			}
		}
		t.Errorf("%s: the diagnostics of %s are dropped: report them, or take connect.MustConvert where only a mistake of the provider makes some", s.place(call), name)
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if len(n.Rhs) == 1 {
				check(n.Rhs[0], n.Lhs)
			}
		case *ast.ExprStmt:
			check(n.X, nil)
		}
		return true
	})
	return found
}

// results are the results of a function.
func results(f *ast.FuncDecl) []*ast.Field {
	if f.Type.Results == nil {
		return nil
	}
	return f.Type.Results.List
}

// calledName is the name of a called function or method, without its package or value; "" for errors.As, which has the name of a
// conversion.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if of, ok := f.X.(*ast.Ident); ok && of.Name == "errors" {
			return ""
		}
		return f.Sel.Name
	}
	return ""
}
