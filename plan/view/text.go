package view

import (
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/modules/address"
)

// contextLines is how many unchanged lines stand around a changed one.
const contextLines = 3

// maxJSON bounds the strings that are looked into for JSON.
const maxJSON = 64 << 10

// changeString writes the difference of two strings: line by line for texts
// of several lines, as data where both hold JSON, else one after the other.
func (d *differ) changeString(c int, p pair) {
	if hidden := d.brief(func(d *differ) { d.changeFully(c, p) }); hidden {
		d.forced(p)
	}
}

func (d *differ) changeFully(c int, p pair) {
	before, after := p.before.AsString(), p.after.AsString()
	if d.changeText(c, p, before, after) || d.changeJSON(c, p, before, after) {
		return
	}
	d.WriteString(address.Quote(before) + dress(d.color, yellow, " -> ") + address.Quote(after))
	d.forced(p)
}

func (d *differ) changeText(c int, p pair, before, after string) bool {
	old, okOld := heredoc(before)
	cur, okCur := heredoc(after)
	switch {
	case !okOld && !okCur:
		return false
	case !okOld:
		old, okOld = oneLine(before)
	case !okCur:
		cur, okCur = oneLine(after)
	}
	if !okOld || !okCur || sameLines(old, cur) {
		return false // the last line's end alone changed
	}
	d.open("<<-EOT", p)
	d.lines(c+4, old, cur)
	d.close(c, "EOT")
	return true
}

func oneLine(text string) ([]string, bool) {
	if text == "" {
		return nil, true
	}
	return []string{text}, printable(text) == text && !strings.Contains(text, "\n")
}

func sameLines(a, b []string) bool {
	return strings.Join(a, "\n") == strings.Join(b, "\n")
}

func (d *differ) lines(c int, before, after []string) {
	in := make(interner)
	a, b := make([]int, len(before)), make([]int, len(after))
	for i, l := range before {
		a[i] = in.text(l)
	}
	for j, l := range after {
		b[j] = in.text(l)
	}
	steps := edits(a, b)
	distance := distances(steps)
	unseen := 0
	for k, s := range steps {
		if distance[k] > contextLines {
			unseen++
			continue
		}
		d.hidden(c, unseen, "line")
		unseen = 0
		switch {
		case s.same:
			d.textLine(c, same, after[s.j])
		default:
			if s.i >= 0 {
				d.textLine(c, remove, before[s.i])
			}
			if s.j >= 0 {
				d.textLine(c, add, after[s.j])
			}
		}
	}
	d.hidden(c, unseen, "line")
}

func (d *differ) textLine(c int, s symbol, line string) {
	d.begin(c, s)
	d.WriteString(line)
	d.WriteByte('\n')
}

// distances says for every step how far the next change is, in steps.
func distances(steps []edit) []int {
	out := make([]int, len(steps))
	far := len(steps) + 1
	last := -far
	for k := range steps {
		if !steps[k].same {
			last = k
		}
		out[k] = k - last
	}
	next := 2 * far
	for k := len(steps) - 1; k >= 0; k-- {
		if !steps[k].same {
			next = k
		}
		out[k] = min(out[k], next-k)
	}
	return out
}

func (d *differ) changeJSON(c int, p pair, before, after string) bool {
	old, okOld := jsonIn(before)
	cur, okCur := jsonIn(after)
	if !okOld || !okCur {
		return false
	}
	was := d.inJSON
	d.inJSON = true
	defer func() { d.inJSON = was }()
	d.open("jsonencode(", p)
	inner := pair{before: old, after: cur}
	if inner.equal() {
		d.begin(c+4, same)
		d.writeWhole(c+4, same, cur, secret{})
		d.WriteByte('\n')
		d.comment(c+4, "(only white space or the order of keys changes)")
	} else {
		d.begin(c+4, update)
		d.change(c+4, inner)
		d.WriteByte('\n')
	}
	d.close(c, ")")
	return true
}

// jsonIn reads a string that holds a JSON object or array, and nothing else
// worth calling JSON.
func jsonIn(text string) (cty.Value, bool) {
	trimmed := strings.TrimSpace(text)
	if len(trimmed) < 2 || len(trimmed) > maxJSON || (trimmed[0] != '{' && trimmed[0] != '[') {
		return cty.NilVal, false
	}
	ty, err := ctyjson.ImpliedType([]byte(trimmed))
	if err != nil {
		return cty.NilVal, false
	}
	v, err := ctyjson.Unmarshal([]byte(trimmed), ty)
	if err != nil || v.LengthInt() == 0 {
		return cty.NilVal, false
	}
	return v, true
}

// A manifest with the CRDs of an operator has tens of thousands of lines, and a
// person who reviews a plan reads names and numbers of those. The limits hold for
// plans only: states, and the JSON of plans, have every value in full.
const (
	maxLines   = 100  // of one text, as a text or as JSON
	maxOfMap   = 300  // of all texts of one map
	maxColumns = 4000 // of a text on one line
)

// brief writes a text by write, or the number of its lines where these are many,
// which it reports.
func (d *differ) brief(write func(*differ)) (hidden bool) {
	if !d.short || d.inJSON {
		write(d)
		return false
	}
	text := d.part(write)
	n, most := strings.Count(text, "\n"), maxLines
	if d.named {
		most = 0
	}
	switch {
	case n > most:
		d.WriteString(dress(d.color, dim, "("+counted(n+1, "line")+" hidden: show -json has them)"))
	case n == 0 && len(text) > maxColumns:
		d.WriteString(dress(d.color, dim, "("+counted(len(text), "character")+" hidden: show -json has them)"))
	default:
		d.WriteString(text)
		return false
	}
	return true
}

// texts writes a map of texts by write: with the names only of all that have
// several lines, where these are many.
func (d *differ) texts(c, n int, write func(*differ)) {
	if !d.short || d.inJSON || d.named {
		write(d)
		return
	}
	text := d.part(write)
	if strings.Count(text, "\n") <= maxOfMap {
		d.WriteString(text)
		return
	}
	d.named = true
	text = d.part(write)
	d.named = false
	head, rest, _ := strings.Cut(text, "\n")
	d.WriteString(head + "\n")
	d.comment(c+4, "("+counted(n, "element")+")")
	d.WriteString(rest)
}

// part is what write writes in the same dress.
func (d *differ) part(write func(*differ)) string {
	p := &differ{color: d.color, margin: d.margin, inJSON: d.inJSON, short: d.short, named: d.named}
	write(p)
	return p.String()
}
