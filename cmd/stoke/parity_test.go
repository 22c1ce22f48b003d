package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// The corpus holds one case a file, NAME.txtar: what it is about, the steps to
// take and the files to take them with. Beside it lie NAME.golden, the facts
// that Terraform's answers hold (see facts), and where stoke's are others by
// intent NAME.differs: which, and why, with the heading in docs/differences.md
// that says more.
const (
	corpus      = "../../testdata/parity"
	differences = "../../docs/differences.md"
)

// parityCase is one file of the corpus.
type parityCase struct {
	name  string
	steps []step
	files []txtar.File
}

// step is one line of a case: what to do, and whether it has to fail ("! …") or
// fails with one of the tools ("? …").
type step struct {
	text   string
	words  []string
	fails  bool
	either bool
}

// TestParity holds stoke against what Terraform answered when the golden files
// were made.
func TestParity(t *testing.T) {
	for i, c := range parityCases(t) {
		if underRace && i%8 != 0 {
			continue // the answers are the same; some are enough to look for races
		}
		t.Run(c.name, func(t *testing.T) {
			golden, err := os.ReadFile(filepath.Join(corpus, c.name+".golden"))
			if err != nil {
				t.Fatalf("%v: make it with the tag e2e, terraform on the PATH, -run TestParityTerraform and -update", err)
			}
			got := c.run(t, &tool{name: "stoke"})
			c.compare(t, string(golden), got)
		})
	}
}

// compare fails where stoke's facts are others than Terraform's, unless the
// case says so.
func (c *parityCase) compare(t *testing.T, want, got string) {
	t.Helper()
	name := filepath.Join(corpus, c.name+".differs")
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	reason, expected := splitReason(string(text))
	found := lineDiff(want, got)
	switch {
	case found == expected:
	case *rewrite && reason != "":
		if err := os.WriteFile(name, []byte(reason+found), 0o644); err != nil {
			t.Fatal(err)
		}
	case expected == "":
		t.Errorf("stoke (+) differs from terraform (-):\n%s", begin(found))
	default:
		t.Errorf("stoke (+) differs from terraform (-) in another way than %s says:\n%s", name, begin(lineDiff(expected, found)))
	}
	if reason != "" && found == "" {
		t.Errorf("stoke does as Terraform does: remove %s", name)
	}
}

// begin is enough of a long text to see what it is about.
func begin(text string) string {
	const most = 40
	lines := strings.Split(text, "\n")
	if len(lines) > most {
		lines = append(lines[:most], "…")
	}
	return strings.Join(lines, "\n")
}

// splitReason parts the comment, which names the difference, from the lines.
func splitReason(text string) (reason, lines string) {
	for strings.HasPrefix(text[len(reason):], "#") {
		n := strings.IndexByte(text[len(reason):], '\n')
		if n < 0 {
			return text + "\n", ""
		}
		reason = text[:len(reason)+n+1]
	}
	return reason, text[len(reason):]
}

// TestDifferencesAreDocumented holds the corpus and the page together.
func TestDifferencesAreDocumented(t *testing.T) {
	page, err := os.ReadFile(differences)
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(corpus, "*.differs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		reason, _ := splitReason(string(text))
		heading, _, _ := strings.Cut(strings.TrimPrefix(reason, "# "), "\n")
		if heading == "" || !strings.Contains(string(page), "# "+heading+"\n") {
			t.Errorf("%s: its first line has to be a heading of docs/differences.md, after \"# \"; it is %q", name, heading)
		}
	}
}

func parityCases(t *testing.T) []*parityCase {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(corpus, "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatal("no cases", err)
	}
	var cases []*parityCase
	for _, name := range names {
		base := strings.TrimSuffix(filepath.Base(name), ".txtar")
		c, err := readCase(name)
		if err != nil {
			t.Fatal(err)
		}
		c.name = base
		cases = append(cases, c)
	}
	return cases
}

func readCase(name string) (*parityCase, error) {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		return nil, err
	}
	c := &parityCase{files: archive.Files}
	for _, line := range strings.Split(string(archive.Comment), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s := step{text: line}
		rest, fails := strings.CutPrefix(line, "! ")
		rest, either := strings.CutPrefix(rest, "? ")
		s.fails, s.either, s.words = fails, either, words(rest)
		c.steps = append(c.steps, s)
	}
	return c, nil
}

// words splits a line at its blanks, those between single quotes aside.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}

// lineDiff is what has to go from a (-) and come (+) to make it b, each line
// below the last heading ("> …") before it.
func lineDiff(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	common := make([][]int, len(x)+1) // length of the longest common rest
	for i := range common {
		common[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out strings.Builder
	heading := ""
	say := func(sign, line string) {
		if heading != "" {
			out.WriteString("@ " + heading + "\n")
			heading = ""
		}
		out.WriteString(sign + line + "\n")
	}
	for i, j := 0, 0; i < len(x) || j < len(y); {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			if strings.HasPrefix(x[i], ">") {
				heading = x[i]
			}
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			say("-", x[i])
			i++
		default:
			say("+", y[j])
			j++
		}
	}
	return out.String()
}
