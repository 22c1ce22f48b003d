package view

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
	"github.com/stokehq/stoke/providers"
)

// clock is a time that only moves when it is told to.
type clock struct{ t time.Time }

func (c *clock) now() time.Time                   { return c.t }
func (c *clock) pass(d time.Duration)             { c.t = c.t.Add(d) }
func wide() (columns, rows int)                   { return 60, 8 }
func step(s string, p float64) providers.Progress { return providers.Progress{Step: s, Percent: p} }

// play goes through the life of three objects.
func play(t *testing.T, g *Progress, c *clock) {
	a, b, old := instance(t, "train_experiment.mnist"), instance(t, `terraform_data.x["k"]`), instance(t, "terraform_data.old")
	on := func(e plan.Event) { g.Listen(e) }
	on(plan.Event{Kind: plan.RefreshStart, Addr: b, ID: str("i-1")})
	on(plan.Event{Kind: plan.RefreshDone, Addr: b, ID: str("i-1")})
	on(plan.Event{Kind: plan.Settled, Addr: a, Text: "The interrupted create did happen\x1b[2J."})
	on(plan.Event{Kind: plan.ReadStart, Addr: instance(t, "data.x_y.z")})
	on(plan.Event{Kind: plan.ReadDone, Addr: instance(t, "data.x_y.z"), ID: num(3)})
	on(plan.Event{Kind: plan.ApplyStart, Addr: a, Action: plan.Create})
	on(plan.Event{Kind: plan.ApplyStart, Addr: b, Action: plan.Update, ID: str("i-1")})
	on(plan.Event{Kind: plan.ApplyStart, Addr: old, Deposed: "aabb", Action: plan.Delete, ID: str("i-0")})
	for i := range 30 {
		c.pass(100 * time.Millisecond)
		on(plan.Event{Kind: plan.ApplyProgress, Addr: a, Progress: step("epoch 1 of 2", float64(i))})
		g.tick()
	}
	on(plan.Event{Kind: plan.ApplyProgress, Addr: a, Progress: providers.Progress{Line: "loss 0.31\r\x1b[A", Percent: -1}})
	c.pass(time.Second)
	g.tick()
	g.PrintAbove("Interrupt received.\n")
	c.pass(10 * time.Second)
	g.tick()
	on(plan.Event{Kind: plan.ApplyProgress, Addr: a, Progress: step("epoch 2 of 2", 99.9)})
	on(plan.Event{Kind: plan.ApplyDone, Addr: a, Action: plan.Create, ID: str("run-7"), Elapsed: 73 * time.Second})
	on(plan.Event{Kind: plan.ApplyProgress, Addr: a, Progress: step("too late", 1)})
	on(plan.Event{Kind: plan.ApplyFailed, Addr: b, Action: plan.Update, Elapsed: 1500 * time.Millisecond})
	on(plan.Event{Kind: plan.ApplyDone, Addr: old, Deposed: "aabb", Action: plan.Delete, ID: str("i-0")})
	g.tick()
}

func TestProgressLines(t *testing.T) {
	var b bytes.Buffer
	c := &clock{t: time.Unix(0, 0)}
	play(t, newProgress(&Printer{Out: &b}, nil, c.now), c)
	if strings.Contains(b.String(), "\x1b") {
		t.Error("an escape sequence got through")
	}
	golden(t, "progress.txt", b.String())
}

// On a terminal the live area is drawn in place: what is left on the screen
// at the end is what was said, and nothing of the area.
func TestProgressOnTerminal(t *testing.T) {
	var b bytes.Buffer
	c := &clock{t: time.Unix(0, 0)}
	g := newProgress(&Printer{Out: &b}, wide, c.now)
	play(t, g, c)
	golden(t, "screen.txt", strings.Join(screen(t, b.String(), 60), "\n")+"\n")

	for i := range 40 { // more than fits
		g.Listen(plan.Event{Kind: plan.ApplyStart, Addr: instance(t, "terraform_data.many_of_a_rather_long_name_that_fills_a_row["+decimal(i)+"]")})
	}
	g.tick()
	all := screen(t, b.String(), 60)
	golden(t, "area.txt", strings.Join(all[len(all)-4:], "\n")+"\n")
}

