package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stokehq/stoke/plan"
)

// TestVerifyBesideOthers decides the postconditions of unchanged objects while
// other operations end. What it is for shows under the race detector: all of
// them share one table of values.
func TestVerifyBesideOthers(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.parallelism = 16
	config := func(tag string) string {
		var b strings.Builder
		for i := range 60 {
			b.WriteString(thing(fmt.Sprintf("changed%d", i), "tags = { t = \""+tag+"\" }"))
			b.WriteString(thing(fmt.Sprintf("same%d", i), fmt.Sprintf(
				"lifecycle {\n postcondition {\n  condition = self.id != shelf_thing.changed%d.stamp\n  error_message = \"m\"\n }\n}", i)))
		}
		return b.String()
	}
	w.must(w.config("main.tf", config("1")))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", config("2")))
	p := w.applied(plan.Normal)
	verified := 0
	for _, op := range p.Ops {
		if op.Kind == plan.Verify {
			verified++
		}
	}
	if verified != 60 {
		t.Errorf("%d conditions were decided after planning, want 60", verified)
	}
}
