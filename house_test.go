// Package stoke_test holds the rules of the house: who may know whom
// (house_floors_test.go), which modules the binaries link
// (house_linked_test.go), and how a file looks (house_style_test.go). A rule
// that older code breaks is a fence (house_fence_test.go): sizes, test doubles,
// words and names.
package stoke_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// house is the module's path, and the prefix of our packages.
const house = "github.com/stokehq/stoke"

var (
	update = flag.Bool("update", false, "rewrite the golden files and lower the numbers of the fences")
	show   = flag.String("show", "", "list the sentences of a file or folder that TestFenceWords counts")
)

// source is one Go file of the module, whatever its build tags.
type source struct {
	name  string // from the module's root, with slashes
	text  []byte
	tree  *ast.File
	files *token.FileSet
}

func (s *source) folder() string { return path.Dir(s.name) }
func (s *source) test() bool     { return strings.HasSuffix(s.name, "_test.go") }

// place is "name:line" of a node.
func (s *source) place(n ast.Node) string {
	return s.name + ":" + strconv.Itoa(s.line(n.Pos()))
}

func (s *source) line(at token.Pos) int { return s.files.Position(at).Line }

// sources returns every Go file of the module, parsed. Build tags play no part:
// a rule holds on every platform.
func sources(t *testing.T) []*source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatalf("read the module's sources: %v", err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d Go files found: the walk does not see the module", len(all))
	}
	return all
}

// parsed does the work of sources once for all tests.
var parsed = sync.OnceValues(func() ([]*source, error) {
	var all []*source
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(name)
		}
		if filepath.Ext(name) != ".go" || strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(name), text)
		all = append(all, s)
		return err
	})
	return all, err
})

// parse reads one file, whose name is from the module's root.
func parse(name string, text []byte) (*source, error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return &source{name: name, text: text, tree: tree, files: files}, err
}

// skip passes folders over that are not packages of this module.
func skip(name string) error {
	base := filepath.Base(name)
	switch {
	case name == ".":
		return nil
	case strings.HasPrefix(base, "."), strings.HasPrefix(base, "_"), base == "testdata":
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return fs.SkipDir // a module of its own, such as tools
	}
	return nil
}

// imports maps each package to our packages that it imports. Names are from the
// module's root; tests are left out.
func imports(t *testing.T, all []*source) map[string][]string {
	t.Helper()
	graph := make(map[string][]string)
	for _, s := range all {
		if s.test() {
			continue
		}
		known := graph[s.folder()]
		for _, spec := range s.tree.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatalf("%s: import path %s: %v", s.place(spec), spec.Path.Value, err)
			}
			if ours, ok := strings.CutPrefix(name, house+"/"); ok && !slices.Contains(known, ours) {
				known = append(known, ours)
			}
		}
		graph[s.folder()] = known
	}
	return graph
}
