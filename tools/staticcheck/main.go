package main

import (
	"os"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
	"honnef.co/go/tools/lintcmd"
	"honnef.co/go/tools/lintcmd/version"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/staticcheck/sa4017"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

// module is the path of the module that is checked.
const module = "github.com/stokehq/stoke"

func main() {
	cmd := lintcmd.NewCommand("staticcheck")
	cmd.SetVersion(version.Version, version.MachineVersion)
	whole := cmd.FlagSet().Bool("whole", false, "Look into the functions of other modules")
	cmd.ParseFlags(os.Args[1:])
	if !*whole {
		limit(find(sa4017.SCAnalyzer.Analyzer, "buildir"))
	}
	cmd.AddAnalyzers(simple.Analyzers...)
	cmd.AddAnalyzers(staticcheck.Analyzers...)
	cmd.AddAnalyzers(stylecheck.Analyzers...)
	cmd.AddAnalyzers(unused.Analyzer)
	cmd.Run()
}

// find returns the analyzer of a name among those that one requires. buildir,
// which writes functions in the form that checks read, cannot be imported.
func find(a *analysis.Analyzer, name string) *analysis.Analyzer {
	if a.Name == name {
		return a
	}
	for _, r := range a.Requires {
		if f := find(r, name); f != nil {
			return f
		}
	}
	return nil
}

// limit has an analyzer return an empty result for packages of other modules.
// Its name changes, because it is in the key under which results are kept.
func limit(a *analysis.Analyzer) {
	run := a.Run
	a.Name += "_limited"
	a.Run = func(pass *analysis.Pass) (any, error) {
		if path := pass.Pkg.Path(); isStandard(path) || strings.HasPrefix(path, module) {
			return run(pass)
		}
		return reflect.New(a.ResultType.Elem()).Interface(), nil
	}
}

// isStandard tells whether a package is one of Go's own: a module's path begins
// with a host.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
