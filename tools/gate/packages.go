package main

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// module is the path of the module that the gate tests.
const module = "github.com/stokehq/stoke"

// folder is one package of the module: its folder from the module's root, and
// facts of its sources that suites and inputs depend on.
type folder struct {
	name      string // "." for the root
	tests     []test
	threads   bool     // starts goroutines, or guards memory that they share
	elsewhere []string // paths outside the folder that its sources name, from the root
}

// test is one test function.
type test struct {
	name string
	tags []string // build tags of suites without which it is not compiled
}

// tags of suites; all else in a constraint is the platform's.
var suiteTags = []string{"e2e", "e2evm"}

// folders reads every package of the module, whatever its build tags.
func folders(root string) (map[string]*folder, error) {
	all := make(map[string]*folder)
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return apart(root, name)
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(rel))
		f := all[dir]
		if f == nil {
			f = &folder{name: dir}
			all[dir] = f
		}
		return f.add(root, filepath.Base(name), tree)
	})
	if err != nil {
		return nil, fmt.Errorf("read the module's packages: %w", err)
	}
	return all, nil
}

// apart skips folders that are not packages of the module.
func apart(root, name string) error {
	base := filepath.Base(name)
	if name == root {
		return nil
	}
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (f *folder) add(root, name string, tree *ast.File) error {
	isTest := strings.HasSuffix(name, "_test.go")
	if isTest {
		tags, err := required(tree)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", f.name, name, err)
		}
		for _, decl := range tree.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && isTestFunc(fn) {
				f.tests = append(f.tests, test{name: fn.Name.Name, tags: tags})
			}
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.ChanType:
			f.threads = f.threads || !isTest
		case *ast.ImportSpec:
			p, _ := strconv.Unquote(n.Path.Value)
			f.threads = f.threads || !isTest && (p == "sync" || p == "sync/atomic")
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				f.mention(root, text)
			}
		case *ast.CallExpr:
			f.mention(root, joined(n))
		}
		return true
	})
	return nil
}

// mention notes a path such as "../../docs" that leads out of the folder and
// exists: the package's tests may read what lies there.
func (f *folder) mention(root, text string) {
	if !strings.HasPrefix(text, "../") || strings.Contains(text, "\n") {
		return
	}
	if star := strings.IndexByte(text, '*'); star >= 0 {
		text = path.Dir(text[:star] + "x")
	}
	name := path.Join(f.name, text)
	if strings.HasPrefix(name, "..") || slices.Contains(f.elsewhere, name) {
		return
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err == nil {
		f.elsewhere = append(f.elsewhere, name)
	}
}

// joined is the path that filepath.Join makes of texts, "" for another call.
func joined(call *ast.CallExpr) string {
	if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "Join" {
		return ""
	}
	var parts []string
	for _, arg := range call.Args {
		lit, ok := arg.(*ast.BasicLit)
		if !ok {
			break
		}
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			break
		}
		parts = append(parts, text)
	}
	return path.Join(parts...) + "/"
}

func isTestFunc(fn *ast.FuncDecl) bool {
	return fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain" &&
		len(fn.Type.Params.List) == 1 && fn.Type.Results == nil
}

// required returns the tags of suites without which a file is not compiled on
// linux/amd64.
func required(tree *ast.File) (tags []string, err error) {
	for _, group := range tree.Comments {
		for _, c := range group.List {
			if group.Pos() > tree.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			x, err := constraint.Parse(c.Text)
			if err != nil {
				return nil, err
			}
			for _, tag := range suiteTags {
				if x.Eval(given) && !x.Eval(func(t string) bool { return t != tag && given(t) }) {
					tags = append(tags, tag)
				}
			}
		}
	}
	return tags, nil
}

// given tells whether a tag is set on linux/amd64 with the tags of all suites.
func given(tag string) bool {
	return slices.Contains(suiteTags, tag) || slices.Contains([]string{"linux", "amd64", "unix", "gc"}, tag)
}

// in tells whether a folder is one of the patterns.
func in(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if p == "..." {
			return true
		}
		stem, below := strings.CutSuffix(p, "...")
		if !below {
			return name == p
		}
		return strings.HasPrefix(name, stem) || name == strings.TrimSuffix(stem, "/")
	})
}

// tests returns the names of the tests that a suite takes from each folder;
// folders of which it takes none are not in it.
func (s *suite) tests(all map[string]*folder) (map[string][]string, error) {
	run, err := regexp.Compile(s.run)
	if err != nil {
		return nil, fmt.Errorf("suite %s: %w", s.name, err)
	}
	skip, err := regexp.Compile(s.skip)
	if err != nil {
		return nil, fmt.Errorf("suite %s: %w", s.name, err)
	}
	chosen := make(map[string][]string)
	for name, f := range all {
		if s.command != nil || !in(name, s.packages) || in(name, s.except) || s.threads && !f.threads {
			continue
		}
		for _, t := range f.tests {
			if s.takes(t) && run.MatchString(t.name) && (s.skip == "" || !skip.MatchString(t.name)) {
				chosen[name] = append(chosen[name], t.name)
			}
		}
	}
	return chosen, nil
}

// takes tells whether a suite's tags compile a test, and whether the test is
// one that the suite is for.
func (s *suite) takes(t test) bool {
	for _, tag := range t.tags {
		if !slices.Contains(s.tags, tag) {
			return false
		}
	}
	return !s.tagged || len(t.tags) > 0 || slices.Contains(s.grow, t.name)
}
