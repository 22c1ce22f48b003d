package view

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

const (
	redraw     = 150 * time.Millisecond // how often something is written, at most
	lineEvery  = time.Second            // at most one progress line per object
	stillEvery = 10 * time.Second       // "Still creating..." of silent objects
)

// Terminal says how large the screen is, now. Zeros say that it has none.
type Terminal func() (columns, rows int)

// Progress shows what the engine does, while it does it: a line for whatever
// begins and ends, and what runs in between. On a terminal the running
// objects have an area at the bottom that is drawn anew in place; elsewhere
// they speak up now and then, on lines of their own.
//
// It is safe for concurrent use. Between Progress and Stop nothing else may
// write to the same place, other than through Say.
type Progress struct {
	p    *Printer
	size Terminal // nil: no live area
	now  func() time.Time

	mu      sync.Mutex
	running []*task // in the order of their start
	index   map[string]*task
	pending strings.Builder // lines to go above the live area
	apart   bool            // an empty line comes before the first of them
	drawn   int             // rows of the live area on the screen
	painted time.Time       // when something was last written

	quit, done chan struct{}
}

// task is one object that is being worked on.
type task struct {
	label  string
	goesOn string // what it still does, in words
	start  time.Time
	last   time.Time // of the last line about it
	news   string    // step and percentage, not yet on a line; "" when nothing is new
	step   string    // the same, as the live area shows it
	line   string    // newest log line that is not printed yet
	quick  bool      // it is over in a moment mostly: a row for it would flicker
}

// Progress begins a live view; size is nil where Out is no terminal.
func (p *Printer) Progress(size Terminal) *Progress {
	g := newProgress(p, size, time.Now)
	go g.run()
	return g
}

func newProgress(p *Printer, size Terminal, now func() time.Time) *Progress {
	return &Progress{
		p: p, size: size, now: now, index: make(map[string]*task),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
}

func (g *Progress) run() {
	defer close(g.done)
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			g.tick()
		case <-g.quit:
			return
		}
	}
}

// Stop ends the view and leaves the screen to others. It may be called again.
func (g *Progress) Stop() {
	g.mu.Lock()
	select {
	case <-g.quit:
		g.mu.Unlock()
		return
	default:
		close(g.quit)
	}
	g.mu.Unlock()
	<-g.done
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = nil
	g.paint()
}

// PrintAbove prints text above the live area.
func (g *Progress) PrintAbove(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pending.WriteString(text)
	g.paint()
}

// SeparateFromAbove has an empty line keep the view off what was printed before, once
// there is something to show.
func (g *Progress) SeparateFromAbove() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.apart = true
}

// Listen is a plan.Listener.
func (g *Progress) Listen(e plan.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	label := eventLabel(e)
	switch e.Kind {
	case plan.ReadStart, plan.ApplyStart:
		if e.Kind == plan.ReadStart {
			e.Action = plan.Read
		}
		g.start(&task{label: label, goesOn: wordsFor(e.Action).goesOn, start: g.now()})
		g.printLine(label, eventText(e))
	case plan.RefreshStart:
		g.start(&task{label: label, goesOn: "Still refreshing", start: g.now(), quick: true})
		g.printLine(label, eventText(e))
	case plan.PlanSlow:
		g.start(&task{label: label, goesOn: "Still planning", start: g.now().Add(-e.Elapsed)})
	case plan.ApplyProgress:
		g.progress(label, e.Progress)
	case plan.ReadDone, plan.ApplyDone, plan.ApplyFailed:
		if e.Kind == plan.ReadDone {
			e.Action = plan.Read
		}
		g.end(label)
		g.printLine(label, eventText(e))
	case plan.RefreshDone, plan.PlanDone: // no line: the plan says what came of it
		g.end(label)
	default:
		g.printLine(label, eventText(e))
	}
	if g.size == nil && g.now().Sub(g.painted) >= redraw {
		g.paint()
	}
}

func (g *Progress) start(t *task) {
	t.last = t.start
	g.index[t.label] = t
	g.running = append(g.running, t)
}

func (g *Progress) end(label string) {
	t := g.index[label]
	if t == nil {
		return
	}
	g.printNews(t, g.now())
	delete(g.index, label)
	for i := range g.running {
		if g.running[i] == t {
			g.running = append(g.running[:i], g.running[i+1:]...)
			break
		}
	}
}

