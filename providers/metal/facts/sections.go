package facts

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestText bounds what a machine says of itself, in bytes. Nothing real is
// longer: model names have 40, processes 15.
const longestText = 256

// answer is what the script printed, by section, in lines.
type answer struct {
	sections map[string][]string
	unread   []string
}

const (
	opening = "#stoke-facts 1"
	closing = "end"
)

// sections every answer has; others depend on what is installed.
func everySection() []string {
	return []string{"begin", "hostname", "os", "machine", "memory", "swaps", "disks", "filesystems", "space", "nics", "resolv",
		"environment", "apt", "kernels", "links", "grub", "grubenv", "modules", "features", "pci", "pci_names", "nvidia_version",
		"nvidia_gpus", "nvidia_smi", "nvswitch_management", "units", "time", "processes", "packages", "runtimes", closing}
}

// split takes an answer apart. Text before its first line comes from a login
// script.
func split(out []byte) (*answer, error) {
	at := -1
	if bytes.HasPrefix(out, []byte(opening+"\n")) {
		at = 0
	} else if i := bytes.Index(out, []byte("\n"+opening+"\n")); i >= 0 {
		at = i + 1
	}
	if at < 0 {
		return nil, fmt.Errorf("the answer does not begin with %q but with %q: is sh there, and does nothing replace it?", opening, clean(string(out[:min(len(out), 80)])))
	}
	a := &answer{sections: map[string][]string{}}
	name := ""
	for line := range strings.Lines(string(out[at:])) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || line == opening:
		case line[0] == ' ' && name != "":
			a.sections[name] = append(a.sections[name], line[1:])
		case line[0] == '#':
			name = line[1:]
			if _, twice := a.sections[name]; twice {
				return nil, fmt.Errorf("section %q occurs twice in the answer", clean(name))
			}
			a.sections[name] = nil
		default:
			a.addUnreadable(name, line)
		}
	}
	for _, name := range everySection() {
		if _, ok := a.sections[name]; !ok {
			return nil, fmt.Errorf("section %q is missing in the answer: it was cut off", name)
		}
	}
	return a, nil
}

func (a *answer) addUnreadable(section, line string) {
	if len(a.unread) < 20 {
		a.unread = append(a.unread, clean(section+": "+line))
	}
}

func (a *answer) first(section string) string {
	for _, line := range a.sections[section] {
		if strings.TrimSpace(line) != "" {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// rows are a section's lines of n fields between tabs.
func (a *answer) rows(section string, n int) [][]string {
	var rows [][]string
	for _, line := range a.sections[section] {
		fields := strings.Split(line, "\t")
		if len(fields) != n {
			if strings.TrimSpace(line) != "" {
				a.addUnreadable(section, line)
			}
			continue
		}
		rows = append(rows, fields)
	}
	return rows
}

// pairs are a section's lines of the form KEY=VALUE. Of two with one key the
// first holds, and the other is odd.
func (a *answer) pairs(section string) map[string]string {
	m := map[string]string{}
	for _, line := range a.sections[section] {
		key, value, ok := strings.Cut(line, "=")
		_, twice := m[key]
		switch {
		case ok && !twice:
			m[key] = strings.TrimSpace(value)
		case strings.TrimSpace(line) != "":
			a.addUnreadable(section, line)
		}
	}
	return m
}

// count reads a number of things or bytes; an empty text is 0.
func (a *answer) count(section, text string) int64 {
	text = strings.TrimSpace(text)
	if text == "" || text == "-" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		a.addUnreadable(section, text)
		return 0
	}
	return n
}

// clean makes a text fit to be shown and stored: valid UTF-8 of bounded length
// in which everything can be seen.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "�")
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, s))
	if len(s) <= longestText {
		return s
	}
	end := longestText
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// word is clean for what is one word of letters that names are made of; any
// other text is odd.
func (a *answer) word(section, text string) string {
	text = strings.TrimSpace(text)
	for _, r := range text {
		if r > unicode.MaxASCII || (!unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-+:~@/", r)) {
			a.addUnreadable(section, text)
			return ""
		}
	}
	if len(text) > longestText {
		a.addUnreadable(section, text)
		return ""
	}
	return text
}

// words are a section's lines, each a word, sorted and each once.
func (a *answer) words(section string) []string {
	list := []string{}
	for _, line := range a.sections[section] {
		if w := a.word(section, line); w != "" {
			list = append(list, w)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
