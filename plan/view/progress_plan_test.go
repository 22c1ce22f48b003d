package view

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/plan"
)

// While a plan is made, what takes its time is seen: in the live area after a
// moment, elsewhere on a line every now and then. What is quick is not.
func TestProgressOfPlanning(t *testing.T) {
	for name, size := range map[string]Terminal{"terminal": wide, "pipe": nil} {
		var b bytes.Buffer
		c := &clock{t: time.Unix(0, 0)}
		g := newProgress(&Printer{Out: &b}, size, c.now)
		read, made := instance(t, "metal_host.old"), instance(t, "metal_host.new")
		g.Listen(plan.Event{Kind: plan.RefreshStart, Addr: read})
		c.pass(200 * time.Millisecond)
		g.tick()
		if strings.Contains(b.String(), "Still") {
			t.Errorf("%s: too early: %q", name, b.String())
		}
		c.pass(12 * time.Second)
		g.Listen(plan.Event{Kind: plan.PlanSlow, Addr: made, Elapsed: time.Second})
		g.tick()
		now := b.String()
		g.Listen(plan.Event{Kind: plan.RefreshDone, Addr: read})
		c.pass(9 * time.Second)
		g.tick()
		later := b.String()[len(now):]
		g.Listen(plan.Event{Kind: plan.PlanDone, Addr: made, Elapsed: 10 * time.Second})
		g.tick()
		for text, want := range map[string]string{now: "metal_host.old: Still refreshing", later: "metal_host.new: Still planning"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: there is no %q in %q", name, want, text)
			}
		}
		if size == nil {
			continue
		}
		if left := strings.Join(screen(t, b.String(), 60), "\n"); strings.Contains(left, "Still") {
			t.Errorf("it stays on the screen:\n%s", left)
		}
	}
}
