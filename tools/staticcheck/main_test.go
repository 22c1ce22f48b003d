package main

import (
	"go/types"
	"reflect"
	"testing"

	"golang.org/x/tools/go/analysis"
	"honnef.co/go/tools/staticcheck/sa4017"
)

func TestOtherModulesAreNotLookedInto(t *testing.T) {
	type result struct{ looked bool }
	a := &analysis.Analyzer{Name: "a", ResultType: reflect.TypeFor[*result](), Run: func(*analysis.Pass) (any, error) { return &result{looked: true}, nil }}
	limit(a)
	for path, want := range map[string]bool{
		"strings": true, "go/ast": true, module: true, module + "_test": true, module + "/plan": true, "example.com/other": false, "example.com/a/b": false,
	} {
		got, err := a.Run(&analysis.Pass{Pkg: types.NewPackage(path, "p")})
		if err != nil || got.(*result).looked != want {
			t.Errorf("%s: looked into %v, error %v", path, got, err)
		}
	}
	if a.Name == "a" {
		t.Error("results are kept under the name of the whole analyzer")
	}
}

// The analyzer that is limited is found by a name in another module.
func TestFind(t *testing.T) {
	if find(sa4017.SCAnalyzer.Analyzer, "buildir") == nil || find(sa4017.SCAnalyzer.Analyzer, "other") != nil {
		t.Error("staticcheck has renamed buildir")
	}
}
