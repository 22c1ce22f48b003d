package canvas

import (
	"math"
	"strconv"
	"strings"
)

// Curve is a line through points; X ascends. Points with a number that is not finite
// are left out.
type Curve struct {
	Name string
	X, Y []float64
}

// Options are the size and the form of a chart.
type Options struct {
	Columns, Rows int
	// Color draws the curves as braille in colours. Without it, several curves are
	// drawn as letters, one for each.
	Color bool
	X     func(float64) string // the text of a number of the axis; nil: the number
}

const (
	leastColumns, leastRows = 12, 3
	maxLabel                = 9 // columns of a number of the axis
)

// plotted is a chart while it is drawn: dots of two columns and four rows for each
// character.
type plotted struct {
	columns, rows          int // characters
	minX, maxX, minY, maxY float64
	dots                   []uint8
	owner                  []int // curve of each character, -1 for none
}

// colors has the colours of the curves, in order.
var colors = [...]int{36, 33, 35, 32, 34, 31}

// marks are the letters of the curves without colours.
const marks = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// Colored returns a text in the colour of a curve.
func Colored(text string, curve int) string {
	return "\x1b[" + strconv.Itoa(colors[curve%len(colors)]) + "m" + text + "\x1b[0m"
}

// Chart returns the lines of a chart with its axes: exactly as many as Rows, none
// wider than Columns. Where the size is too small or no curve has points, it returns
// empty lines.
func Chart(curves []Curve, o Options) []string {
	lines := make([]string, max(0, o.Rows))
	p, ok := bounds(curves)
	if !ok || o.Columns < leastColumns || o.Rows < leastRows {
		return lines
	}
	top, bottom := number(p.maxY), number(p.minY)
	gutter := max(len(top), len(bottom))
	p.columns, p.rows = o.Columns-gutter-1, o.Rows-1
	p.dots, p.owner = make([]uint8, p.columns*p.rows), make([]int, p.columns*p.rows)
	for i := range p.owner {
		p.owner[i] = -1
	}
	for i, c := range curves {
		p.draw(i, c)
	}
	for row := range p.rows {
		label := ""
		switch row {
		case 0:
			label = top
		case p.rows - 1:
			label = bottom
		}
		lines[row] = strings.Repeat(" ", gutter-len(label)) + label + "│" + p.row(row, o.Color, len(curves) > 1)
	}
	text := o.X
	if text == nil {
		text = number
	}
	lines[o.Rows-1] = strings.Repeat(" ", gutter) + "└" + axis(text(p.minX), text(p.maxX), p.columns)
	return lines
}

// axis returns the line below a chart with a text at each end.
func axis(from, to string, columns int) string {
	if rest := columns - Width(from) - Width(to); rest >= 1 {
		return from + strings.Repeat(" ", rest) + to
	}
	return CutText(to, columns)
}

// bounds returns a chart with the least and the largest numbers of all curves.
func bounds(curves []Curve) (p plotted, ok bool) {
	p = plotted{minX: math.Inf(1), maxX: math.Inf(-1), minY: math.Inf(1), maxY: math.Inf(-1)}
	for _, c := range curves {
		for i := range min(len(c.X), len(c.Y)) {
			if !isFinite(c.X[i]) || !isFinite(c.Y[i]) {
				continue
			}
			p.minX, p.maxX = min(p.minX, c.X[i]), max(p.maxX, c.X[i])
			p.minY, p.maxY = min(p.minY, c.Y[i]), max(p.maxY, c.Y[i])
			ok = true
		}
	}
	return p, ok
}

// draw draws one curve. A curve of one point is a dot.
func (p *plotted) draw(owner int, c Curve) {
	width, height := p.columns*2-1, p.rows*4-1
	lastX, lastY := -1, -1
	for i := range min(len(c.X), len(c.Y)) {
		if !isFinite(c.X[i]) || !isFinite(c.Y[i]) {
			continue
		}
		x, y := scale(c.X[i], p.minX, p.maxX, width), height-scale(c.Y[i], p.minY, p.maxY, height)
		if lastX < 0 {
			lastX, lastY = x, y
		}
		p.line(owner, lastX, lastY, x, y)
		lastX, lastY = x, y
	}
}

// scale returns the dot of a value, from 0 to most.
func scale(v, low, high float64, most int) int {
	if !(high > low) {
		return most / 2
	}
	part := v/2 - low/2 // halves, because a difference of large numbers overflows
	return min(most, max(0, int(math.Round(part/(high/2-low/2)*float64(most)))))
}

// line sets the dots between two.
func (p *plotted) line(owner, x, y, toX, toY int) {
	steps := max(abs(toX-x), abs(toY-y), 1)
	for i := range steps + 1 {
		p.set(owner, x+int(math.Round(float64((toX-x)*i)/float64(steps))), y+int(math.Round(float64((toY-y)*i)/float64(steps))))
	}
}

// bits are the dots of a braille character, by row and column.
var bits = [4][2]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

func (p *plotted) set(owner, x, y int) {
	at := y/4*p.columns + x/2
	p.dots[at] |= bits[y%4][x%2]
	p.owner[at] = owner
}

// row returns one line of the chart without trailing spaces.
func (p *plotted) row(row int, color, several bool) string {
	var b strings.Builder
	spaces, open := 0, -1
	for i := row * p.columns; i < (row+1)*p.columns; i++ {
		if p.dots[i] == 0 {
			spaces++
			continue
		}
		b.WriteString(strings.Repeat(" ", spaces))
		spaces = 0
		if owner := p.owner[i]; color && owner != open {
			b.WriteString("\x1b[" + strconv.Itoa(colors[owner%len(colors)]) + "m")
			open = owner
		}
		if !color && several {
			b.WriteByte(marks[p.owner[i]%len(marks)])
			continue
		}
		b.WriteRune(0x2800 + rune(p.dots[i]))
	}
	if open >= 0 {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// number returns a number in at most maxLabel columns.
func number(v float64) string {
	for precision := 4; precision > 0; precision-- {
		if text := strconv.FormatFloat(v, 'g', precision, 64); len(text) <= maxLabel {
			return text
		}
	}
	return strconv.FormatFloat(v, 'g', 1, 64)
}

func abs(n int) int { return max(n, -n) }

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
