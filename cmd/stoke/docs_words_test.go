package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stokehq/stoke/runtime/pattern"
)

// TestDocsWords checks what the pages say beside their blocks: the commands
// and options in running text exist, and links lead somewhere.
func TestDocsWords(t *testing.T) {
	for _, name := range append(documentation(t), "CONTRIBUTING.md") {
		p, err := readPage(moduleRoot, name)
		if err != nil && name != "CONTRIBUTING.md" {
			t.Error(err)
		}
		if err != nil {
			continue
		}
		p.spans(func(line int, code string) {
			if problem := wrongCode(code); problem != "" {
				t.Errorf("%s: `%s`: %s", p.place(line), code, problem)
			}
		})
		for i, line := range p.lines {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				to, _, _ := strings.Cut(m[1], "#")
				if _, err := os.Stat(filepath.Join(moduleRoot, filepath.Dir(name), to)); to != "" && !strings.Contains(to, "://") && err != nil {
					t.Errorf("%s: the link to %s leads nowhere", p.place(i), to)
				}
			}
		}
	}
}

var link = pattern.New(`\]\(([^)\s]+)\)`)

// wrongCode says what a command line or an option in running text names that
// stoke does not have.
func wrongCode(code string) string {
	st := stage{in: os.Stdin}
	root := newRoot(newSession(st))
	root.SetOut(io.Discard)
	if option := regexp.MustCompile(`^-([a-z][a-z-]+)`).FindStringSubmatch(code); option != nil {
		if !slices.Contains(optionNames(root), option[1]) {
			return "stoke has no such option"
		}
		return ""
	}
	rest, ok := strings.CutPrefix(code, "stoke ")
	if !ok {
		return ""
	}
	args, err := shellWords(rest)
	if err != nil {
		return err.Error()
	}
	line, err := understand(root, args, st.getenv)
	if err != nil {
		return err.Error()
	}
	if len(line.args) == 0 {
		return ""
	}
	cmd, args, err := root.Find(line.args)
	if err != nil || cmd == root {
		return "stoke has no such command"
	}
	if err := cmd.ParseFlags(args); err != nil && err != pflag.ErrHelp {
		return err.Error()
	}
	return ""
}

// optionNames are the options of all commands, and what other tools have that
// the pages speak of.
func optionNames(cmd *cobra.Command) []string {
	names := []string{"chdir", "help", "version", "install-autocomplete", "uninstall-autocomplete", "tags", "update"}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	for _, c := range cmd.Commands() {
		names = append(names, optionNames(c)...)
	}
	return names
}

// TestDocsCompare shows what makes the comparison of a page's output fail.
func TestDocsCompare(t *testing.T) {
	for _, c := range []struct {
		expected, printed string
		want              bool
	}{
		{"a\nb", "a\nb", true},
		{"a\nb", "a", false},
		{"a", "a\nb", false},
		{"a\n…", "a\nb\nc", true},
		{"a\n…\nc", "a\nb\nd", false},
		{"id …!", "id 17!", true},
		{"id …!", "id 17", false},
		{"…", "", true},
		{"a.c", "abc", false},
	} {
		if got := same(strings.Split(c.expected, "\n"), strings.Split(c.printed, "\n")); got != c.want {
			t.Errorf("%q and %q: %v", c.expected, c.printed, got)
		}
	}
	for code, wrong := range map[string]bool{
		"stoke plan -out=p": false, "stoke plan -uot=p": true, "stoke pla": true, "stoke state mv a b": false, "-out": false, "-uot": true, "ls -l": false,
	} {
		if got := wrongCode(code); (got != "") != wrong {
			t.Errorf("%s: %q", code, got)
		}
	}
}

// TestMakefileQuickstart holds the command that pages show to the one that
// make runs.
func TestMakefileQuickstart(t *testing.T) {
	text, err := os.ReadFile(moduleRoot + "Makefile")
	if err != nil {
		t.Fatal(err)
	}
	const recipe = "\n\t./bin/stoke -chdir=examples/quickstart apply -auto-approve\n"
	if !strings.Contains(string(text), recipe) {
		t.Errorf("make quickstart does not run%s", recipe)
	}
}

// TestDocsBackends checks that every argument of every backend is told.
func TestDocsBackends(t *testing.T) {
	text, err := os.ReadFile(moduleRoot + "docs/state.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range backends() {
		if !strings.Contains(string(text), "| `"+k.Name+"` |") {
			t.Errorf("docs/state.md does not tell of the backend %q", k.Name)
		}
		for _, a := range k.Arguments {
			if a.Refused == "" && !strings.Contains(string(text), "`"+a.Name+"`") {
				t.Errorf("docs/state.md does not tell of the argument %q of the backend %q", a.Name, k.Name)
			}
		}
	}
}
