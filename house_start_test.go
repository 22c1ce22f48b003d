package stoke_test

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stokehq/stoke/cmd/programtest"
)

// What package initialisation may allocate: every start of stoke pays it, also
// where it uses none of it. A package of ours may take packageBytes, which is a few
// tables; all of ours together and the whole program have limits of their own.
// Those are 5 to 10 % above what Go 1.26 counts on linux/amd64: 78,384 bytes in 731
// objects of ours, of 3,437,408 in 19,749.
const (
	packageBytes = 24 << 10
	ourBytes     = 84_000
	ourObjects   = 800
	totalBytes   = 3_600_000
	totalObjects = 21_000
)

// initialised is what one package allocated.
type initialised struct {
	name           string
	bytes, objects int
}

var initLine = regexp.MustCompile(`^init (\S+) @.* ([0-9]+) bytes, ([0-9]+) allocs$`)

// TestStartIsSmall counts what the initialisation of stoke's packages allocates.
// It is counted by the Go runtime, and does not depend on the machine's speed.
func TestStartIsSmall(t *testing.T) {
	packages := start(t, programtest.Path(t, "stoke"))
	var ours, total initialised
	for _, p := range packages {
		total.add(p)
		if strings.HasPrefix(p.name, house+"/") {
			ours.add(p)
			if p.bytes > packageBytes {
				t.Errorf("the initialisation of %s allocates %d bytes, want at most %d: compile regular expressions with pattern.New, and build tables "+
					"and schemas in functions, with sync.OnceValue where they are used more than once", p.name, p.bytes, packageBytes)
			}
		}
	}
	t.Logf("ours: %d bytes, %d objects; all: %d bytes, %d objects, on %s/%s", ours.bytes, ours.objects, total.bytes, total.objects, runtime.GOOS, runtime.GOARCH)
	if ours.bytes > ourBytes || ours.objects > ourObjects {
		t.Errorf("the initialisation of our packages allocates %d bytes in %d objects, want at most %d in %d. The largest are:\n%s"+
			"Compile regular expressions with pattern.New, and build tables where they are used.", ours.bytes, ours.objects, ourBytes, ourObjects,
			largest(packages, func(p initialised) bool { return strings.HasPrefix(p.name, house+"/") }))
	}
	if total.bytes > totalBytes || total.objects > totalObjects {
		t.Errorf("the initialisation of all packages allocates %d bytes in %d objects, want at most %d in %d. The largest are:\n%s"+
			"If one of them is new, look for a smaller package of its module, or do without it: go list -deps ./cmd/stoke says what is linked.",
			total.bytes, total.objects, totalBytes, totalObjects, largest(packages, func(initialised) bool { return true }))
	}
}

func (p *initialised) add(of initialised) {
	p.bytes += of.bytes
	p.objects += of.objects
}

// start runs "stoke version" and returns what each package allocated before main.
func start(t *testing.T, stoke string) (all []initialised) {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(stoke, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("stoke version: %v\n%s", err, said.String())
	}
	lines := bufio.NewScanner(&said)
	for lines.Scan() {
		m := initLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		bytes, _ := strconv.Atoi(m[2])
		objects, _ := strconv.Atoi(m[3])
		all = append(all, initialised{m[1], bytes, objects})
	}
	if len(all) < 100 {
		t.Fatalf("only %d packages in what the runtime says of initialisation: is its form another one?", len(all))
	}
	return all
}

// largest lists the ten that allocate most.
func largest(all []initialised, of func(initialised) bool) string {
	all = slices.DeleteFunc(slices.Clone(all), func(p initialised) bool { return !of(p) })
	slices.SortFunc(all, func(a, b initialised) int { return cmp.Compare(b.bytes, a.bytes) })
	var text strings.Builder
	for _, p := range all[:min(10, len(all))] {
		fmt.Fprintf(&text, "%9d bytes %6d objects  %s\n", p.bytes, p.objects, p.name)
	}
	return text.String()
}

// TestPatterns compiles what is given to pattern.New, which is otherwise compiled
// when it is first used.
func TestPatterns(t *testing.T) {
	seen := 0
	for _, s := range sources(t) {
		if s.test() || s.folder() == "runtime/pattern" {
			continue
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 || !isCall(call, "pattern", "New") {
				return true
			}
			seen++
			if _, err := regexp.Compile(literalText(call.Args[0])); err != nil {
				t.Errorf("%s: %v", s.place(call), err)
			}
			return true
		})
	}
	if seen < 80 {
		t.Errorf("only %d patterns found: the walk does not see them", seen)
	}
}

func isCall(call *ast.CallExpr, of, name string) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != name {
		return false
	}
	x, ok := f.X.(*ast.Ident)
	return ok && x.Name == of
}

// literalText returns what an expression adds up to; what is not a literal in it
// counts as a letter.
func literalText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return literalText(e.X) + literalText(e.Y)
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	}
	return "x"
}
