package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stokehq/stoke/plan/canvas"
	"github.com/stokehq/stoke/plan/series"
	"github.com/stokehq/stoke/providers"
)

// choice is what the keys have chosen.
type choice struct {
	run, role int // role 0 is all of them
	metric    int // of the second chart, counted from the metric that is shown first
	scroll    int // lines of the log below the window
	search    string
	typing    bool // the search
	help      bool
	paused    bool
}

// frame is one picture of the screen.
type frame struct {
	choice
	columns, rows int
	color         bool
	now           time.Time

	lines []string
}

// Codes of colours and of type.
const (
	bold    = "1"
	dim     = "2"
	inverse = "7"
	red     = "31"
	green   = "32"
	yellow  = "33"
)

const (
	leastColumns, leastRows = 20, 5
	twoCharts               = 60 // columns that two charts side by side need
	nameColumns             = 14 // of a role before its line
)

// draw returns the lines of the screen: as many as it has rows, none wider than it.
func (f *frame) draw(all []view) []string {
	f.lines = nil
	switch {
	case f.columns < leastColumns || f.rows < leastRows:
		f.add("window too small")
	case f.help:
		f.drawHelp()
	case len(all) > 0:
		f.drawRun(all)
	}
	if len(f.lines) >= f.rows {
		f.lines = f.lines[:max(0, f.rows-1)]
	}
	for len(f.lines) < f.rows-1 {
		f.add("")
	}
	f.drawKeys()
	return f.lines[:min(len(f.lines), max(0, f.rows))]
}

// add adds a line, cut to the window.
func (f *frame) add(text string) { f.lines = append(f.lines, canvas.CutText(text, f.columns)) }

// addPainted adds a line of one colour.
func (f *frame) addPainted(code, text string) {
	f.lines = append(f.lines, f.paint(code, canvas.CutText(text, f.columns)))
}

