package view

import (
	"io"
	"strings"
)

// A comment on GitHub has at most 65,536 characters. A summary has at most
// markdownLimit bytes, so that a caller can put something before and after it;
// markdownFrame of them are for headings and for saying what was left out.
const (
	markdownLimit = 64000
	markdownFrame = 4000
)

// sheet is a Markdown document of bounded length.
type sheet struct {
	strings.Builder
	left int  // bytes that items may still take
	cut  bool // some were left out
}

func newSheet() *sheet { return &sheet{left: markdownLimit - markdownFrame} }

// print writes what is the program's own and short.
func (m *sheet) print(text ...string) {
	for _, t := range text {
		m.WriteString(t)
	}
}

// items writes n items until they have taken their share of the room, and
// counts the others. No more are made than written, but for one.
func (m *sheet) items(title string, share, n int, item func(i int) string) {
	if n == 0 {
		return
	}
	m.print("### ", title, "\n\n")
	room := min(share, m.left)
	for i := range n {
		text := item(i)
		if len(text) > room {
			m.print("- … and ", decimal(n-i), " more\n")
			m.cut = true
			break
		}
		m.print(text)
		room -= len(text)
		m.left -= len(text)
	}
	m.print("\n")
}

// finish writes the document to out; command shows what was left out of it.
func (m *sheet) finish(out io.Writer, command string) error {
	if m.cut {
		m.print("_Cut to fit into a comment; `", command, "` shows everything._\n")
	}
	_, err := io.WriteString(out, strings.TrimRight(m.String(), "\n")+"\n")
	return err
}
