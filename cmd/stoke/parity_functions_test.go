package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/providers/filetest"
)

// functionCases is one expression a line, and below it, behind "= ", what
// Terraform's console answers; "! " stands for an error, whose words are each
// tool's own. A "~ " says that stoke answers otherwise, and how.
const functionCases = corpus + "/functions.txt"

// expression is one of the functionCases.
type expression struct {
	text      string
	want      []string // the lines with "= ", or "! "
	otherwise []string // stoke's, without "~ "
}

// TestParityFunctions holds the console against Terraform's, whatever the
// functions are given.
func TestParityFunctions(t *testing.T) {
	all := expressions(t)
	t.Chdir(functionFiles(t))
	for i, e := range all {
		if underRace && i%8 != 0 {
			continue // the answers are the same; some are enough to look for races
		}
		code, out, errs := executeHere(t, e.text+"\n", stage{environ: []string{"HOME=/home/nobody"}}, "console")
		got := answer(code, out)
		want := e.want
		if e.otherwise != nil {
			want = e.otherwise
		}
		if strings.Join(got, "\n") == strings.Join(want, "\n") {
			continue
		}
		t.Errorf("%s\n  stoke says %q %s\n  terraform %q", e.text, got, errs, want)
	}
}

// executeHere runs a command in this process, where it costs a fraction of the start of a
// process: there are many. It has the text on its standard input. The variables of s are those
// that stoke reads; libraries read those of the test.
func executeHere(t *testing.T, in string, s stage, args ...string) (code int, out, errs string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in"), []byte(in))
	open := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	read := func(f *os.File) string {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		return string(text)
	}
	s.in, s.out, s.err = open("in"), open("out"), open("err")
	defer s.in.Close()
	s.built = catalogue()
	s.built[filetest.Source] = filetest.Entry()
	code = execute(args, s)
	return code, read(s.out), read(s.err)
}

// TestParityFunctionsAreAll wants five expressions at least for every function.
func TestParityFunctionsAreAll(t *testing.T) {
	if underRace {
		t.Skip("nothing is at work but this")
	}
	all := expressions(t)
	for name := range lang.NewFunctions(lang.Options{}) {
		if strings.Contains(name, "::") {
			continue
		}
		call, n := regexp.MustCompile(`\b`+name+`\(`), 0
		for _, e := range all {
			if call.MatchString(e.text) {
				n++
			}
		}
		if n < 5 {
			t.Errorf("%s has %d expressions in %s", name, n, functionCases)
		}
	}
}

// answer is what a console says, as the lines of functionCases.
func answer(code int, out string) []string {
	if code != 0 {
		return []string{"!"}
	}
	var lines []string
	for _, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		lines = append(lines, strings.TrimRight("= "+line, " "))
	}
	return lines
}

func expressions(t *testing.T) []*expression {
	t.Helper()
	text, err := os.ReadFile(functionCases)
	if err != nil {
		t.Fatal(err)
	}
	var all []*expression
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
		case line == "!" || line == "=" || strings.HasPrefix(line, "= "):
			e := all[len(all)-1]
			e.want = append(e.want, line)
		case strings.HasPrefix(line, "~ "):
			e := all[len(all)-1]
			e.otherwise = append(e.otherwise, line[2:])
		default:
			all = append(all, &expression{text: line})
		}
	}
	return all
}

// functionFiles is a folder with the files that expressions name.
func functionFiles(t *testing.T) string {
	t.Helper()
	const from = "../../modules/lang/testdata/files"
	dir := t.TempDir()
	err := filepath.WalkDir(from, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read file: %w", err)
		}
		rel, err := filepath.Rel(from, name)
		write(t, filepath.Join(dir, rel), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
