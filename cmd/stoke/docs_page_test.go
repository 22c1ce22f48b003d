package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/runtime/pattern"
)

// page is one Markdown file of the documentation, read as a script: its fenced
// blocks, from the top to the bottom.
//
//	```console   commands after "$ " and, where it is given, what they print
//	```sh        a command on each line; what they print is not shown
//	```hcl       with "# NAME" in its first line: a file, written when its turn
//	             comes; the word fragment beside hcl: not a file, parsed only
//	```text …    json, yaml: shown, not run
//
// A command ends with 0, or with what a comment behind it says: # exit code 1.
// In output … stands for anything, and alone on a line for any lines. The word
// recording beside console: numbers and lines of progress are not compared.
type page struct {
	name   string // from the module's root
	lines  []string
	blocks []*block
}

// block is one fenced block.
type block struct {
	lang      string
	words     map[string]bool // beside the language
	from, end int             // the lines of its text are lines[from:end]
	commands  []*command
}

// command is one command line of a block and what it is expected to print.
type command struct {
	line      int // index of its first line
	text      string
	from, end int // the lines of its output
	exit      int
}

var (
	fence    = pattern.New("^\\s*(````*)\\s*(.*)$")
	fileLine = pattern.New(`^# ([\w./-]+\.(?:tf|tfvars|hcl|tftpl|sh|py|yaml|yml))$`)
	exitNote = pattern.New(`\s*# exit code (\d+)\s*$`)
)

func readPage(root, name string) (*page, error) {
	text, err := os.ReadFile(root + name)
	if err != nil {
		return nil, err
	}
	p := &page{name: name, lines: strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")}
	for i := 0; i < len(p.lines); i++ {
		m := fence.FindStringSubmatch(p.lines[i])
		if m == nil {
			continue
		}
		words := strings.Fields(m[2])
		if len(words) == 0 {
			return nil, fmt.Errorf("%s: the block has no language", p.place(i))
		}
		b := &block{lang: words[0], words: map[string]bool{}, from: i + 1}
		for _, w := range words[1:] {
			b.words[w] = true
		}
		for i++; i < len(p.lines) && !strings.HasPrefix(strings.TrimSpace(p.lines[i]), m[1]); i++ {
		}
		b.end = i
		if err := p.commands(b); err != nil {
			return nil, err
		}
		p.blocks = append(p.blocks, b)
	}
	return p, nil
}

func (p *page) place(line int) string { return p.name + ":" + strconv.Itoa(line+1) }

func (p *page) text(b *block) string { return strings.Join(p.lines[b.from:b.end], "\n") + "\n" }

// commands finds the command lines of a block.
func (p *page) commands(b *block) error {
	switch b.lang {
	case "console":
		return p.prompts(b)
	case "sh":
		if fileLine.MatchString(p.lines[b.from]) {
			return nil
		}
		for i := b.from; i < b.end; i++ {
			if line := strings.TrimSpace(p.lines[i]); line != "" && !strings.HasPrefix(line, "#") {
				c := &command{line: i}
				i = c.read(p.lines[i:b.end]) + i
				b.commands = append(b.commands, c)
			}
		}
	case "hcl", "json", "yaml", "text", "python":
	default:
		return fmt.Errorf("%s: no block can be %q", p.place(b.from-1), b.lang)
	}
	return nil
}

func (p *page) prompts(b *block) error {
	for i := b.from; i < b.end; {
		if !strings.HasPrefix(p.lines[i], "$ ") {
			return fmt.Errorf("%s: a console begins with \"$ \"", p.place(i))
		}
		c := &command{line: i}
		i += c.read(p.lines[i:b.end]) + 1
		c.from = i
		for i < b.end && !strings.HasPrefix(p.lines[i], "$ ") {
			i++
		}
		c.end = i
		b.commands = append(b.commands, c)
	}
	return nil
}

// read takes a command from the beginning of lines, with its continuations,
// and returns how many lines it has beyond the first.
func (c *command) read(lines []string) int {
	n := 0
	for strings.HasSuffix(lines[n], "\\") && n+1 < len(lines) {
		n++
	}
	c.text = strings.TrimPrefix(strings.Join(lines[:n+1], "\n"), "$ ")
	if m := exitNote.FindStringSubmatch(c.text); m != nil {
		c.exit, _ = strconv.Atoi(m[1])
		c.text = strings.TrimSuffix(c.text, m[0])
	}
	return n
}

// spans are the `code` in a page's running text, each with its line.
func (p *page) spans(visit func(line int, code string)) {
	inside := make(map[int]bool)
	for _, b := range p.blocks {
		for i := b.from - 1; i <= b.end; i++ {
			inside[i] = true
		}
	}
	for i, line := range p.lines {
		if inside[i] {
			continue
		}
		for k, part := range strings.Split(line, "`") {
			if k%2 == 1 {
				visit(i, part)
			}
		}
	}
}

// same reports whether what was printed is what is expected.
func same(expected, printed []string) bool {
	if len(expected) == 0 {
		return len(printed) == 0
	}
	if strings.TrimSpace(expected[0]) == "…" {
		for skip := 0; skip <= len(printed); skip++ {
			if same(expected[1:], printed[skip:]) {
				return true
			}
		}
		return false
	}
	return len(printed) > 0 && alike(expected[0], printed[0]) && same(expected[1:], printed[1:])
}

// missing is the first line that is expected and not where it should be.
func missing(expected, printed []string) string {
	for n := range expected {
		if !same(append(slices.Clone(expected[:n+1]), "…"), printed) {
			return expected[n]
		}
	}
	return "the end, here"
}

func alike(expected, printed string) bool {
	if !strings.Contains(expected, "…") {
		return expected == printed
	}
	parts := strings.Split(expected, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	ok, err := regexp.MatchString("^"+strings.Join(parts, ".*")+"$", printed)
	return ok && err == nil
}

// trimmed takes the white space off the end of lines, and the empty lines off
// both ends of a text.
func trimmed(lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = strings.TrimRight(line, " \t\r")
	}
	for len(all) > 0 && all[0] == "" {
		all = all[1:]
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

var (
	digits   = pattern.New(`[0-9][0-9,.]*( min)?`)
	hexes    = pattern.New(`(run|data)-[0-9a-f]{16}`)
	progress = pattern.New(`elapsed\]$|: evaluation at |Ctrl-C leaves|^…$|^  …$|^      …$`)
	folders  = pattern.New(`"/.*/`)
)

// recorded is what two runs of the same training have in common.
func recorded(lines []string) []string {
	var kept []string
	for _, line := range lines {
		if progress.MatchString(line) && !strings.HasSuffix(line, "…") {
			continue
		}
		line = folders.ReplaceAllString(hexes.ReplaceAllString(line, "$1-N"), `"/`)
		kept = append(kept, digits.ReplaceAllString(line, "N"))
	}
	return kept
}

var (
	uuids   = pattern.New(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	moments = pattern.New(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( [+-]\d{4})?( ?UTC|Z)?`)
)

// stable is printed text as a page can show it: what differs each time is … .
func stable(lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = moments.ReplaceAllString(uuids.ReplaceAllString(line, "…"), "…")
	}
	return all
}
