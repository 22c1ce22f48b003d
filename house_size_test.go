package stoke_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	mostFiles   = 30  // in a package
	mostMethods = 40  // of a type
	longestLine = 140 // columns; a tab is four
	tabWidth    = 4
)

var (
	packageFence = fence{list: "packages.txt", fault: "files",
		rule: "Packages of more than 30 files; tests and test doubles are not counted.",
		fix:  "a package has at most 30 files: move one idea with its files into a package of its own"}
	typeFence = fence{list: "types.txt", fault: "methods",
		rule: "Types of more than 40 methods; tests and test doubles are not counted.",
		fix: "a type has at most 40 methods: give one part of its fields a type of its own, " +
			"with the methods that use them"}
	lineFence = fence{list: "lines.txt", fault: "long lines",
		rule:  "Lines of more than 140 columns in each file; tests and test doubles are not counted.",
		group: func(string) string { return "" },
		fix:   "a line has at most 140 columns, where a tab is four: break it after a comma, an operator or a part of a string"}
)

// double reports whether a package replaces something real in tests. It is
// written like a test: no limit of size holds for it.
func double(folder string) bool {
	name := path.Base(folder)
	return name == "lab" || strings.HasSuffix(name, "test")
}

// production reports whether a file is neither a test nor part of a test double.
func (s *source) production() bool { return !s.test() && !double(s.folder()) }

// packageSizes counts the files of each package that has too many.
func packageSizes(all []*source) map[string]int {
	files := make(map[string]int)
	for _, s := range all {
		if s.production() {
			files[s.folder()]++
		}
	}
	return above(files, mostFiles)
}

// typeSizes counts the methods of each type that has too many. A method with a
// file for each platform counts once.
func typeSizes(all []*source) map[string]int {
	methods, seen := make(map[string]int), make(map[string]bool)
	for _, s := range all {
		if !s.production() {
			continue
		}
		for _, decl := range s.tree.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			key := s.folder() + "." + receiver(f.Recv.List[0].Type)
			if !seen[key+"."+f.Name.Name] {
				seen[key+"."+f.Name.Name] = true
				methods[key]++
			}
		}
	}
	return above(methods, mostMethods)
}

// receiver is the name of a receiver's type, without pointer and parameters.
func receiver(kind ast.Expr) string {
	switch k := kind.(type) {
	case *ast.StarExpr:
		return receiver(k.X)
	case *ast.ParenExpr:
		return receiver(k.X)
	case *ast.IndexExpr:
		return receiver(k.X)
	case *ast.IndexListExpr:
		return receiver(k.X)
	case *ast.Ident:
		return k.Name
	default:
		return ""
	}
}

// longLines returns, for each file that has some, the numbers of its long lines.
// Raw strings count too: a template is read like code.
func longLines(all []*source) map[string][]int {
	long := make(map[string][]int)
	for _, s := range all {
		if !s.production() {
			continue
		}
		number := 0
		for line := range bytes.Lines(s.text) {
			number++
			if columns(bytes.TrimRight(line, "\r\n")) > longestLine {
				long[s.name] = append(long[s.name], number)
			}
		}
	}
	return long
}

func columns(line []byte) int {
	return utf8.RuneCount(line) + (tabWidth-1)*bytes.Count(line, []byte("\t"))
}

// above keeps the numbers that are higher than a limit.
func above(numbers map[string]int, limit int) map[string]int {
	high := make(map[string]int)
	for key, n := range numbers {
		if n > limit {
			high[key] = n
		}
	}
	return high
}

func lengths[V any](lists map[string][]V) map[string]int {
	n := make(map[string]int, len(lists))
	for key, list := range lists {
		n[key] = len(list)
	}
	return n
}

func TestFencePackages(t *testing.T) { packageFence.check(t, packageSizes(sources(t)), nil) }

func TestFenceTypes(t *testing.T) { typeFence.check(t, typeSizes(sources(t)), nil) }

func TestFenceLines(t *testing.T) {
	long := longLines(sources(t))
	lineFence.check(t, lengths(long), func(name string) string {
		return fmt.Sprintf("they are the lines %v", long[name])
	})
}

// maxSize is the limit of a file of the repository, in bytes: a program that was built in
// the root is larger.
const maxSize = 1 << 20

// TestFilesAreSmall checks the files that git knows. It skips itself outside of a clone.
func TestFilesAreSmall(t *testing.T) {
	names, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skip("git does not list the files:", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		if file, err := os.Lstat(name); err == nil && file.Size() > maxSize { // a removed file has no size
			t.Errorf("%s has %d bytes, and a file at most %d: remove what was built, or keep it outside of the repository", name, file.Size(), maxSize)
		}
	}
}

// madeUp parses a file that breaks a rule.
func madeUp(t *testing.T, name, text string) *source {
	t.Helper()
	s, err := parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFenceSizesAreNoticed(t *testing.T) {
	var files []*source
	for _, folder := range []string{"plan/hall", "plan/halltest", "plan/lab"} {
		for i := range mostFiles + 1 {
			files = append(files, madeUp(t, fmt.Sprintf("%s/f%d.go", folder, i), "package hall"))
		}
		files = append(files, madeUp(t, folder+"/f_test.go", "package hall"))
	}
	noticed(t, packageFence, packageSizes(files), "plan/hall: 31 files", "package of its own")
	noticed(t, packageFence, packageSizes(files[1:]), "", "")

	var text strings.Builder
	text.WriteString("package hall\n\ntype god[T any] struct{}\n")
	for i := range mostMethods {
		fmt.Fprintf(&text, "func (g *god[T]) m%d() {}\n", i)
	}
	other := "package hall\n\nfunc (g god[T]) more() {}\n"
	types := []*source{madeUp(t, "plan/hall/god.go", text.String())}
	noticed(t, typeFence, typeSizes(types), "", "")
	types = append(types, madeUp(t, "plan/hall/god_linux.go", other), madeUp(t, "plan/hall/god_other.go", other))
	noticed(t, typeFence, typeSizes(types), "plan/hall.god: 41 methods", "type of its own")

	fits := "package hall\n\n//" + strings.Repeat("é", longestLine-2) + "\n"
	wide := "package hall\n\n\t//" + strings.Repeat("é", longestLine-5) + "\n"
	noticed(t, lineFence, lengths(longLines([]*source{madeUp(t, "plan/line.go", fits)})), "", "")
	noticed(t, lineFence, lengths(longLines([]*source{madeUp(t, "plan/line_test.go", wide)})), "", "")
	noticed(t, lineFence, lengths(longLines([]*source{madeUp(t, "plan/line.go", wide)})), "plan/line.go: 1 long line,", "break it")
}

// noticed checks that a fence without exceptions reports one thing with the
// advice, or nothing where want is empty.
func noticed(t *testing.T, f fence, found map[string]int, want, advice string) {
	t.Helper()
	v := f.compare(nil, found)
	advised(t, v, v.broken, want)
	advised(t, v, v.broken, advice)
}
