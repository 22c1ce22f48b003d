package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stokehq/stoke/modules/lang"
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
		code, out, errs := evaluated(t, e.text)
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

// evaluated is what the console makes of an expression, in this process: there are many.
func evaluated(t *testing.T, text string) (code int, out, errs string) {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "in")
	write(t, name, []byte(text+"\n"))
	var files [3]*os.File
	for i, name := range []string{name, filepath.Join(dir, "out"), filepath.Join(dir, "err")} {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	code = execute([]string{"console"}, stage{in: files[0], out: files[1], err: files[2], environ: []string{"HOME=/home/nobody"}, built: catalogue()})
	var texts [3]string
	for i, f := range files {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return code, texts[1], texts[2]
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