func (f *frame) paint(code, text string) string {
	if !f.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (f *frame) drawKeys() {
	text := "q quit  tab run  ↑↓ role  m metric  / search  p pause  ? help"
	switch {
	case f.typing:
		text = "search: " + f.search + "▏"
	case f.search != "":
		text = "search: " + f.search + "  (esc clears)  " + text
	}
	if f.paused {
		text = "PAUSED  " + text
	}
	f.addPainted(dim, text)
}

func (f *frame) drawHelp() {
	for _, line := range []string{
		"stoke watch",
		"",
		"  q, Ctrl-C      leave; the run goes on",
		"  tab, → and ←   the next run, the one before",
		"  ↓ and ↑        logs of the next role, of the one before; all at the top",
		"  m              another metric in the second chart",
		"  p              pause the picture, not the run",
		"  /              search in the logs: type, Enter keeps it, Esc clears it",
		"  PgUp, PgDn     older and newer lines of the logs",
		"  ?              this text, and back",
	} {
		f.add(line)
	}
}

// drawRun draws the chosen run, with a line of all runs where there are several.
func (f *frame) drawRun(all []view) {
	v := all[min(max(0, f.run), len(all)-1)]
	if len(all) > 1 {
		f.drawTabs(all)
	}
	f.drawHead(v)
	// The head has the epoch, and short epochs would push all other events out.
	v.events = slices.DeleteFunc(slices.Clone(v.events), func(e providers.RunEvent) bool { return e.Type == "epoch" })
	room := f.rows - 1 - len(f.lines) // without the line of the keys
	roles := min(len(v.status.Roles), max(1, room/5))
	if len(v.status.Roles) > 0 && room >= 9 {
		room -= roles + 1
	} else {
		roles = 0
	}
	events := 0
	if room >= 12 {
		events = min(max(2, room/8), 6, len(v.events))
	}
	chart := 0
	if rest := room - events; rest >= 8 {
		chart = min(max(5, rest/2), 20)
	}
	if chart > 0 {
		f.drawCharts(v, chart)
	}
	if roles > 0 {
		f.drawRoles(v, roles)
	}
	f.drawEvents(v, events)
	f.drawLog(v, f.rows-1-len(f.lines))
}

func (f *frame) drawTabs(all []view) {
	var b strings.Builder
	used := 0
	for i, v := range all {
		text := fmt.Sprintf(" %d %s %s ", i+1, lastColumns(v.name, 24), phaseOf(v))
		if used+canvas.Width(text) > f.columns {
			break
		}
		used += canvas.Width(text)
		if i == f.run {
			text = f.paint(inverse, text)
		}
		b.WriteString(text)
	}
	f.lines = append(f.lines, b.String())
}

// lastColumns returns the end of a name, whose beginning many names share.
func lastColumns(name string, most int) string {
	letters := []rune(name)
	if len(letters) <= most {
		return name
	}
	return "…" + string(letters[len(letters)-most+1:])
}

func phaseOf(v view) string {
	if !v.known {
		return "connecting"
	}
	return v.status.Phase
}

// drawHead draws the state of the run, and below it a message or the lost connection.
func (f *frame) drawHead(v view) {
	is := v.status
	parts := []string{lastColumns(v.name, max(10, f.columns/2)), phaseOf(v)}
	if is.Trains && is.Percent >= 0 {
		parts = append(parts, fmt.Sprintf("%.0f%%", is.Percent))
	}
	if v.left > 0 {
		parts = append(parts, "ETA "+short(v.left))
	}
	if is.Progress != "" {
		parts = append(parts, is.Progress)
	}
	f.addPainted(bold+";"+phaseColor(phaseOf(v)), strings.Join(parts, "  "))
	second := is.Message
	switch {
	case !v.lost.since.IsZero():
		f.addPainted(red, fmt.Sprintf("connection lost %s ago, trying again: %s", short(f.now.Sub(v.lost.since)), v.lost.reason))
		return
	case second == "" && !is.Started.IsZero() && is.Ended.IsZero():
		second = "runs for " + short(f.now.Sub(is.Started)) + ", " + cmp.Or(is.Where, "in its cluster")
	case second == "" && !is.Ended.IsZero():
		second = "ran for " + short(is.Ended.Sub(is.Started)) + ", " + cmp.Or(is.Where, "in its cluster")
	}
	f.add(second)
}

func phaseColor(phase string) string {
	switch phase {
	case "running", "succeeded":
		return green
	case "failed", "lost", "gone":
		return red
	}
	return yellow
}

// drawCharts draws the loss and a metric of the evaluation, side by side where the
// window is wide enough.
func (f *frame) drawCharts(v view, rows int) {
	names := chartNames(v.names)
	if len(names) == 0 {
		f.addPainted(dim, "no metrics yet")
		return
	}
	first := names[0]
	others := names[1:]
	if len(others) == 0 || f.columns < twoCharts {
		if len(others) > 0 && f.metric > 0 {
			first = names[f.metric%len(names)]
		}
		f.lines = append(f.lines, f.chart(v, first, f.columns, rows)...)
		return
	}
	width := (f.columns - 2) / 2
	left := f.chart(v, first, width, rows)
	right := f.chart(v, others[f.metric%len(others)], width, rows)
	for i := range left {
		gap := max(0, width-visible(left[i])) + 2
		f.lines = append(f.lines, left[i]+strings.Repeat(" ", gap)+right[i])
	}
}

// chartNames sorts the metrics: the loss, the metrics of evaluations, all others.
func chartNames(names []string) []string {
	rank := func(name string) int {
		if i := slices.Index([]string{"loss", "accuracy", "evaluation.loss"}, name); i >= 0 {
			return i
		}
		if name == "records" || name == "norm" {
			return 9
		}
		return 5
	}
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return names
}

// chart returns a title with the newest value, and the curve.
func (f *frame) chart(v view, name string, columns, rows int) []string {
	s := v.find(name)
	title := name
	if s == nil || len(s.Points) == 0 {
		return append([]string{canvas.CutText(title, columns)}, make([]string, rows-1)...)
	}
	title += "  " + strconv.FormatFloat(s.Points[len(s.Points)-1].Mean, 'g', 5, 64)
	curve, text := curveOf(s)
	lines := []string{f.paint(bold, canvas.CutText(title, columns))}
	return append(lines, canvas.Chart([]canvas.Curve{curve}, canvas.Options{Columns: columns, Rows: rows - 1, Color: f.color, X: text})...)
}

// curveOf returns a series over its steps, or over the time where it has none.
func curveOf(s *series.Series) (canvas.Curve, func(float64) string) {
	c := canvas.Curve{Name: s.Name}
	first, last := s.Points[0], s.Points[len(s.Points)-1]
	overSteps := last.Step > first.Step || last.Step > 0 && len(s.Points) == 1
	for _, p := range s.Points {
		x := float64(p.Step)
		if !overSteps {
			x = p.Time.Sub(first.Time).Seconds()
		}
		c.X, c.Y = append(c.X, x), append(c.Y, p.Mean)
	}
	if overSteps {
		return c, func(x float64) string { return "step " + strconv.FormatInt(int64(x), 10) }
	}
	return c, func(x float64) string { return short(time.Duration(x * float64(time.Second))) }
}

// visible returns the number of columns of a line that has codes of colours.
func visible(line string) (n int) {
	for line != "" {
		text, rest, found := strings.Cut(line, "\x1b[")
		n += canvas.Width(text)
		if !found {
			break
		}
		_, line, _ = strings.Cut(rest, "m")
	}
	return n
}

// drawRoles draws so many roles around the chosen one, with their usage.
func (f *frame) drawRoles(v view, most int) {
	roles := v.status.Roles
	f.addPainted(dim, fmt.Sprintf("  %-*s  %-9s  %6s  %9s  %11s  %s", nameColumns, "ROLE", "STATE", "CPU", "MEMORY", "NET IN/OUT", "SINCE"))
	first := min(max(0, f.role-most), len(roles)-most) // role 1 is roles[0]
	for i := first; i < first+most; i++ {
		r := roles[i]
		mark := "  "
		if i == f.role-1 {
			mark = "> "
		}
		processors, memory, network := "-", "-", "-"
		if u := r.Usage; u != nil {
			processors, memory = strconv.FormatFloat(u.CPU, 'f', 2, 64), bytesText(float64(u.Memory))
			if u.Network {
				network = bytesText(u.Received) + "/" + bytesText(u.Sent)
			}
		}
		var since []string
		if !r.Since.IsZero() {
			since = append(since, short(f.now.Sub(r.Since)))
		}
		if r.Restarts > 0 {
			since = append(since, fmt.Sprintf("restarts %d", r.Restarts))
		}
		if r.Reason != "" {
			since = append(since, r.Reason)
		}
		line := mark + canvas.Pad(r.Name, nameColumns) + "  " + canvas.Pad(r.Phase, 9) +
			fmt.Sprintf("  %6s  %9s  %11s  ", processors, memory, network) + strings.Join(since, ", ")
		if mark == "> " {
			f.addPainted(bold, line)
			continue
		}
		f.add(line)
	}
}

// bytesText returns a number of bytes in at most five columns.
func bytesText(n float64) string {
	for _, unit := range []string{"B", "K", "M", "G", "T"} {
		if n < 1000 {
			if n < 10 && unit != "B" {
				return strconv.FormatFloat(n, 'f', 1, 64) + unit
			}
			return strconv.FormatFloat(n, 'f', 0, 64) + unit
		}
		n /= 1024
	}
	return ">999T"
}

func (f *frame) drawEvents(v view, most int) {
	for _, e := range v.events[max(0, len(v.events)-most):] {
		code := dim
		if e.Type == "watch" || e.Type == "restore" {
			code = yellow
		}
		f.addPainted(code, eventText(e))
	}
}

// eventText is an event on one line.
func eventText(e providers.RunEvent) string {
	parts := []string{e.Time.Local().Format(time.TimeOnly), e.Type}
	if e.Step >= 0 {
		parts = append(parts, "step "+strconv.FormatInt(e.Step, 10))
	}
	names := make([]string, 0, len(e.Values))
	for name := range e.Values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		parts = append(parts, canvas.Clean(name)+" "+strconv.FormatFloat(e.Values[name], 'g', 4, 64))
	}
	if e.Message != "" {
		parts = append(parts, e.Message)
	}
	return strings.Join(parts, "  ")
}