func (g *Progress) progress(label string, news providers.Progress) {
	t := g.index[label]
	if t == nil {
		return // news of something that has ended
	}
	if text := progressText(news); text != "" && text != t.step {
		t.step, t.news = text, text
	}
	if news.Line != "" {
		t.line = news.Line
	}
	now := g.now()
	if now.Sub(t.last) >= lineEvery {
		g.printNews(t, now)
	}
}

// printNews writes what is new about an object. On a terminal steps and
// percentages are in the live area already; log lines are worth keeping.
func (g *Progress) printNews(t *task, now time.Time) {
	if t.news != "" && g.size == nil {
		g.printLine(t.label, t.news+" ["+elapsed(now.Sub(t.start))+" elapsed]")
		t.last = now
	}
	if t.line != "" {
		g.printLine(t.label, t.line)
		t.last = now
	}
	t.news, t.line = "", ""
}

// tick is called at regular intervals.
func (g *Progress) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for _, t := range g.running {
		quiet := now.Sub(t.last)
		if quiet >= lineEvery {
			g.printNews(t, now)
		}
		if g.size == nil && now.Sub(t.last) >= stillEvery {
			g.printLine(t.label, t.goesOn+"... ["+elapsed(now.Sub(t.start))+" elapsed]")
			t.last = now
		}
	}
	g.paint()
}

func (g *Progress) printLine(label, text string) {
	if g.apart {
		g.pending.WriteByte('\n')
		g.apart = false
	}
	g.pending.WriteString(g.p.paintText(bold, printable(label)+": "+printable(text)))
	g.pending.WriteByte('\n')
}

// paint writes what is pending and, on a terminal, draws the live area.
func (g *Progress) paint() {
	g.painted = g.now()
	if g.size == nil {
		if g.pending.Len() > 0 {
			g.p.print(g.pending.String())
			g.pending.Reset()
		}
		return
	}
	area := g.area()
	if g.pending.Len() == 0 && len(area) == 0 && g.drawn == 0 {
		return
	}
	var b strings.Builder
	if g.drawn > 0 {
		b.WriteString("\x1b[" + decimal(g.drawn) + "A\r\x1b[J")
	}
	b.WriteString(g.pending.String())
	g.pending.Reset()
	for _, row := range area {
		b.WriteString(g.p.paintText(dim, row))
		b.WriteByte('\n')
	}
	g.drawn = len(area)
	g.p.print(b.String())
}

// area is the rows of the live area: what runs longest comes first. It never
// takes more than half of the screen, and no row wraps.
func (g *Progress) area() []string {
	columns, rows := g.size()
	if columns <= 0 || rows <= 0 {
		columns, rows = 80, 24
	}
	most := min(12, max(1, rows/2))
	now := g.now()
	var out []string
	running := slices.DeleteFunc(slices.Clone(g.running), func(t *task) bool { return t.quick && now.Sub(t.start) < lineEvery })
	for i, t := range running {
		if len(out) == most-1 && len(running)-i > 1 {
			out = append(out, "  … and "+decimal(len(running)-i)+" more")
			break
		}
		text := t.step
		if text == "" {
			text = t.goesOn
		}
		since := " [" + elapsed(now.Sub(t.start)) + "]" // which a long step must not push off the screen
		row := "  " + ending(printable(t.label), columns/2) + ": " + printable(text)
		out = append(out, truncate(row, max(1, columns-1-len(since)))+since)
	}
	return out
}

// ending shortens text from the front to n characters: the end of an address
// tells objects apart.
func ending(text string, n int) string {
	r := []rune(text)
	if len(r) <= n || n < 2 {
		return text
	}
	return "…" + string(r[len(r)-n+1:])
}

func eventLabel(e plan.Event) string {
	if e.Deposed != "" {
		return e.Addr.String() + " (deposed object " + e.Deposed + ")"
	}
	return e.Addr.String()
}

// idText is " [id=…]" where an object has an id that says something.
func idText(id cty.Value) string {
	if id == cty.NilVal || id.IsMarked() || !id.IsKnown() || id.IsNull() {
		return ""
	}
	switch id.Type() {
	case cty.String:
		return " [id=" + truncate(id.AsString(), 100) + "]"
	case cty.Number:
		return " [id=" + number(id) + "]"
	}
	return ""
}

func progressText(p providers.Progress) string {
	if p.Percent < 0 || (p.Percent == 0 && p.Step == "") {
		return p.Step
	}
	percent := decimal(int(min(p.Percent, 100))) + "%"
	if p.Step == "" {
		return percent
	}
	return p.Step + ", " + percent
}

// elapsed writes a duration in whole seconds: 0s, 12s, 1m10s.
func elapsed(d time.Duration) string { return d.Truncate(time.Second).String() }