// screen plays output on a terminal that knows what Progress uses: line feed,
// carriage return, cursor up, erase below. It fails when a line would wrap.
func screen(t *testing.T, out string, columns int) []string {
	t.Helper()
	lines, at := []string{""}, 0
	for len(out) > 0 {
		switch {
		case strings.HasPrefix(out, "\x1b["):
			end := strings.IndexAny(out, "AJ")
			if out[end] == 'A' {
				n := 0
				for _, r := range out[2:end] {
					n = n*10 + int(r-'0')
				}
				if at -= n; at < 0 {
					t.Fatal("the cursor leaves the screen")
				}
			} else {
				lines = lines[:at+1]
				lines[at] = ""
			}
			out = out[end+1:]
		case out[0] == '\r':
			out = out[1:]
		case out[0] == '\n':
			if at++; at == len(lines) {
				lines = append(lines, "")
			}
			out = out[1:]
		default:
			end := strings.IndexAny(out, "\n\r\x1b")
			if strings.HasPrefix(lines[at], "  ") && columnsOf(out[:end]) >= columns {
				t.Errorf("row %q wraps", out[:end])
			}
			lines[at] += out[:end]
			out = out[end:]
		}
	}
	return lines[:len(lines)-1]
}

// Events come from many goroutines; run with -race.
func TestProgressConcurrent(t *testing.T) {
	var b bytes.Buffer
	g := (&Printer{Out: &b}).Progress(nil)
	var wg sync.WaitGroup
	for i := range 8 {
		addr := instance(t, "terraform_data.x["+decimal(i)+"]")
		wg.Go(func() {
			g.Listen(plan.Event{Kind: plan.ApplyStart, Addr: addr})
			for range 50 {
				g.Listen(plan.Event{Kind: plan.ApplyProgress, Addr: addr, Progress: step("s", 1)})
			}
			g.Listen(plan.Event{Kind: plan.ApplyDone, Addr: addr, ID: cty.UnknownVal(cty.String)})
		})
	}
	wg.Wait()
	g.Stop()
	g.Stop()
	if got := strings.Count(b.String(), "Creation complete after 0s\n"); got != 8 {
		t.Errorf("%d objects are said to be complete, want 8:\n%s", got, b.String())
	}
}

func TestApplied(t *testing.T) {
	var b bytes.Buffer
	p := &Printer{Out: &b}
	report := &run.Report{Added: 2, Changed: 1}
	row := func(addr string, a plan.Action, s run.Status, because string) {
		report.Outcomes = append(report.Outcomes, run.Outcome{Addr: instance(t, addr), Action: a, Status: s, Because: because, Elapsed: 2 * time.Second})
	}
	row("a_b.one", plan.Create, run.Done, "")
	row("a_b.two", plan.Update, run.Done, "")
	p.Applied(report, plan.Normal, false)
	p.Applied(&run.Report{Destroyed: 3}, plan.Destroy, false)
	p.Applied(&run.Report{Added: 1}, plan.Normal, true)
	row("a_b.bad", plan.Create, run.Failed, "dataset is truncated")
	for i := range 30 {
		row("a_b.many["+decimal(i)+"]", plan.Create, run.Skipped, "a_b.bad")
	}
	row("a_b.other", plan.Delete, run.Skipped, "a_b.worse")
	row("a_b.late", plan.Delete, run.Interrupted, "")
	p.Applied(report, plan.Normal, false)
	golden(t, "applied.txt", b.String())
}

// How long something takes stays on the screen, however long the step's name.
func TestProgressLongStep(t *testing.T) {
	var b bytes.Buffer
	c := &clock{t: time.Unix(0, 0)}
	g := newProgress(&Printer{Out: &b}, wide, c.now)
	at := instance(t, "terraform_data.a")
	g.Listen(plan.Event{Kind: plan.ApplyStart, Addr: at})
	g.Listen(plan.Event{Kind: plan.ApplyProgress, Addr: at, Progress: providers.Progress{Step: strings.Repeat("install a package ", 9), Percent: -1}})
	for _, columns := range []int{60, 20, 3} {
		g.size = func() (int, int) { return columns, 24 }
		for _, row := range g.area() {
			if !strings.HasSuffix(row, "… [0s]") || columns > 10 && columnsOf(row) >= columns {
				t.Errorf("in %d columns: %q", columns, row)
			}
		}
	}
}