// drawLog draws the end of the log: of the chosen role, and with the searched text.
func (f *frame) drawLog(v view, rows int) {
	if rows < 2 {
		return
	}
	role := ""
	if f.role > 0 && f.role <= len(v.status.Roles) {
		role = v.status.Roles[f.role-1].Name
	}
	title := "logs of " + cmp.Or(role, "all roles")
	lines, scroll := matching(v.lines, role, f.search, rows-1+f.scroll), f.scroll
	if len(lines) < rows-1+scroll {
		scroll = max(0, len(lines)-(rows-1))
	}
	if scroll > 0 {
		title += fmt.Sprintf(", %d lines back", scroll)
	}
	f.addPainted(bold, title)
	end := len(lines) - scroll
	for _, line := range lines[max(0, end-(rows-1)):end] {
		text := withShortTime(line)
		if role == "" {
			text = canvas.Pad(line.Role, nameColumns) + " " + text
		}
		f.addLogLine(text)
	}
}

// withShortTime returns a line's text with the time of day in place of the time that
// stoke-trainer writes before it.
func withShortTime(line providers.RunLine) string {
	rest, found := strings.CutPrefix(line.Text, "time=")
	if _, text, ok := strings.Cut(rest, " "); found && ok && !line.Time.IsZero() {
		return line.Time.Local().Format(time.TimeOnly) + " " + text
	}
	return line.Text
}

// addLogLine adds a line with the searched text marked.
func (f *frame) addLogLine(text string) {
	text = canvas.CutText(text, f.columns)
	at := -1
	if f.search != "" {
		at = strings.Index(strings.ToLower(text), strings.ToLower(f.search))
	}
	if end := at + len(f.search); at >= 0 && end <= len(text) && strings.EqualFold(text[at:end], f.search) {
		text = text[:at] + f.paint(inverse, text[at:end]) + text[end:]
	}
	f.lines = append(f.lines, text)
}

// matching returns the newest lines, at most so many, of a role and with a text.
func matching(lines []providers.RunLine, role, search string, most int) []providers.RunLine {
	if role == "" && search == "" {
		return lines[max(0, len(lines)-most):]
	}
	search = strings.ToLower(search)
	var found []providers.RunLine
	for i := len(lines) - 1; i >= 0 && len(found) < most; i-- {
		line := lines[i]
		// The ranks of a worker's program write under names of their own.
		if role != "" && line.Role != role && !strings.HasPrefix(line.Role, role+"/") {
			continue
		}
		if search == "" || strings.Contains(strings.ToLower(line.Text), search) {
			found = append(found, line)
		}
	}
	slices.Reverse(found)
	return found
}
