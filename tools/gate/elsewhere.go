package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

// platforms are those that stoke is built for, except linux/amd64, on which the
// other stages run, and darwin/amd64, of which nothing differs from arm64. Each has
// build tags: a file that the tag gpu leaves out is checked for darwin.
var platforms = map[string]string{"linux/arm64": "gpu", "darwin/arm64": ""}

// elsewhere type-checks every package of the module for the other platforms.
// The bodies of functions of other modules are left out, so that this takes
// seconds where compiling would take minutes.
func elsewhere(root string) error {
	var wrong []string
	for platform, tags := range platforms {
		system, processor, _ := strings.Cut(platform, "/")
		config := &packages.Config{
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
				packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesSizes | packages.NeedModule,
			Dir:        root,
			BuildFlags: []string{"-tags=" + tags},
			Env:        append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor),
			ParseFile: func(files *token.FileSet, name string, src []byte) (*ast.File, error) {
				tree, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
				if tree != nil && !strings.HasPrefix(name, root+"/") {
					for _, decl := range tree.Decls {
						if fn, ok := decl.(*ast.FuncDecl); ok {
							fn.Body = nil
						}
					}
				}
				return tree, err
			},
		}
		all, err := packages.Load(config, "./...")
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		for _, p := range all {
			for _, e := range p.Errors {
				wrong = append(wrong, platform+": "+e.Error())
			}
		}
		fmt.Printf("%s: %d packages\n", platform, len(all))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "\n"))
	}
	return nil
}
